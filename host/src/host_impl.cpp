#include "host_impl.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>

#include <holdfast/engine.hpp>
#include <holdfast/sleep.hpp>
#include <holdfast/sync_wait.hpp>

#include "stderr_logger.hpp"
#include "stop_limit.hpp"

namespace holdfast {

namespace {

[[noreturn]] void misused(std::string why) {
    throw failed({errc::invalid_argument, std::move(why), std::nullopt});
}

// What is bounded by itself gets so much more, before the process leaves without it.
constexpr duration to_leave = std::chrono::seconds{2};

constexpr duration sum(duration a, duration b) noexcept {
    return b >= forever - a ? forever : a + b;
}

bool is_file(const std::string& plugin) {
    return plugin.find('/') != plugin.npos;
}

} // namespace

host::impl::impl(detail::configuration config, std::filesystem::path file)
    : config_(std::move(config)), file_(std::move(file)), log_(std::make_shared<detail::stderr_logger>(config_.level)),
      stores_(config_.name) {}

host::impl::~impl() {
    stop();
}

void host::impl::must_be_setting_up(std::string_view member) const {
    if (phase_ != phase::setting_up) misused("host." + std::string(member) + "() must be called before start()");
}

void host::impl::must_be_started(std::string_view member) const {
    if (runtime_ == nullptr || policies_ == nullptr)
        misused("host." + std::string(member) + "() must be called after start()");
}

void host::impl::add(const policy& p) {
    if (phase_ != phase::starting) must_be_setting_up("add");
    detail::value_or_throw(book_.add(p.options()));
}

void host::impl::use(holdfast::runtime& mine) {
    must_be_setting_up("use");
    if (config_.runtime_given)
        throw failed({errc::configuration,
                      config_.runtime.where + ": [runtime] must go: the program brings its own runtime", std::nullopt});
    runtime_ = &mine;
}

void host::impl::log_to(std::shared_ptr<logger> sink) {
    must_be_setting_up("log_to");
    log_ = std::move(sink);
}

void host::impl::allow_unknown_policies() {
    must_be_setting_up("allow_unknown_policies");
    allow_unknown_policies_ = true;
}

void host::impl::start() {
    if (phase_ != phase::setting_up) misused("a host starts once");
    phase_ = phase::starting;
    try {
        start_parts();
    } catch (...) {
        stop();
        throw;
    }
    phase_ = phase::started;
}

// What can be refused without a store is, before one is touched.
void host::impl::start_parts() {
    prepare_isolation();
    if (runtime_ == nullptr) start_runtime();
    if (config_.application) start_application();
    start_policies();
    register_consumers();
    register_rules();
    if (without_stores_) return;
    start_stores();
    start_events();
    start_jobs();
    start_consumers();
}

void host::impl::start_policies() {
    detail::value_or_throw(book_.apply(config_, allow_unknown_policies_, *log_));
    book_.warn(*log_);
    auto* brings = dynamic_cast<brings_runner*>(runtime_);
    runner_ = brings != nullptr ? brings->make_runner(book_.catalog()) : nullptr;
    if (runner_ == nullptr) runner_ = make_pipeline_runner(*runtime_, book_.catalog());
    policies_ = std::make_unique<holdfast::policies>(*runner_);
}

loaded_plugin host::impl::find(const detail::plugin_choice& choice, plugin_kind kind) {
    if (is_file(choice.plugin)) {
        auto loaded = load_plugin(config_.folder / choice.plugin);
        if (loaded) return std::move(*loaded);
        throw failed({errc::plugin, choice.where + ": " + loaded.error().message, std::nullopt});
    }
    if (plugins_.empty()) plugins_ = list_plugins(plugin_folders());
    auto found = find_plugin(plugins_, kind, choice.plugin, *log_);
    if (found) return std::move(*found);
    throw failed({errc::plugin, choice.where + ": " + found.error().message, std::nullopt});
}

void host::impl::start_runtime() {
    const loaded_plugin plugin = find(config_.runtime, plugin_kind::runtime);
    auto made = create_runtime(plugin, config_.runtime.to_settings(config_.folder), *log_);
    if (!made) throw failed(std::move(made.error()));
    own_runtime_.emplace(std::move(*made));
    runtime_ = &**own_runtime_;
    log_->debug("runtime " + std::string(plugin.name()) + " " + std::string(plugin.version()) + " from " +
                plugin.file().string());
}

void host::impl::start_application() {
    const loaded_plugin plugin = find(*config_.application, plugin_kind::application);
    auto made = create_application(plugin, config_.application->to_settings(config_.folder), *log_, *runtime_);
    if (!made) throw failed(std::move(made.error()));
    application_.emplace(std::move(*made));
    try {
        (*application_)->declare(*this);
    } catch (const failed& e) {
        throw failed({e.code(), plugin.file().string() + ": " + e.what(), std::nullopt});
    } catch (const std::exception& e) {
        throw failed({errc::plugin, plugin.file().string() + ": could not declare: " + e.what(), std::nullopt});
    } catch (...) {
        throw failed({errc::plugin,
                      plugin.file().string() + ": could not declare: it threw something that is not a "
                                               "std::exception",
                      std::nullopt});
    }
}

// The plugin's code, so whatever it throws ends here.
task<void> host::impl::run_application(impl& self) {
    co_await resume_on(*self.runtime_);
    const std::stop_token stop = self.stop_.get_token();
    try {
        task<int> running = (*self.application_)->run(self, stop);
        self.exit_code_ = co_await std::move(running);
    } catch (const operation_cancelled& e) {
        if (!stop.stop_requested()) {
            self.exit_code_ = 1;
            self.log_->error(std::string("the application ended: ") + e.what());
        }
    } catch (const std::exception& e) {
        self.exit_code_ = 1;
        self.log_->error(std::string("the application failed: ") + e.what());
    } catch (...) {
        self.exit_code_ = 1;
        self.log_->error("the application failed: it threw something that is not a std::exception");
    }
    self.request_stop();
}

void host::impl::spawn_application() {
    const std::lock_guard lock(stop_mutex_);
    if (!application_ || running_ || phase_ != phase::started) return;
    running_.emplace();
    running_->spawn(run_application(*this));
}

int host::impl::run() {
    try {
        const detail::signal_watch signals(wake_);
        if (phase_ == phase::setting_up) start();
        if (worker_ || consuming_) signals.be_patient();
        must_be_started("run");
        log_->info("running on " + std::string(runtime_->name()) + " with " + std::to_string(book_.size()) +
                   (book_.size() == 1 ? " policy" : " policies"));
        spawn_application();
        while (wake_.wait() == detail::wake_up::reload) static_cast<void>(reload()); // logs by itself
        log_->info("stopping");
        may_leave_ = true;
        stop_watching();
        log_->info("stopped");
        return exit_code_;
    } catch (const std::exception& e) {
        log_->error(e.what());
        return 1;
    }
}

void host::impl::request_stop() noexcept {
    wake_.wake(detail::wake_up::stop);
}

void host::impl::stop_own_runtime() noexcept {
    if (own_runtime_) (*own_runtime_)->stop();
}

bool host::impl::handlers_run() const {
    return (worker_ && !worker_->snapshot().running.empty()) || (consuming_ && !consuming_->snapshot().running.empty());
}

duration host::impl::longest_stop_of_work() const {
    const auto most = [](const auto& how) { return sum(how.shutdown_grace, sum(how.last_wait, how.last_wait)); };
    duration longest{};
    if (worker_) longest = std::max(longest, most(config_.jobs.how));
    if (consuming_) longest = std::max(longest, most(config_.consumers.how));
    return sum(longest, to_leave);
}

// A thread that is in a handler cannot be ended, and the runtime's stop waits for it.
void host::impl::leave_if_handlers_run() noexcept {
    if (!handlers_run()) return;
    log_->error("handlers do not end, so the process leaves without them");
    if (::ftrylockfile(stdout) == 0) { // a handler may hold it
        std::cout.flush();
        std::fflush(stdout);
    }
    std::_Exit(exit_code_ == 0 ? 1 : exit_code_.load());
}

void host::impl::stop() noexcept {
    const std::lock_guard lock(stop_mutex_);
    if (phase_.exchange(phase::stopped) == phase::stopped) return;
    stop_.request_stop();
    std::optional<detail::stop_limit> limit; // only what run() runs may be left
    if (may_leave_ && own_runtime_ && (worker_ || consuming_)) limit.emplace([this] { leave_if_handlers_run(); });
    if (limit) limit->allow(longest_stop_of_work());
    stop_work();
    if (limit) limit->allow_any();
    zygote_.reset();
    if (running_) sync_wait(*runtime_, running_->join());
    if (limit) limit->allow(sum(relay_ ? config_.relay.how.last_wait : duration::zero(), to_leave));
    stop_relay(); // last: it still brings what the others have published
    stop_own_runtime();
    limit.reset();
    request_stop(); // a run() on another thread returns
}

} // namespace holdfast
