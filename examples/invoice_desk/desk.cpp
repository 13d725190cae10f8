#include "desk.hpp"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <holdfast/host.hpp>
#include <holdfast/sync_wait.hpp>

#include "default_config.hpp" // desk.toml as text
#include "invoice.hpp"
#include "mail_server.hpp"
#include "report.hpp"
#include "view.hpp"
#include "worker_process.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr auto longest_run = 50s;

// A folder that goes away with the program.
class work_folder {
public:
    work_folder() {
        std::string name = (fs::temp_directory_path() / "invoice-desk-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("there is no room for a temporary folder");
        path_ = name;
    }
    ~work_folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    work_folder(const work_folder&) = delete;
    work_folder& operator=(const work_folder&) = delete;
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

template <class T>
T get(holdfast::host& host, holdfast::task<holdfast::result<T>> asked) {
    auto answer = sync_wait(host.runtime(), std::move(asked));
    if (!answer) throw holdfast::failed(std::move(answer.error()));
    return std::move(*answer);
}

std::vector<holdfast::identifier> take_in(holdfast::host& host, int mails) {
    std::vector<send_invoice> invoices;
    for (int n = 1; n <= mails; ++n) {
        const std::string domain = n % 40 == 0 ? "@nowhere.example" : "@customer.example";
        invoices.push_back({n, "accounts-" + std::to_string(n) + domain});
    }
    std::vector<holdfast::identifier> ids;
    for (const auto& each : get(host, host.jobs().enqueue_all(std::move(invoices)))) ids.push_back(each.id);
    return ids;
}

desk_numbers count(holdfast::host& host) {
    return add_up(get(host, host.job_store().counts()));
}

// How many mails have had how many attempts; of the newest, when there are very many.
std::map<int, int> attempts_so_far(holdfast::host& host) {
    std::map<int, int> so_far;
    std::string cursor;
    for (int pages = 0; pages == 0 || (pages < 4 && !cursor.empty()); ++pages) {
        auto page = get(host, host.job_store().list({}, 500, std::move(cursor)));
        for (const auto& each : page.jobs)
            if (each.attempts > 0) ++so_far[each.attempts];
        cursor = std::move(page.next);
    }
    return so_far;
}

struct watched {
    bool killed = false;
    int worker_code = 0;
};

// Watches until all have ended; kills the worker in the middle of it.
watched watch(holdfast::host& host, live_view& view, const fs::path& config, const mail_server& server,
              const fs::path& log) {
    std::optional<worker_process> worker(std::in_place, config, server.port(), log);
    view.say("worker " + std::to_string(worker->id()) + " begins");
    watched seen;
    while (view.seconds() < std::chrono::duration<double>(longest_run).count()) {
        desk_numbers now = count(host);
        if (view.is_due(now)) {
            now.attempts = attempts_so_far(host);
            view.show(now);
        }
        if (now.ended() == now.total) break;
        if (!worker->runs()) throw std::runtime_error("the worker ended by itself; see its messages above");
        if (!seen.killed && now.sent * 2 >= now.total) {
            seen.killed = true;
            const pid_t victim = worker->id();
            worker->kill();
            const auto left = std::to_string(count(host).running);
            view.say("worker " + std::to_string(victim) + " killed with SIGKILL, " + left + " mails in its hands");
            worker.emplace(config, server.port(), log);
            view.say("worker " + std::to_string(worker->id()) + " begins; it takes those over when their leases end");
        }
        std::this_thread::sleep_for(50ms);
    }
    view.end();
    seen.worker_code = worker->stop();
    return seen;
}

} // namespace

int run_desk(const desk_options& options) {
    const work_folder folder;
    fs::path config = options.config;
    if (config.empty()) {
        config = folder.path() / "desk.toml";
        std::ofstream(config) << default_config;
    }
    const fs::path log = folder.path() / "worker.log";

    const mail_server server;
    auto host = holdfast::host::from_file(config);
    host.start();
    if (!host.store().capabilities().shared) {
        std::cerr
            << "error: " << config.string() << ": the store \"" << host.store().name()
            << "\" is for one process, and the worker of this demo is another one; take sqlite, postgres or redis\n";
        return 2;
    }
    if (const auto before = count(host); before.total != 0) {
        std::cerr << "error: " << config.string() << ": its store holds " << before.total
                  << " jobs already; give the demo a store of its own, by another namespace in it\n";
        return 2;
    }
    std::cout << "An invoice desk on " << host.store().name() << " and " << host.runtime().name()
              << ": a mail server that is busy, slow and forgetful, and a worker that will be killed.\n";
    live_view view;
    const auto ids = take_in(host, options.mails);
    view.say(std::to_string(ids.size()) + " invoices taken in, acknowledged by the store");
    watched seen;
    try {
        seen = watch(host, view, config, server, log);
    } catch (const std::exception&) {
        std::cerr << std::ifstream(log).rdbuf();
        throw;
    }
    const double took = view.seconds(); // without the reading below

    std::vector<holdfast::job_view> jobs;
    for (const auto& id : ids) {
        auto found = get(host, host.jobs().get(id));
        if (auto* job = std::get_if<holdfast::job_view>(&found)) jobs.push_back(std::move(*job));
    }
    desk_report report = make_report(jobs, server);
    report.lost += options.mails - report.mails;
    report.mails = options.mails;
    report.killed = seen.killed;
    report.worker_code = seen.worker_code;
    print(report, took);
    return report.good() ? 0 : 1;
}
