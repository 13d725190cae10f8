// Shared by the tests of the host.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <stdlib.h>

#include <holdfast/error.hpp>
#include <holdfast/logger.hpp>

namespace support {

namespace fs = std::filesystem;

inline fs::path fixture(std::string_view name) {
    return fs::path(HOLDFAST_FIXTURE_DIR) / (std::string(name) + ".so");
}

inline void write_file(const fs::path& file, std::string_view text) {
    std::ofstream(file, std::ios::binary) << text;
}

inline std::string read_file(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
}

// A folder of the test's own, gone with it.
class temporary_folder {
public:
    temporary_folder() {
        std::string name = (fs::temp_directory_path() / "holdfast-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
        path_ = name;
    }
    ~temporary_folder() { fs::remove_all(path_); }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;

    const fs::path& path() const { return path_; }
    std::string text() const { return path_.string(); }
    fs::path write(std::string_view name, std::string_view text) const {
        write_file(path_ / name, text);
        return path_ / name;
    }
    // A copy of a fixture, in this folder.
    fs::path plugin(std::string_view name, std::string_view as = {}) const {
        const fs::path file = path_ / (std::string(as.empty() ? name : as) + ".so");
        fs::copy_file(fixture(name), file, fs::copy_options::overwrite_existing);
        return file;
    }

private:
    fs::path path_;
};

// Keeps "level message" lines.
class kept_log final : public holdfast::logger {
public:
    bool enabled(holdfast::log_level) const noexcept override { return true; }
    void write(holdfast::log_level level, std::string_view message) noexcept override {
        const std::lock_guard lock(mutex_);
        lines_.push_back(std::string(to_text(level)) + " " + std::string(message));
    }
    std::vector<std::string> lines() const {
        const std::lock_guard lock(mutex_);
        return lines_;
    }
    bool has(const std::string& line) const {
        const auto all = lines();
        return std::ranges::find(all, line) != all.end();
    }
    std::string text() const {
        std::string all;
        for (const auto& line : lines()) all += line + "\n";
        return all;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

// The message of the holdfast::failed that the function throws.
template <class Function>
std::string message_of(Function&& function) {
    try {
        function();
    } catch (const holdfast::failed& e) {
        return e.what();
    }
    return "nothing was thrown";
}

} // namespace support
