#include "harness/redis_server.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/free_port.hpp"

namespace holdfast::harness {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

struct descriptor {
    int number = -1;
    ~descriptor() {
        if (number >= 0) ::close(number);
    }
};

// One command and its answer. Throws unreachable.
struct unreachable {};
class conversation {
public:
    conversation(std::uint16_t port, const std::string& command)
        : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const timeval limit{5, 0};
        ::setsockopt(socket_.number, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        if (::connect(socket_.number, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) throw unreachable();
        const std::string line = command + "\r\n";
        if (::send(socket_.number, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
            throw unreachable();
    }

    std::string line() {
        std::size_t end = 0;
        while ((end = read_.find("\r\n")) == std::string::npos) more();
        std::string taken = read_.substr(0, end);
        read_.erase(0, end + 2);
        return taken;
    }
    // The texts and numbers of a whole answer; one of several lines is taken apart.
    void all(std::vector<std::string>& into) {
        const std::string head = line();
        if (head.starts_with('*')) {
            for (int i = std::stoi(head.substr(1)); i > 0; --i) all(into);
        } else if (!head.starts_with('$')) {
            into.push_back(head);
        } else if (const int size = std::stoi(head.substr(1)); size >= 0) {
            while (read_.size() < static_cast<std::size_t>(size) + 2) more();
            std::istringstream text(read_.substr(0, static_cast<std::size_t>(size)));
            read_.erase(0, static_cast<std::size_t>(size) + 2);
            for (std::string each; std::getline(text, each);) {
                if (each.ends_with('\r')) each.pop_back();
                into.push_back(std::move(each));
            }
        }
    }

private:
    void more() {
        std::array<char, 4096> part{};
        const ssize_t got = ::recv(socket_.number, part.data(), part.size(), 0);
        if (got <= 0) throw unreachable();
        read_.append(part.data(), static_cast<std::size_t>(got));
    }

    descriptor socket_;
    std::string read_;
};

// The first line of the answer; nothing when the server cannot be reached.
std::optional<std::string> ask(std::uint16_t port, const std::string& command) {
    try {
        return conversation(port, command).line();
    } catch (const unreachable&) {
        return std::nullopt;
    }
}

std::optional<fs::path> program(const char* name) {
    std::istringstream path(std::getenv("PATH") == nullptr ? "/usr/bin" : std::getenv("PATH"));
    for (std::string folder; std::getline(path, folder, ':');)
        if (::access((fs::path(folder) / name).c_str(), X_OK) == 0) return fs::path(folder) / name;
    return std::nullopt;
}

// See redis_server::tls_file().
void make_certificates(const fs::path& folder) {
    const auto openssl = openssl_binary();
    if (!openssl) throw std::runtime_error("openssl is not installed");
    fs::create_directory(folder);
    const auto make = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), openssl->string());
        if (run({.arguments = arguments, .output = folder / "log", .folder = folder}) != 0)
            throw std::runtime_error("openssl " + arguments.at(1) + " failed");
    };
    // A key, and whatever else is asked for that key.
    const auto request = [&](const std::string& name, const std::vector<std::string>& what) {
        std::vector<std::string> all = {"req",    "-newkey", "ec",          "-pkeyopt", "ec_paramgen_curve:prime256v1",
                                        "-nodes", "-subj",   "/CN=" + name, "-keyout",  name + ".key"};
        all.insert(all.end(), what.begin(), what.end());
        make(all);
    };
    for (const std::string name : {"ca", "other"}) request(name, {"-x509", "-days", "2", "-out", name + ".crt"});
    std::ofstream(folder / "names") << "subjectAltName = IP:127.0.0.1\n";
    for (const std::string name : {"server", "client"}) {
        request(name, {"-out", name + ".csr"});
        make({"x509", "-req", "-days", "2", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key",
              "-CAcreateserial", "-extfile", "names", "-out", name + ".crt"});
    }
}

} // namespace

std::optional<fs::path> redis_binary() {
    return program("redis-server");
}

std::optional<fs::path> openssl_binary() {
    return program("openssl");
}

