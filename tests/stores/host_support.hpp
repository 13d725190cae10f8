// Hosts on the shipped plugins, for the tests of stores that need a server.
#pragma once

#include <memory>
#include <string>

#include <holdfast/host.hpp>

namespace holdfast::test {

// Why a host does not start on this configuration, whose lines begin at 3; empty when it does.
inline std::string start_refusal(const std::string& toml) {
    auto made = host::from_text("[plugins]\npath = ['" HOLDFAST_BUILD_PLUGIN_DIR "']\n" + toml, "desk.toml");
    try {
        made.log_to(std::make_shared<null_logger>()).start();
    } catch (const failed& e) {
        return e.what();
    }
    return {};
}

} // namespace holdfast::test
