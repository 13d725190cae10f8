#include "mail_server.hpp"

#include <chrono>
#include <functional>
#include <stdexcept>
#include <system_error>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

constexpr int server_threads = 16;

// Owns a socket.
class connection {
public:
    explicit connection(int socket) : socket_(socket) {}
    ~connection() {
        if (socket_ >= 0) ::close(socket_);
    }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    int socket() const { return socket_; }

private:
    int socket_;
};

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

std::string read_line(int socket) {
    std::string line;
    char c = 0;
    while (line.size() < 1000 && ::recv(socket, &c, 1, 0) == 1 && c != '\n') line += c;
    return line;
}

void write_line(int socket, std::string line) {
    line += '\n';
    [[maybe_unused]] const auto sent = ::send(socket, line.data(), line.size(), MSG_NOSIGNAL);
}

// The same every time for the same mail and the same try.
unsigned luck(const std::string& key, int request) {
    std::uint64_t mixed = std::hash<std::string>{}(key) + 0x9e3779b97f4a7c15ULL * static_cast<unsigned>(request);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    return static_cast<unsigned>((mixed ^ (mixed >> 31)) % 100);
}

} // namespace

mail_server::mail_server() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 128) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
        throw std::system_error(errno, std::generic_category(), "the mail server cannot listen");
    port_ = ntohs(address.sin_port);
    for (int i = 0; i < server_threads; ++i)
        threads_.emplace_back([this](std::stop_token stop) { serve(std::move(stop)); });
}

mail_server::~mail_server() {
    threads_.clear();
    ::close(listener_);
}

std::map<std::string, mailbox_entry> mail_server::entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
}

void mail_server::serve(std::stop_token stop) {
    pollfd waiting{listener_, POLLIN, 0};
    while (!stop.stop_requested()) {
        if (::poll(&waiting, 1, 50) <= 0) continue;
        const connection with(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
        if (with.socket() < 0) continue; // another thread was quicker
        const timeval patience{1, 0};
        ::setsockopt(with.socket(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        answer(with.socket());
    }
}

void mail_server::answer(int connection) {
    const std::string key = read_line(connection);
    const std::string to = read_line(connection);
    if (key.empty() || to.empty()) return;
    const std::string said = take(key, to);
    if (!said.empty()) write_line(connection, said);
}

std::string mail_server::take(const std::string& key, const std::string& to) {
    int request = 0;
    {
        const std::lock_guard lock(mutex_);
        mailbox_entry& entry = entries_[key];
        request = ++entry.requests;
        if (entry.delivered > 0) {
            ++entry.recognised;
            return "250 I have that one";
        }
    }
    std::this_thread::sleep_for(20ms + std::chrono::milliseconds{luck(key, -request)});
    if (to.find("@nowhere.") != std::string::npos) return "550 mailbox unavailable";
    const unsigned drawn = luck(key, request);
    if (drawn < 30) return "451 busy, try again later";
    {
        const std::lock_guard lock(mutex_);
        ++entries_[key].delivered;
    }
    ++delivered_;
    return drawn < 38 ? "" : "250 delivered"; // it happened, and nobody is told
}

std::string ask_mail_server(std::uint16_t port, const std::string& key, const std::string& to) {
    const connection with(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    if (::connect(with.socket(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
        throw std::system_error(errno, std::generic_category(), "the mail server cannot be reached");
    const timeval patience{4, 0};
    ::setsockopt(with.socket(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    write_line(with.socket(), key + "\n" + to);
    return read_line(with.socket());
}