std::optional<std::vector<std::string>> redis_lines(std::uint16_t port, const std::string& command) {
    try {
        std::vector<std::string> found;
        conversation(port, command).all(found);
        return found;
    } catch (const unreachable&) {
        return std::nullopt;
    }
}

redis_server::redis_server(redis_options options) : options_(std::move(options)) {
    const auto binary = redis_binary();
    if (!binary) throw std::runtime_error("Redis is not installed");
    binary_ = *binary;
    fs::create_directory(folder_ / "data");
    if (options_.tls) make_certificates(folder_ / "tls");
    start();
}

redis_server::~redis_server() {
    try {
        stop();
    } catch (...) {
        server_.reset();
    }
}

void redis_server::choose_ports() {
    port_ = free_port();
    if (options_.tls) tls_port_ = free_port();
}

void redis_server::launch() {
    command server;
    server.arguments = {binary_.string(),
                        "--port",
                        std::to_string(port_),
                        "--bind",
                        "127.0.0.1",
                        "--dir",
                        (folder_ / "data").string(),
                        "--save",
                        "",
                        "--appendonly",
                        options_.append_only ? "yes" : "no",
                        "--appendfsync",
                        options_.fsync};
    if (options_.tls)
        server.arguments.insert(server.arguments.end(),
                                {"--tls-port", std::to_string(tls_port_), "--tls-ca-cert-file", tls_file("ca.crt"),
                                 "--tls-cert-file", tls_file("server.crt"), "--tls-key-file", tls_file("server.key")});
    for (const std::string& each : options_.arguments) server.arguments.push_back(each);
    server.output = log();
    server_ = std::make_unique<child_process>(server);
}

void redis_server::start() {
    if (server_ && server_->running()) return;
    const bool first = port_ == 0;
    if (first) choose_ports();
    launch();
    const auto give_up = std::chrono::steady_clock::now() + 30s;
    for (;;) {
        const auto answer = ask(port_, "PING");
        if (server_->running() && answer && (answer->starts_with("+PONG") || answer->starts_with("-NOAUTH"))) return;
        if (std::chrono::steady_clock::now() >= give_up)
            throw std::runtime_error("Redis does not start:\n" + end_of_log());
        if (!server_->running()) {
            if (first) choose_ports(); // somebody took one
            launch();
        }
        std::this_thread::sleep_for(10ms);
    }
}

void redis_server::stop() {
    thaw();
    if (server_) server_->stop(SIGTERM, 10s);
    server_.reset();
}

void redis_server::freeze() {
    if (server_) server_->signal(SIGSTOP);
}

void redis_server::thaw() {
    if (server_) server_->signal(SIGCONT);
}

void redis_server::kill() {
    if (!server_) return;
    server_->signal(SIGKILL);
    server_->wait(10s);
    server_.reset();
}

// Since version 7 there are several in a folder, and the one with the newest commands is called so.
fs::path redis_server::append_file() const {
    for (const auto& each : fs::recursive_directory_iterator(folder_ / "data"))
        if (each.path().extension() == ".aof" && each.path().string().find(".base.") == std::string::npos)
            return each.path();
    throw std::runtime_error("Redis has written no append-only file");
}

std::uintmax_t redis_server::written() const {
    return fs::file_size(append_file());
}

void redis_server::lose_tail(std::uintmax_t bytes) const {
    const fs::path file = append_file();
    fs::resize_file(file, fs::file_size(file) - bytes);
}

std::string redis_server::tell(const std::string& command) const {
    auto answer = ask(port_, command);
    if (!answer) throw std::runtime_error("Redis does not answer:\n" + end_of_log());
    return *answer;
}

std::vector<std::string> redis_server::lines(const std::string& command) const {
    auto found = redis_lines(port_, command);
    if (!found) throw std::runtime_error("Redis does not answer:\n" + end_of_log());
    return *found;
}

std::string redis_server::end_of_log() const {
    std::ifstream file(log(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    const std::string all = text.str();
    return all.size() > 2000 ? all.substr(all.size() - 2000) : all;
}

} // namespace holdfast::harness
