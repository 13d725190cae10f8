#include "file_safety.hpp"

#include <string>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

namespace holdfast::detail {

namespace {

namespace fs = std::filesystem;

std::unexpected<error> refuse(const fs::path& what, std::string_view who, std::string_view kind,
                              std::string_view mend) {
    return fail(errc::plugin, what.string() + ": " + std::string(who) + " may write to this " + std::string(kind) +
                                  "; refused until: chmod " + std::string(mend) + " " + what.string());
}

result<void> check(const fs::path& path, std::string_view kind, bool sticky_will_do) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) return fail(errc::plugin, path.string() + ": cannot be looked at");
    if (sticky_will_do && (found.st_mode & S_ISVTX) != 0) return {};
    if ((found.st_mode & S_IWOTH) != 0) return refuse(path, "anyone", kind, "o-w");
    const bool group_is_ours = found.st_gid == 0 || found.st_gid == ::getegid();
    if ((found.st_mode & S_IWGRP) != 0 && !group_is_ours)
        return refuse(path, "group " + std::to_string(found.st_gid), kind, "g-w");
    return {};
}

} // namespace

result<void> check_safe_folder(const fs::path& folder) {
    return check(folder, "folder", false);
}

result<void> check_safe_file(const fs::path& file) {
    if (auto safe = check(file, "file", false); !safe) return safe;
    std::error_code problem;
    const fs::path real = fs::canonical(file, problem);
    if (problem) return fail(errc::plugin, file.string() + ": cannot be looked at");
    // Named as the user did where the file is no link.
    const fs::path named = file.has_parent_path() ? file.parent_path() : fs::path(".");
    const bool same = fs::equivalent(named, real.parent_path(), problem);
    return check(same ? named : real.parent_path(), "folder", true);
}

} // namespace holdfast::detail
