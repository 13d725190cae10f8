#include "harness/postgres_server.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include "harness/free_port.hpp"

namespace holdfast::harness {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

void write_file(const fs::path& path, const std::string& text, const std::optional<user>& owner) {
    std::ofstream(path, std::ios::binary | std::ios::app) << text;
    if (owner && ::chown(path.c_str(), owner->id, owner->group) != 0)
        throw std::runtime_error("cannot change the owner of " + path.string());
}

std::string random_word() {
    std::random_device device;
    std::string word;
    for (int i = 0; i < 16; ++i) word += "abcdefghijklmnopqrstuvwxyz234567"[device() % 32];
    return word;
}

} // namespace

std::optional<fs::path> postgres_binaries() {
    std::vector<std::pair<int, fs::path>> found;
    std::error_code none;
    for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none)) {
        const fs::path binaries = version.path() / "bin";
        if (fs::exists(binaries / "initdb") && fs::exists(binaries / "postgres") && fs::exists(binaries / "psql"))
            found.emplace_back(std::atoi(version.path().filename().c_str()), binaries);
    }
    if (!found.empty()) return std::ranges::max_element(found)->second;
    std::istringstream path(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
    for (std::string folder; std::getline(path, folder, ':');)
        if (fs::exists(fs::path(folder) / "initdb") && fs::exists(fs::path(folder) / "postgres"))
            return fs::path(folder);
    return std::nullopt;
}

postgres_server::postgres_server(postgres_options options) : password_(random_word()) {
    const auto binaries = postgres_binaries();
    if (!binaries) throw std::runtime_error("PostgreSQL is not installed");
    binaries_ = *binaries;
    user_ = unprivileged_user({"postgres"});
    if (user_) folder_.give_to(user_->id, user_->group);
    write_file(folder_ / "password", password_ + "\n", user_);
    write_file(log(), "", user_);

    command initdb;
    initdb.arguments = {(binaries_ / "initdb").string(),
                        "--no-sync",
                        "--username=holdfast",
                        "--encoding=UTF8",
                        "--locale=C",
                        "--auth=scram-sha-256",
                        "--pwfile=" + (folder_ / "password").string(),
                        "--pgdata=" + (folder_ / "data").string()};
    initdb.as = user_;
    initdb.output = log();
    if (run(initdb) != 0) throw std::runtime_error("initdb failed:\n" + end_of_log());

    std::string settings = "listen_addresses = '127.0.0.1'\n"
                           "unix_socket_directories = '" +
                           folder_.path().string() +
                           "'\n"
                           "max_connections = " +
                           std::to_string(options.max_connections) +
                           "\n"
                           "shared_buffers = 64MB\nmax_wal_size = 2GB\n"
                           "dynamic_shared_memory_type = mmap\n" // nothing of it stays in /dev/shm after a kill
                           "log_min_messages = warning\n";
    if (!options.fsync) settings += "fsync = off\nfull_page_writes = off\n";
    for (const std::string& line : options.settings) settings += line + "\n";
    write_file(folder_ / "data/postgresql.conf", settings, std::nullopt);
    start();
}

postgres_server::~postgres_server() {
    try {
        stop();
    } catch (...) {
        server_.reset();
    }
}

std::string postgres_server::url() const {
    return "postgresql://holdfast:" + password_ + "@127.0.0.1:" + std::to_string(port_) + "/postgres";
}

std::string postgres_server::socket_url() const {
    std::string folder;
    for (const char c : folder_.path().string()) folder += c == '/' ? std::string("%2F") : std::string(1, c);
    return "postgresql://holdfast:" + password_ + "@" + folder + ":" + std::to_string(port_) + "/postgres";
}

void postgres_server::launch() {
    command server;
    server.arguments = {(binaries_ / "postgres").string(), "-D", (folder_ / "data").string(), "-p",
                        std::to_string(port_)};
    server.as = user_;
    server.output = log();
    server.on_death = SIGQUIT; // it takes its own children along
    server_ = std::make_unique<child_process>(server);
}

void postgres_server::start() {
    if (server_ && server_->running()) return;
    const bool first = port_ == 0;
    if (first) port_ = free_port();
    launch();
    const auto give_up = std::chrono::steady_clock::now() + 60s;
    while (!accepts()) {
        if (!server_->running()) {
            // Somebody took the port, or a backend of a killed server still holds the shared memory.
            if (std::chrono::steady_clock::now() >= give_up)
                throw std::runtime_error("PostgreSQL does not start:\n" + end_of_log());
            if (first) port_ = free_port();
            std::this_thread::sleep_for(20ms);
            launch();
        }
        if (std::chrono::steady_clock::now() >= give_up)
            throw std::runtime_error("PostgreSQL does not accept connections:\n" + end_of_log());
        std::this_thread::sleep_for(10ms);
    }
}

void postgres_server::stop() {
    if (server_) server_->stop(SIGINT, 20s);
    server_.reset();
}

void postgres_server::kill() {
    if (!server_) return;
    server_->signal(SIGKILL);
    server_->wait(10s);
    server_.reset();
}

// The lock file's last line says "ready" when it does.
bool postgres_server::accepts() const {
    return read_file(folder_ / "data/postmaster.pid").find("ready") != std::string::npos &&
           read_file(folder_ / "data/postmaster.pid").starts_with(std::to_string(id()) + "\n");
}

std::string postgres_server::psql(const std::string& sql) const {
    const fs::path output = folder_ / "psql";
    std::error_code ignored;
    fs::remove(output, ignored);
    write_file(output, "", user_);
    command psql;
    psql.arguments = {
        (binaries_ / "psql").string(), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", socket_url(), "-c", sql};
    psql.as = user_;
    psql.output = output;
    const int code = run(psql);
    std::string text = read_file(output);
    if (code != 0) throw std::runtime_error("psql: " + text);
    while (text.ends_with('\n')) text.pop_back();
    return text;
}

std::string postgres_server::end_of_log() const {
    const std::string text = read_file(log());
    return text.size() > 2000 ? text.substr(text.size() - 2000) : text;
}

} // namespace holdfast::harness
