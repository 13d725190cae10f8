// Jobs: lists, pages, counts.
#include <algorithm>
#include <set>

#include "store_jobs.hpp"

namespace holdfast::conformance {

namespace {

using kind = settlement::kind;

std::vector<identifier> page_through(store_lab& in, const job_user& user, const job_filter& filter, int limit) {
    std::vector<identifier> all;
    std::string cursor;
    for (int pages = 0; pages < 1000; ++pages) {
        const job_page page = in.ok(user.jobs().list(filter, limit, cursor), "list");
        check(page.jobs.size() <= static_cast<std::size_t>(limit), "a page has no more jobs than were asked for");
        for (const auto& each : page.jobs) all.push_back(each.id);
        if (page.next.empty()) return all;
        check(!page.jobs.empty(), "a page that has a next one is not empty");
        cursor = page.next;
    }
    throw check_failed("the pages do not come to an end");
}

void newest_first(store_lab& in) {
    const job_user user(in);
    auto ids = user.add(25);
    std::ranges::reverse(ids);
    check_equal(page_through(in, user, {}, 10), ids, "pages of 10 of 25");
    check_equal(page_through(in, user, {}, 25), ids, "one page of 25 of 25");
    check_equal(page_through(in, user, {}, 1), ids, "pages of 1 of 25");
    check_equal(page_through(in, user, {}, 1000), ids, "one page of 1000 of 25");
}

void filters(store_lab& in) {
    const job_user user(in);
    const identifier dead = user.ended_as(kind::dead_letter);
    const identifier good = user.ended_as(kind::succeed);
    new_job mail = user.make("mail");
    mail.what.type = "invoice.send";
    user.add(mail);
    const identifier other = user.add(user.make("mail"));
    const auto list = [&](std::optional<job_state> state, std::optional<std::string> queue,
                          std::optional<std::string> type) {
        return user.list({.state = state, .queue = std::move(queue), .type = std::move(type)});
    };
    check_equal(list(job_state::dead_letter, {}, {}), std::vector{dead}, "dead letters");
    check_equal(list({}, "mail", {}), std::vector{other, mail.id}, "jobs of a queue");
    check_equal(list({}, {}, "invoice.send"), std::vector{mail.id}, "jobs of a type");
    check_equal(list(job_state::pending, "mail", "test.job"), std::vector{other}, "jobs by all three");
    check_equal(list({}, {}, {}), std::vector{other, mail.id, good, dead}, "all jobs");
    check_equal(list(job_state::failed, {}, {}), std::vector<identifier>{}, "jobs that failed");
    check_equal(list({}, "nowhere", {}), std::vector<identifier>{}, "jobs of a queue that is not there");
}

void what_is_due_reads_as_pending(store_lab& in) {
    const job_user user(in);
    new_job soon = user.make();
    soon.when = due::after(short_lease);
    user.add(soon);
    const identifier again = user.add();
    user.retry(user.claim_one().lease, short_lease);
    check_equal(user.count("default", job_state::scheduled), std::uint64_t{1}, "scheduled");
    check_equal(user.count("default", job_state::waiting_retry), std::uint64_t{1}, "waiting for a retry");
    in.pass(short_lease);
    check_equal(user.count("default", job_state::scheduled), std::uint64_t{0}, "scheduled, when they are due");
    check_equal(user.count("default", job_state::pending), std::uint64_t{2}, "pending, when they are due");
    check_equal(user.state_of(soon.id), job_state::pending, "state that is seen");
    check_equal(user.list({.state = job_state::pending, .queue = {}, .type = {}}), std::vector{again, soon.id},
                "list of what is pending");
    check_equal(user.list({.state = job_state::waiting_retry, .queue = {}, .type = {}}), std::vector<identifier>{},
                "list of what waits for a retry");
}

void pages_are_stable(store_lab& in) {
    const job_user user(in);
    auto ids = user.add(30);
    std::ranges::reverse(ids);
    std::vector<identifier> seen;
    std::string cursor;
    do {
        const job_page page = in.ok(user.jobs().list({}, 7, cursor), "list");
        for (const auto& each : page.jobs) seen.push_back(each.id);
        cursor = page.next;
        user.add(5); // newer than where we are
    } while (!cursor.empty());
    check_equal(seen, ids, "pages while new jobs arrive");
}

void pages_of_a_filter(store_lab& in) {
    const job_user user(in);
    user.add(60);
    const auto claimed = user.claim(60);
    std::vector<settlement> batch;
    std::vector<identifier> dead;
    for (std::size_t i = 0; i < claimed.size(); ++i) {
        batch.push_back({.held = &claimed[i].lease,
                         .how = i % 3 == 0 ? kind::dead_letter : kind::succeed,
                         .when = {},
                         .error = {},
                         .output = {}});
        if (i % 3 == 0) dead.push_back(claimed[i].id);
    }
    in.ok(user.jobs().settle(batch), "settle");
    std::ranges::sort(dead, std::greater<>());
    check_equal(page_through(in, user, {.state = job_state::dead_letter, .queue = {}, .type = {}}, 6), dead,
                "pages of dead letters");
}

// Of those that a store may keep in another place while nobody has asked for a list.
void long_lists(store_lab& in) {
    const job_user user(in);
    std::set<identifier, std::greater<>> open;
    for (int i = 0; i < 6; ++i)
        for (const identifier& id : user.add(2000)) open.insert(id);
    const auto check_list = [&](const std::string& when) {
        const auto found = page_through(in, user, {.state = job_state::pending, .queue = {}, .type = {}}, 1000);
        check_equal(found.size(), open.size(), "number of open jobs in the list, " + when);
        check(std::ranges::equal(found, open), "the list has the open jobs, newest first, " + when);
    };
    const auto work = [&](int count) {
        const auto claimed = user.claim(count);
        check_equal(claimed.size(), static_cast<std::size_t>(count), "jobs claimed");
        std::vector<settlement> batch;
        for (std::size_t i = 0; i < claimed.size(); ++i) {
            const kind how = i % 10 == 9 ? kind::release : i % 10 == 8 ? kind::dead_letter : kind::succeed;
            batch.push_back({.held = &claimed[i].lease, .how = how, .when = {}, .error = {}, .output = {}});
            if (how != kind::release) open.erase(claimed[i].id);
        }
        in.ok(user.jobs().settle(batch), "settle");
    };
    work(500);
    const identifier unwanted = *open.begin();
    check(user.cancel(unwanted) == cancel_answer::cancelled, "what waits is cancelled");
    open.erase(unwanted);
    check_list("for the first time");
    for (const identifier& id : user.add(100)) open.insert(id);
    work(700);
    check_list("after some more have come and gone");
    user.requeue({unwanted});
    open.insert(unwanted);
    check_list("with one that is back");
}

void counts_by_queue_and_state(store_lab& in) {
    const job_user user(in);
    check(in.ok(user.jobs().counts(), "counts").empty(), "an empty store counts nothing");
    user.add(6);
    user.add(user.make("mail"));
    const auto claimed = user.claim(4);
    const kind ends[] = {kind::succeed, kind::fail, kind::dead_letter};
    for (std::size_t i = 0; i < 3; ++i) user.settle(claimed.at(i).lease, ends[i]);
    check_equal(user.count("default", job_state::pending), std::uint64_t{2}, "pending");
    check_equal(user.count("default", job_state::processing), std::uint64_t{1}, "processing");
    check_equal(user.count("default", job_state::succeeded), std::uint64_t{1}, "succeeded");
    check_equal(user.count("default", job_state::failed), std::uint64_t{1}, "failed");
    check_equal(user.count("default", job_state::dead_letter), std::uint64_t{1}, "dead letters");
    check_equal(user.count("mail", job_state::pending), std::uint64_t{1}, "pending in the other queue");
    std::set<std::pair<std::string, job_state>> seen;
    for (const auto& each : in.ok(user.jobs().counts(), "counts")) {
        check(each.count > 0, "only what there is is counted");
        check(seen.emplace(each.queue, each.state).second, "queue and state are counted once");
    }
}

void wrong_pages(store_lab& in) {
    const job_user user(in);
    user.add(3);
    in.refused(user.jobs().list({}, 0), {errc::invalid_argument}, "a page of none");
    in.refused(user.jobs().list({}, 10, "\x01 no cursor of yours '"), {errc::invalid_argument}, "a cursor made up");
}

void queues_are_listed(store_lab& in) {
    const job_user user(in);
    check(in.ok(user.jobs().queues(), "queues").empty(), "an empty store has no queues");
    user.add(user.make("b"));
    user.add(user.make("a"));
    std::set<std::string> names;
    for (const auto& each : in.ok(user.jobs().queues(), "queues")) {
        check(names.insert(each.name).second, "a queue is listed once");
        check_equal(each.paused, false, "paused");
    }
    check(names == std::set<std::string>{"a", "b"}, "the queues that have jobs are listed");
}

} // namespace

store_case_list job_reading_cases() {
    return {
        {"a list pages through all jobs, newest first", &newest_first},
        {"a list is filtered by state, queue and type", &filters},
        {"what is due reads as pending, everywhere", &what_is_due_reads_as_pending},
        {"jobs that arrive meanwhile do not shift the pages", &pages_are_stable},
        {"a filtered list pages as well", &pages_of_a_filter},
        {"a long list of open jobs is complete while jobs come and end", &long_lists},
        {"counts by queue and state", &counts_by_queue_and_state},
        {"a page of none and a cursor made up are refused", &wrong_pages},
        {"the queues that have jobs are listed", &queues_are_listed},
    };
}

} // namespace holdfast::conformance
