#include <iostream>

#include <holdfast/plugin_library.hpp>

#include "commands.hpp"
#include "json.hpp"
#include "table.hpp"

namespace holdfast::cli {

namespace {

std::string to_json(const plugin_file& each) {
    json_object object;
    object.add_text("file", each.file.string());
    if (!each.loaded) return object.add_text("refused", each.loaded.error().message).text();
    return object.add_text("kind", to_text(each.loaded->kind()))
        .add_text("name", each.loaded->name())
        .add_text("version", each.loaded->version())
        .add_text("summary", each.loaded->summary())
        .add("abi", std::to_string(each.loaded->descriptor().abi))
        .add_text("toolchain", each.loaded->descriptor().toolchain)
        .text();
}

std::string to_json(const std::vector<plugin_folder>& folders) {
    json_array all;
    for (const plugin_folder& folder : folders) {
        json_array files;
        for (const plugin_file& each : folder.files) files.add(to_json(each));
        json_object object;
        object.add_text("folder", folder.folder.string());
        if (folder.problem) object.add_text("problem", folder.problem->message);
        all.add(object.add("plugins", files.text()).text());
    }
    return json_object().add("folders", all.text()).text() + "\n";
}

std::string to_text(const std::vector<plugin_folder>& folders) {
    std::vector<std::vector<std::string>> rows = {{"KIND", "NAME", "VERSION", "FILE", "SUMMARY"}};
    std::string refused;
    std::string looked_in;
    for (const plugin_folder& folder : folders) {
        looked_in += "  " + (folder.problem ? folder.problem->message : folder.folder.string()) + "\n";
        for (const plugin_file& each : folder.files) {
            if (!each.loaded) {
                refused += "  " + each.loaded.error().message + "\n";
                continue;
            }
            const loaded_plugin& plugin = *each.loaded;
            rows.push_back({std::string(holdfast::to_text(plugin.kind())), std::string(plugin.name()),
                            std::string(plugin.version()), each.file.string(), std::string(plugin.summary())});
        }
    }
    std::string text = rows.size() == 1 ? "no plugins\n" : to_table(rows);
    if (!refused.empty()) text += "\nrefused:\n" + refused;
    return text + "\nlooked in:\n" + looked_in;
}

int list(const arguments& given) {
    std::vector<std::filesystem::path> first;
    for (const std::string& each : given.values("--path")) first.emplace_back(each);
    const auto folders = list_plugins(plugin_search_path(first));
    std::cout << (given.has("--json") ? to_json(folders) : to_text(folders));
    return 0;
}

} // namespace

command plugins_command() {
    return {"plugins",
            "",
            "Lists the plugins that a host would find, and those that it would refuse.",
            {{"--path", "FOLDER", "look here first; may be given several times"}, {"--json", "", "for programs"}},
            &list};
}

} // namespace holdfast::cli
