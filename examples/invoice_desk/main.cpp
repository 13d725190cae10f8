// An invoice desk. It takes in a few hundred mails as durable jobs, sends them through a mail server that has a bad day,
// kills its own worker halfway, goes on, and shows that every mail went out once. Nothing here depends on the store:
// --config runs the same on PostgreSQL or Redis, by one other line in a copy of desk.toml.
#include <charconv>
#include <exception>
#include <iostream>
#include <string_view>

#include "desk.hpp"
#include "mail_worker.hpp"

namespace {

constexpr std::string_view help = R"(usage: invoice_desk [--mails N] [--config FILE]

  --mails N       invoices to send, 1 to 100000; 400
  --config FILE   such as a copy of desk.toml with another store, which is the demo's own; without it, desk.toml, which
                  is on SQLite, in a temporary folder
)";

int usage(std::string_view why) {
    std::cerr << "error: " << why << "\n" << help;
    return 2;
}

bool read_number(std::string_view text, int& into, int most) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), into);
    return problem == std::errc{} && end == text.data() + text.size() && into >= 1 && into <= most;
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
        if (name == "--worker" && left == 2) { // the desk starts itself like this
            int port = 0;
            if (!read_number(arguments[i + 1], port, 65535)) return usage("--worker needs a port");
            return run_mail_worker(arguments[i + 2], static_cast<std::uint16_t>(port));
        }
        if (left == 0) return usage(std::string(name) + " needs a value, or is not known");
        const std::string_view value = arguments[++i];
        if (name == "--config") options.config = value;
        else if (name != "--mails") return usage("there is no option " + std::string(name));
        else if (!read_number(value, options.mails, 100'000)) return usage("--mails: expected a number, 1 to 100000");
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
