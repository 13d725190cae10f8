// Chooses at start-up what runs the declared policies, by a configuration file.
//
//   auto host = holdfast::host::from_file("desk.toml");
//   host.add(invoice_email, webhook);
//   return host.run();
//
// Members throw holdfast::failed, with a message of one line that says what, where and what was expected.
#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/logger.hpp>
#include <holdfast/policies.hpp>
#include <holdfast/policy.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast {

// A policy as the program declared it and as it is in force.
struct policy_in_force {
    std::string name;
    policy_options declared;
    policy_options effective;
    std::vector<std::string> warnings;
};

// Set it up on one thread; once started, policies(), runtime(), log(), reload(), request_stop() and stop() may be
// called from any. Its destructor stops it.
class host {
public:
    // Reads and checks the configuration; loads nothing yet. Relative paths in it start at the file's folder.
    static host from_file(const std::filesystem::path& file);
    // The same from text; `name` stands for the file in messages and for its folder in paths.
    static host from_text(std::string_view toml, std::string_view name = "configuration");

    host(host&&) noexcept;
    host& operator=(host&&) noexcept;
    ~host();

    // Before start(). errc::duplicate when a name is taken.
    template <std::same_as<policy>... More>
    host& add(const policy& first, const More&... more) {
        add_one(first);
        (add_one(more), ...);
        return *this;
    }
    // Before start(): runs on a runtime of the program's own, which outlives the host and is not stopped by it; stop it
    // before the host is destroyed. The configuration must not have a [runtime] then.
    host& use(holdfast::runtime& mine);
    // Before start(): messages go here and not to standard error; [log] has no effect then.
    host& log_to(std::shared_ptr<logger> sink);
    // Before start(): [policies.NAME] of a policy that was not added is logged and not refused. For tools that look at
    // a configuration without the program that it belongs to.
    host& allow_unknown_policies();

    // Loads the plugins that the configuration names, starts the runtime, puts the policies in force. Once.
    void start();

    // Only after start(), but for log(). After stop() they can still be asked; calls then end as stopped.
    holdfast::policies& policies();
    holdfast::runtime& runtime();
    logger& log();

    // Starts if that was not done, and the application plugin if there is one, and returns when that has ended, after
    // SIGTERM, SIGINT or request_stop(), stopped. SIGHUP reloads. Gives the application's exit code, 0 without one, 1
    // when it cannot start (the reason is logged). A second SIGTERM or SIGINT ends the process at once, 128 + signal.
    int run();
    // Makes run() return. Also from the runtime's own threads.
    void request_stop() noexcept;

    // Reads the file again and puts its [policies.*] in force, all of them or, when anything in the file is wrong,
    // none; logs either. Calls under way finish on what they started with. Other sections count at the next start.
    result<void> reload();

    // Asks the application to stop, waits until it has, then stops the runtime: nothing runs afterwards. Not from the
    // runtime's own threads. Calling it again does nothing.
    void stop() noexcept;

    // All policies, in the order of their declaration, those of the application plugin last. Only after start().
    std::vector<policy_in_force> policies_in_force() const;
    // Where plugins are looked for.
    std::vector<std::filesystem::path> plugin_folders() const;
    // Whether the configuration names an application plugin.
    bool has_application() const noexcept;

private:
    class impl;
    explicit host(std::unique_ptr<impl> made) noexcept;
    void add_one(const policy& p);

    std::unique_ptr<impl> impl_;
};

} // namespace holdfast
