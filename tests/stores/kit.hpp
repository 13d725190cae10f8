// The store kit in these programs: with a second process, and `holdfast verify` as users have it.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/store_conformance.hpp>

#include "child_rival.hpp"
#include "harness/child_process.hpp"
#include "harness/temporary_folder.hpp"
#include "stores/support.hpp"

namespace holdfast::test {

inline std::vector<std::string> verify_command(const std::string& plugin, const text_settings& with) {
    const std::string folder = HOLDFAST_BUILD_PLUGIN_DIR;
    std::vector<std::string> words = {HOLDFAST_COMMAND, "verify", folder + "/store_" + plugin + ".so", "--runtime",
                                      folder + "/runtime_asio.so"};
    for (const auto& [key, value] : with) words.insert(words.end(), {"--option", key + "=" + value});
    return words;
}

// The second process on what is kept under that name.
inline std::unique_ptr<conformance::rival> rival_process(const std::string& plugin, const text_settings& with,
                                                         const std::string& space) {
    auto words = verify_command(plugin, with);
    words.insert(words.end(), {"--rival", space});
    return std::make_unique<cli::child_rival>(std::move(words));
}

// HOLDFAST_SEED=n repeats the walk of a case that failed.
inline std::uint64_t kit_seed() {
    const char* text = std::getenv("HOLDFAST_SEED");
    return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

struct verified {
    int code = -1; // -1: it did not end
    std::string output;
};

inline verified verify(const std::string& plugin, const text_settings& with, std::vector<std::string> more) {
    const harness::temporary_folder folder("hfverify");
    harness::command what;
    what.arguments = verify_command(plugin, with);
    what.arguments.insert(what.arguments.end(), more.begin(), more.end());
    what.output = folder / "output";
    harness::child_process running(what);
    const int code = running.wait(std::chrono::minutes{4}).value_or(-1);
    std::ifstream file(folder / "output");
    return {code, {std::istreambuf_iterator<char>(file), {}}};
}

} // namespace holdfast::test
