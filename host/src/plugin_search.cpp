#include <algorithm>
#include <cstdlib>

#include <holdfast/nearest.hpp>
#include <holdfast/plugin_library.hpp>

#include "file_safety.hpp"

namespace holdfast {

namespace {

namespace fs = std::filesystem;

void add_once(std::vector<fs::path>& folders, const fs::path& folder) {
    if (folder.empty()) return;
    std::error_code problem;
    const fs::path real = fs::weakly_canonical(folder, problem);
    const auto same = [&](const fs::path& known) { return fs::weakly_canonical(known, problem) == real; };
    if (std::ranges::none_of(folders, same)) folders.push_back(folder);
}

void add_from_environment(std::vector<fs::path>& folders) {
    const char* variable = ::secure_getenv("HOLDFAST_PLUGIN_PATH");
    if (variable == nullptr) return;
    std::string_view rest = variable;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(':'), rest.size());
        add_once(folders, rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
}

void add_beside_executable(std::vector<fs::path>& folders) {
    std::error_code problem;
    const fs::path executable = fs::read_symlink("/proc/self/exe", problem);
    if (problem) return;
    const fs::path bin = executable.parent_path();
#if defined(HOLDFAST_PLUGIN_DIR_FROM_BIN)
    add_once(folders, (bin / HOLDFAST_PLUGIN_DIR_FROM_BIN).lexically_normal());
#endif
    add_once(folders, (bin / "../lib/holdfast/plugins").lexically_normal());
    add_once(folders, bin / "plugins");
    add_once(folders, (bin / "../plugins").lexically_normal()); // a build tree
}

plugin_folder list_folder(const fs::path& folder) {
    plugin_folder listed{folder, std::nullopt, {}};
    std::error_code problem;
    if (!fs::is_directory(folder, problem)) {
        listed.problem = error{errc::not_found, folder.string() + ": there is no such folder", {}};
        return listed;
    }
    if (auto safe = detail::check_safe_folder(folder); !safe) {
        listed.problem = std::move(safe.error());
        return listed;
    }
    std::vector<fs::path> files;
    for (fs::directory_iterator each(folder, problem), end; !problem && each != end; each.increment(problem))
        if (each->path().extension() == ".so") files.push_back(each->path());
    if (problem) {
        listed.problem = error{errc::plugin, folder.string() + ": cannot be read: " + problem.message(), {}};
        return listed;
    }
    std::ranges::sort(files);
    for (const fs::path& file : files) listed.files.push_back({file, load_plugin(file)});
    return listed;
}

// A message that begins with the path it is about, without that path.
std::string without_path(const std::string& message, const fs::path& path) {
    const std::string prefix = path.string() + ": ";
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

// "/opt/plugins: asio (runtime), old.so (refused: built for ABI 3 …)"
std::string what_is_in(const plugin_folder& in) {
    std::string text = in.folder.string() + ": ";
    if (in.problem) return text + without_path(in.problem->message, in.folder);
    if (in.files.empty()) return text + "no plugins";
    for (const char* separator = ""; const plugin_file& each : in.files) {
        text += std::exchange(separator, ", ");
        if (each.loaded)
            text += std::string(each.loaded->name()) + " (" + std::string(to_text(each.loaded->kind())) + ")";
        else
            text += each.file.filename().string() +
                    " (refused: " + without_path(each.loaded.error().message, each.file) + ")";
    }
    return text;
}

} // namespace

std::vector<fs::path> plugin_search_path(const std::vector<fs::path>& first) {
    std::vector<fs::path> folders;
    for (const fs::path& each : first) add_once(folders, each);
    add_from_environment(folders);
    add_beside_executable(folders);
#if defined(HOLDFAST_DEFAULT_PLUGIN_DIR)
    add_once(folders, HOLDFAST_DEFAULT_PLUGIN_DIR);
#endif
    return folders;
}

std::vector<plugin_folder> list_plugins(const std::vector<fs::path>& folders) {
    std::vector<plugin_folder> listed;
    listed.reserve(folders.size());
    for (const fs::path& each : folders) listed.push_back(list_folder(each));
    return listed;
}

result<loaded_plugin> find_plugin(const std::vector<plugin_folder>& in, plugin_kind kind, std::string_view name,
                                  logger& log) {
    const loaded_plugin* found = nullptr;
    std::vector<std::string> known;
    for (const plugin_folder& folder : in) {
        for (const plugin_file& each : folder.files) {
            if (!each.loaded || each.loaded->kind() != kind) continue;
            known.emplace_back(each.loaded->name());
            if (each.loaded->name() != name) continue;
            if (found == nullptr) found = &*each.loaded;
            else
                log.warning(each.file.string() + ": ignored: the " + std::string(to_text(kind)) + " plugin \"" +
                            std::string(name) + "\" is taken from " + found->file().string());
        }
    }
    if (found != nullptr) return *found;

    std::string message = "there is no " + std::string(to_text(kind)) + " plugin \"" + std::string(name) + "\"";
    const std::string suggestion = did_you_mean(name, known);
    message += suggestion.empty() ? "." : suggestion;
    message += " Looked in ";
    for (const char* separator = ""; const plugin_folder& folder : in)
        message += std::exchange(separator, "; ") + what_is_in(folder);
    return fail(errc::plugin, std::move(message));
}

} // namespace holdfast
