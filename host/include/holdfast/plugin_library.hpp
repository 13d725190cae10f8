// Plugin files: finding them, loading them, and refusing those that do not fit, with a message that names the file,
// what was expected and what was found. Whatever was loaded stays loaded until the process ends. Any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/application.hpp>
#include <holdfast/error.hpp>
#include <holdfast/event_transport.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/plugin.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/settings.hpp>
#include <holdfast/store.hpp>

namespace holdfast {

// A plugin file that fits this host. Cheap to copy.
class loaded_plugin {
public:
    loaded_plugin(std::filesystem::path file, const plugin_descriptor& found) noexcept
        : file_(std::move(file)), descriptor_(&found) {}

    const std::filesystem::path& file() const noexcept { return file_; }
    const plugin_descriptor& descriptor() const noexcept { return *descriptor_; }
    plugin_kind kind() const noexcept { return static_cast<plugin_kind>(descriptor_->kind); }
    std::string_view name() const noexcept { return descriptor_->name; }
    std::string_view version() const noexcept { return descriptor_->version; }
    std::string_view summary() const noexcept { return descriptor_->summary; }

private:
    std::filesystem::path file_;
    const plugin_descriptor* descriptor_;
};

// errc::plugin when the file is absent, damaged, writable by others, or not built for this host. Runs no function of
// the plugin, though the system runs the initialisers of its globals.
result<loaded_plugin> load_plugin(const std::filesystem::path& file);

namespace detail {

class given_context final : public plugin_context {
public:
    given_context(holdfast::settings with, logger& log, holdfast::runtime* on)
        : settings_(std::move(with)), log_(log), runtime_(on) {}
    holdfast::settings& settings() noexcept override { return settings_; }
    logger& log() noexcept override { return log_; }
    holdfast::runtime* runtime() noexcept override { return runtime_; }

private:
    holdfast::settings settings_;
    logger& log_;
    holdfast::runtime* runtime_;
};

} // namespace detail

// What a plugin made, with the context it was given; destroyed by the plugin.
template <class Interface>
class plugin_instance {
public:
    using destroyer = void (*)(void*) noexcept;

    plugin_instance(std::unique_ptr<detail::given_context> context, Interface* made, destroyer destroy) noexcept
        : context_(std::move(context)), made_(made, deleter{destroy}) {}

    plugin_instance(plugin_instance&&) noexcept = default;
    plugin_instance& operator=(plugin_instance&&) = delete;

    Interface& operator*() const noexcept { return *made_; }
    Interface* operator->() const noexcept { return made_.get(); }

private:
    struct deleter {
        destroyer destroy;
        void operator()(Interface* made) const noexcept { destroy(made); }
    };

    std::unique_ptr<detail::given_context> context_; // outlives what was made
    std::unique_ptr<Interface, deleter> made_;
};

// errc::plugin when the plugin is of another kind or fails, with its reason; errc::configuration when a setting is
// wrong or unknown to the plugin. The logger, and the runtime, must outlive what was created.
result<plugin_instance<runtime>> create_runtime(const loaded_plugin& from, settings with, logger& log);
result<plugin_instance<store>> create_store(const loaded_plugin& from, settings with, logger& log, runtime& on);
result<plugin_instance<event_transport>> create_events(const loaded_plugin& from, settings with, logger& log,
                                                       runtime& on);
result<plugin_instance<application>> create_application(const loaded_plugin& from, settings with, logger& log,
                                                        runtime& on);

struct plugin_file {
    std::filesystem::path file;
    result<loaded_plugin> loaded;
};

struct plugin_folder {
    std::filesystem::path folder;
    std::optional<error> problem;   // why nothing is taken from it: errc::not_found when there is no such folder
    std::vector<plugin_file> files; // every *.so, by name
};

// The folders to look in: `first`, then HOLDFAST_PLUGIN_PATH (separated by ':'), then those that belong to the running
// executable, then the one that Holdfast was built to be installed in. Each once.
std::vector<std::filesystem::path> plugin_search_path(const std::vector<std::filesystem::path>& first = {});

// Loads every *.so of the folders.
std::vector<plugin_folder> list_plugins(const std::vector<std::filesystem::path>& folders);

// The first plugin of that kind and name; warns when there are more. errc::plugin, with everything that was looked at,
// when there is none.
result<loaded_plugin> find_plugin(const std::vector<plugin_folder>& in, plugin_kind kind, std::string_view name,
                                  logger& log);

} // namespace holdfast
