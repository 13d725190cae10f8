#include "harness/free_port.hpp"

#include <mutex>
#include <set>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::harness {

namespace {

std::uint16_t ask_system() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    const bool bound = socket >= 0 && ::bind(socket, generic, size) == 0 && ::getsockname(socket, generic, &size) == 0;
    if (socket >= 0) ::close(socket);
    if (!bound) throw std::runtime_error("no free port on 127.0.0.1");
    return ntohs(address.sin_port);
}

} // namespace

std::uint16_t free_port() {
    static std::mutex mutex;
    static std::set<std::uint16_t> given;
    const std::lock_guard lock(mutex);
    for (;;) {
        const std::uint16_t port = ask_system();
        if (given.insert(port).second) return port;
    }
}

} // namespace holdfast::harness
