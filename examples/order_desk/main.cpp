// An order desk. One process commits orders and the events that tell of them, in one SQLite transaction of its own;
// another consumes the events and writes invoices. Both are killed again and again, and the totals agree at the end.
#include <charconv>
#include <exception>
#include <iostream>
#include <string_view>

#include "billing.hpp"
#include "desk.hpp"
#include "shop.hpp"

namespace {

constexpr std::string_view help = R"(usage: order_desk [--orders N] [--kills N] [--events FILE]

  --orders N      orders to place, 1 to 100000; 300
  --kills N       how often one of the two is killed, 0 to 1000; 12
  --events FILE   a file with an [events] section that both processes share; without it, a redis-server is started
)";

int usage(std::string_view why) {
    std::cerr << "error: " << why << "\n" << help;
    return 2;
}

bool read_number(std::string_view text, int& into, int least, int most) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), into);
    return problem == std::errc{} && end == text.data() + text.size() && into >= least && into <= most;
}

int run(int count, char** arguments) {
    desk_options options;
    for (int i = 1; i < count; ++i) {
        const std::string_view name = arguments[i];
        if (name == "--help") {
            std::cout << help;
            return 0;
        }
        const int left = count - i - 1;
        if (name == "--shop" && left == 3) { // the desk starts itself like this
            int orders = 0;
            if (!read_number(arguments[i + 3], orders, 1, 100'000)) return usage("--shop needs a number");
            return run_shop(arguments[i + 1], arguments[i + 2], orders);
        }
        if (name == "--billing" && left == 2) return run_billing(arguments[i + 1], arguments[i + 2]);
        if (left == 0) return usage(std::string(name) + " needs a value, or is not known");
        const std::string_view value = arguments[++i];
        if (name == "--events") options.events = value;
        else if (name == "--orders") {
            if (!read_number(value, options.orders, 1, 100'000)) return usage("--orders: expected 1 to 100000");
        } else if (name == "--kills") {
            if (!read_number(value, options.kills, 0, 1000)) return usage("--kills: expected 0 to 1000");
        } else return usage("there is no option " + std::string(name));
    }
    return run_desk(options);
}

} // namespace

int main(int count, char** arguments) {
    try {
        return run(count, arguments);
    } catch (const std::exception& e) {
        std::cerr << "error: " << e.what() << "\n";
        return 1;
    }
}
