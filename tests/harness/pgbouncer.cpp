#include "harness/pgbouncer.hpp"

#include <chrono>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "harness/free_port.hpp"

namespace holdfast::harness {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::optional<fs::path> pgbouncer_binary() {
    for (const char* folder : {"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"})
        if (const fs::path file = fs::path(folder) / "pgbouncer"; fs::exists(file)) return file;
    return std::nullopt;
}

pgbouncer::pgbouncer(const postgres_server& of, pgbouncer_options options) : login_("holdfast:" + of.password()) {
    const auto give_up = std::chrono::steady_clock::now() + 30s;
    start(of, options);
    while (log().find("process up") == std::string::npos) {
        if (std::chrono::steady_clock::now() >= give_up)
            throw std::runtime_error("PgBouncer does not start:\n" + log());
        std::this_thread::sleep_for(10ms);
        if (!process_->running()) start(of, options); // somebody took the port
    }
}

void pgbouncer::start(const postgres_server& of, const pgbouncer_options& options) {
    port_ = free_port();
    std::ofstream(folder_ / "users") << "\"holdfast\" \"" << of.password() << "\"\n";
    std::ofstream(folder_ / "config") << "[databases]\n* = host=127.0.0.1 port=" << of.port()
                                      << "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " << port_
                                      << "\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = "
                                      << (folder_ / "users").string()
                                      << "\npool_mode = transaction\ndefault_pool_size = " << options.sessions
                                      << "\nserver_round_robin = " << (options.round_robin ? 1 : 0) << "\n";
    command bouncer;
    bouncer.arguments = {pgbouncer_binary().value().string(), (folder_ / "config").string()};
    bouncer.as = unprivileged_user({"postgres"}); // it refuses to run as root
    if (bouncer.as) folder_.give_to(bouncer.as->id, bouncer.as->group);
    bouncer.output = folder_ / "log";
    process_ = std::make_unique<child_process>(bouncer);
}

std::string pgbouncer::url() const {
    return "postgresql://" + login_ + "@127.0.0.1:" + std::to_string(port_) + "/postgres";
}

std::string pgbouncer::log() const {
    std::ifstream file(folder_ / "log");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

} // namespace holdfast::harness
