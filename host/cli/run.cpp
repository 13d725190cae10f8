#include <holdfast/host.hpp>

#include "commands.hpp"

namespace holdfast::cli {

namespace {

int run(const arguments& given) {
    const std::string& file = given.operands().front();
    auto host = host::from_file(file);
    if (!host.has_application())
        throw failed(
            {errc::configuration, file + ": there is no [application] that names the plugin to run", std::nullopt});
    host.start();
    return host.run();
}

} // namespace

command run_command() {
    return {"run",
            "CONFIG",
            "Runs the configured application until it ends or SIGTERM; SIGHUP reloads the policies.",
            {},
            &run};
}

} // namespace holdfast::cli
