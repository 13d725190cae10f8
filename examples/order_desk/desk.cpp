#include "desk.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child.hpp"
#include "default_config.hpp" // shop.toml and billing.toml as text
#include "ledger.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

constexpr auto longest_silence = 20s; // then it is given up

// A folder that goes away with the program.
class work_folder {
public:
    work_folder() {
        std::string name = (fs::temp_directory_path() / "order-desk-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("there is no room for a temporary folder");
        path_ = name;
    }
    ~work_folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    work_folder(const work_folder&) = delete;
    work_folder& operator=(const work_folder&) = delete;
    fs::path operator/(const char* name) const { return path_ / name; }

private:
    fs::path path_;
};

int free_port() {
    const int s = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const bool bound = ::bind(s, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       ::getsockname(s, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    ::close(s);
    if (!bound) throw std::runtime_error("there is no free port");
    return ntohs(address.sin_port);
}

std::string read(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

struct books {
    long long count = 0;
    long long cents = 0;
    bool operator==(const books&) const = default;
};

books books_of(const fs::path& file, const std::string& table) {
    ledger in(file);
    if (in.number("SELECT count(*) FROM sqlite_master WHERE name = '" + table + "'") == 0) return {};
    return {in.number("SELECT count(*) FROM " + table), in.number("SELECT coalesce(sum(cents), 0) FROM " + table)};
}

// The two processes, each started again whenever it was killed.
class two_processes {
public:
    two_processes(const work_folder& in, int orders) : in_(in), orders_(std::to_string(orders)) {
        start_shop();
        start_billing();
    }
    bool shop_is_done() { return !shop_->runs(); }
    void must_be_well() {
        if (!shop_->runs() && shop_->code() != 0) throw std::runtime_error("the shop failed:\n" + read(in_ / "log"));
        if (!billing_->runs()) throw std::runtime_error("billing failed:\n" + read(in_ / "log"));
    }
    void kill_shop() {
        shop_->kill();
        start_shop();
    }
    void kill_billing() {
        billing_->kill();
        start_billing();
    }
    int stop_billing() { return billing_->stop(); }

private:
    void start_shop() {
        shop_.emplace(std::vector<std::string>{"/proc/self/exe", "--shop", in_ / "shop.toml", in_ / "shop.db", orders_},
                      in_ / "log");
    }
    void start_billing() {
        billing_.emplace(
            std::vector<std::string>{"/proc/self/exe", "--billing", in_ / "billing.toml", in_ / "billing.db"},
            in_ / "log");
    }

    const work_folder& in_;
    const std::string orders_;
    std::optional<child> shop_;
    std::optional<child> billing_;
};

void print(const char* who, const books& b) {
    std::cout << "  " << who << "  " << b.count << " orders, " << b.cents / 100 << "."
              << (b.cents % 100 < 10 ? "0" : "") << b.cents % 100 << "\n";
}

} // namespace

int run_desk(const desk_options& options) {
    const work_folder folder;
    std::optional<child> redis;
    std::string carried;
    if (options.events.empty()) {
        const std::string port = std::to_string(free_port());
        if (std::system("redis-server --version >/dev/null 2>&1") != 0) {
            std::cerr << "there is no redis-server to carry the events; give --events FILE with an [events] section\n";
            return no_server;
        }
        redis.emplace(std::vector<std::string>{"redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                                               "--appendonly", "yes", "--dir", (folder / "").string()},
                      folder / "redis.log");
        carried = "[events]\nplugin = \"redis\"\nurl = \"redis://127.0.0.1:" + port + "\"\n";
        for (int i = 0; i < 200 && read(folder / "redis.log").find("Ready to accept") == std::string::npos; ++i)
            std::this_thread::sleep_for(20ms);
    } else {
        carried = read(options.events);
    }
    std::ofstream(folder / "shop.toml") << shop_config << carried;
    std::ofstream(folder / "billing.toml") << billing_config << carried;

    std::cout << "A shop and its billing, two processes that know only each other's events. Either is killed, "
              << options.kills << " times in all.\n";
    const auto began = steady_clock::now();
    two_processes both(folder, options.orders);
    std::mt19937 random(std::random_device{}());
    int shop_kills = 0;
    for (int i = 0; i < options.kills; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 300));
        both.must_be_well();
        if (random() % 2 == 0 && !both.shop_is_done()) {
            both.kill_shop();
            ++shop_kills;
        } else {
            both.kill_billing();
        }
    }
    const auto billed_so_far = [&] { return books_of(folder / "billing.db", "invoices").count; };
    const auto caught_up = [&] {
        return both.shop_is_done() && billed_so_far() >= books_of(folder / "shop.db", "orders").count;
    };
    long long seen = billed_so_far();
    for (auto since = steady_clock::now(); !caught_up() && steady_clock::now() - since < longest_silence;) {
        both.must_be_well();
        std::this_thread::sleep_for(50ms);
        if (const long long now = billed_so_far(); now > seen) {
            seen = now;
            since = steady_clock::now();
        }
    }
    both.stop_billing();

    const books placed = books_of(folder / "shop.db", "orders");
    const books billed = books_of(folder / "billing.db", "invoices");
    const double seconds = std::chrono::duration<double>(steady_clock::now() - began).count();
    std::cout << "  the shop was killed " << shop_kills << " times, billing " << options.kills - shop_kills
              << " times, in " << static_cast<int>(seconds) << " s\n";
    print("placed ", placed);
    print("billed ", billed);
    std::cout << "  declined " << ledger(folder / "shop.db").number("SELECT count(*) FROM declined")
              << " orders, rolled back with their events\n"
              << (placed == billed ? "the books agree\n" : "the books DO NOT agree\n");
    return placed == billed && placed.count > 0 ? 0 : 1;
}
