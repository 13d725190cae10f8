// A folder that goes away with the object, and with the process however that ends.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

namespace holdfast::harness {

class temporary_folder {
public:
    // Throws std::filesystem::filesystem_error. The path is short enough for a Unix socket inside.
    explicit temporary_folder(const std::string& prefix = "holdfast");
    ~temporary_folder();
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;

    const std::filesystem::path& path() const noexcept { return path_; }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

    // Makes that user the owner, where this process may.
    void give_to(uid_t user, gid_t group) const;

private:
    std::filesystem::path path_;
    pid_t made_by_;
    pid_t sweeper_ = -1; // removes the folder when this process is killed
    int sweeper_pipe_ = -1;
};

} // namespace holdfast::harness
