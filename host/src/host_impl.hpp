#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

#include <holdfast/application.hpp>
#include <holdfast/consumer_registry.hpp>
#include <holdfast/event_relay.hpp>
#include <holdfast/event_worker.hpp>
#include <holdfast/events.hpp>
#include <holdfast/host.hpp>
#include <holdfast/job_registry.hpp>
#include <holdfast/job_scheduler.hpp>
#include <holdfast/job_worker.hpp>
#include <holdfast/jobs.hpp>
#include <holdfast/plugin_library.hpp>
#include <holdfast/system_time_zones.hpp>
#include <holdfast/task_scope.hpp>

#include "configuration.hpp"
#include "isolation/helper_pool.hpp"
#include "policy_book.hpp"
#include "signals.hpp"
#include "store_rack.hpp"

namespace holdfast {

namespace detail {

template <class T>
T value_or_throw(result<T> r) {
    if (!r) throw failed(std::move(r.error()));
    if constexpr (!std::is_void_v<T>) return std::move(*r);
}

} // namespace detail

class host::impl final : public services, public declarations {
public:
    impl(detail::configuration config, std::filesystem::path file);
    ~impl();

    // services
    holdfast::policies& policies() noexcept override { return *policies_; }
    holdfast::runtime& runtime() noexcept override { return *runtime_; }
    logger& log() noexcept override { return *log_; }
    holdfast::store& store() override;
    holdfast::store& store_of(facet f) override;
    holdfast::jobs& jobs() override;
    holdfast::events& events() override;
    // declarations
    using declarations::add;
    void add(const policy& p) override;
    void add(std::unique_ptr<job_type> kind) override;
    void add(recurring_job which) override;
    void use(exception_policy rules) override;
    void add(std::unique_ptr<event_consumer> one) override;
    void add(std::unique_ptr<domain_consumer> one) override;
    void use(error_scope of, exception_policy rules) override;
    void use(std::string consumer, exception_policy rules) override;
    void require(const promises& asked) override { require(asked, std::nullopt); }
    void require(facet of, const promises& asked) override { require(asked, of); }

    void use(holdfast::runtime& mine);
    void use(holdfast::store& mine);
    void use(holdfast::event_transport& mine);
    void log_to(std::shared_ptr<logger> sink);
    void allow_unknown_policies();
    void without_stores();
    void without_work();
    void start();
    int run();
    void request_stop() noexcept;
    result<void> reload();
    void stop() noexcept;

    void must_be_started(std::string_view member) const;
    std::vector<policy_in_force> policies_in_force() const { return book_.in_force(); }
    worker_snapshot worker() const;
    holdfast::event_transport& event_transport();
    relay_snapshot relay() const;
    event_worker_snapshot consumers() const;
    task<result<std::vector<schedule_status>>> schedules();
    std::vector<consumer_rules> rules_in_force() const;
    std::vector<store_in_use> stores_in_use() const { return stores_.in_use(); }
    std::vector<std::filesystem::path> plugin_folders() const { return plugin_search_path(config_.plugin_path); }
    bool has_application() const noexcept { return config_.application.has_value(); }
    bool has_events() const noexcept { return config_.events.has_value() || transport_ != nullptr; }

private:
    enum class phase { setting_up, starting, started, stopped };

    void must_be_setting_up(std::string_view member) const;
    void start_parts();
    loaded_plugin find(const detail::plugin_choice& choice, plugin_kind kind);
    void require(const promises& asked, std::optional<facet> of);
    void start_runtime();
    void start_application();
    void start_policies();
    void start_stores();
    void start_jobs();
    void make_client(holdfast::store& kept);
    void prepare_isolation();
    void make_zygote(const std::string& job);
    void start_isolation(const holdfast::store& kept);
    int serve_as_helper(detail::helper_side side);
    void make_scheduler(holdfast::store& kept, std::vector<worker_queue>& queues);
    void start_events();
    void register_consumers();
    void register_rules();
    void open_transport();
    void subscribe_consumers();
    std::string transport_title() const;
    void warn_of_weaker_transport(const store_capabilities& outbox);
    void check_event_promises() const;
    void start_consumers();
    void stop_work() noexcept;
    void tell_of_running_jobs() noexcept;
    void tell_of_running_consumers() noexcept;
    void stop_relay() noexcept;
    void stop_watching() noexcept;
    void open_store(const detail::plugin_choice& choice, std::optional<facet> only);
    void stop_own_runtime() noexcept;
    bool handlers_run() const;
    duration longest_stop_of_work() const;
    void leave_if_handlers_run() noexcept;
    void warn_of_other_changes(const detail::configuration& read);
    void spawn_application();
    static task<void> run_application(impl& self);

    // In the order in which they are made; destroyed the other way round, after stop().
    detail::configuration config_;
    std::filesystem::path file_; // empty for a host from text
    std::shared_ptr<logger> log_;
    detail::wake_pipe wake_;
    detail::policy_book book_;
    std::vector<plugin_folder> plugins_;
    std::optional<plugin_instance<holdfast::runtime>> own_runtime_;
    holdfast::runtime* runtime_ = nullptr;
    std::unique_ptr<pipeline_runner> runner_;
    std::unique_ptr<holdfast::policies> policies_;
    detail::store_rack stores_;
    std::optional<exception_policy> rules_; // of the host's own scope
    job_registry kinds_;
    std::optional<identifier_source> ids_{std::in_place};
    std::optional<holdfast::jobs> jobs_;
    std::vector<recurring_job> recurring_;
    system_time_zones time_zones_;
    std::optional<job_scheduler> scheduler_;
    std::unique_ptr<detail::zygote> zygote_; // until it is known who needs it
    std::shared_ptr<detail::helper_pool> isolation_;
    std::optional<job_worker> worker_;
    std::optional<plugin_instance<holdfast::event_transport>> own_transport_;
    holdfast::event_transport* transport_ = nullptr;
    std::vector<std::unique_ptr<event_consumer>> declared_consumers_; // until start() knows [consumers.NAME]
    consumer_registry consumers_;
    std::map<error_scope, exception_policy> event_rules_; // until start()
    std::map<std::string, exception_policy> consumer_rules_;
    std::optional<inline_dispatcher> domain_;
    std::optional<holdfast::events> events_;
    std::optional<event_relay> relay_;
    std::optional<event_worker> consuming_;
    std::optional<plugin_instance<application>> application_;

    std::stop_source stop_;
    std::optional<task_scope> running_; // the application, once run() has started it
    std::atomic<int> exit_code_ = 0;
    bool may_leave_ = false; // with exit_code_, when handlers do not end: the process is run()'s
    bool allow_unknown_policies_ = false;
    bool without_stores_ = false;
    std::vector<detail::asked_promises> asked_; // by the program and the application
    std::atomic<phase> phase_ = phase::setting_up;
    std::mutex reload_mutex_;
    std::mutex stop_mutex_;
};

} // namespace holdfast
