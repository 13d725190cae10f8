// Runs the `holdfast` command as a real process.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "support.hpp"

extern char** environ;

namespace support {

struct ended {
    int code = -1; // 128 + signal when a signal ended it
    std::string out;
    std::string err;
};

// Killed with the object if it still runs.
class process {
public:
    // In `folder`, or where the tests run.
    explicit process(std::vector<std::string> arguments, std::string plugin_path = HOLDFAST_BUILD_PLUGIN_DIR,
                     const std::string& folder = {}) {
        arguments.insert(arguments.begin(), HOLDFAST_COMMAND);
        std::vector<std::string> environment = {"HOLDFAST_PLUGIN_PATH=" + plugin_path};
        for (char** each = environ; *each != nullptr; ++each)
            if (!std::string_view(*each).starts_with("HOLDFAST_PLUGIN_PATH=")) environment.emplace_back(*each);

        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(&files, 1, out().c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
        posix_spawn_file_actions_addopen(&files, 2, err().c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_APPEND, 0600);
        if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&files, folder.c_str());
        const int problem = posix_spawn(&id_, HOLDFAST_COMMAND, &files, nullptr, pointers(arguments).data(),
                                        pointers(environment).data());
        posix_spawn_file_actions_destroy(&files);
        if (problem != 0) throw std::runtime_error("cannot start " HOLDFAST_COMMAND);
    }
    ~process() {
        if (id_ <= 0) return;
        ::kill(id_, SIGKILL);
        ::waitpid(id_, nullptr, 0);
    }
    process(const process&) = delete;
    process& operator=(const process&) = delete;

    void signal(int number) const { ::kill(id_, number); }

    // Waits until standard error has the text so many times; false when it does not within ten seconds.
    bool logs(std::string_view text, int times = 1) const {
        for (int i = 0; i < 2000; ++i) {
            if (count(read_file(err()), text) >= times) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
        }
        return false;
    }
    ended wait() {
        int status = 0;
        ::waitpid(id_, &status, 0);
        id_ = -1;
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(out()), read_file(err())};
    }

private:
    static std::vector<char*> pointers(std::vector<std::string>& words) {
        std::vector<char*> all;
        for (std::string& each : words) all.push_back(each.data());
        all.push_back(nullptr);
        return all;
    }
    static int count(std::string_view in, std::string_view text) {
        int found = 0;
        for (std::size_t at = in.find(text); at != in.npos; at = in.find(text, at + text.size())) ++found;
        return found;
    }
    std::string out() const { return (folder_.path() / "out").string(); }
    std::string err() const { return (folder_.path() / "err").string(); }

    temporary_folder folder_;
    pid_t id_ = -1;
};

inline ended run_holdfast(std::vector<std::string> arguments, std::string plugin_path = HOLDFAST_BUILD_PLUGIN_DIR) {
    return process(std::move(arguments), std::move(plugin_path)).wait();
}
inline ended run_holdfast_in(const std::string& folder, std::vector<std::string> arguments) {
    return process(std::move(arguments), HOLDFAST_BUILD_PLUGIN_DIR, folder).wait();
}

} // namespace support
