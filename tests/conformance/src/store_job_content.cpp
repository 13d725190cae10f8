// Jobs: every kind of payload and name comes back as it went in; what is too large is refused.
#include <set>

#include "store_jobs.hpp"
#include "store_names.hpp"

namespace holdfast::conformance {

namespace {

void round_trip(const job_user& user, const std::string& body) {
    new_job j = user.make();
    j.what.body = body;
    const identifier id = user.add(j);
    check(user.view(id).what.body == body, "the body of " + std::to_string(body.size()) + " bytes that get() gives");
    const claimed_job mine = user.claim_one();
    check(mine.what.body == body, "the body of " + std::to_string(body.size()) + " bytes that claim() gives");
    const settled ended =
        user.settle({.held = &mine.lease, .how = settlement::kind::succeed, .when = {}, .error = {}, .output = body});
    check_equal(ended.answer, write_answer::done, "settle");
    check(user.view(id).output == body, "the output of " + std::to_string(body.size()) + " bytes that get() gives");
}

void bodies(store_lab& in) {
    const job_user user(in);
    round_trip(user, "");
    for (const std::string& each : odd_bytes()) round_trip(user, each);
    std::string large(1u << 20, '\0');
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 % 251);
    round_trip(user, large);
}

// The largest that every store takes by default: whole, in each place that a body has.
void the_largest(store_lab& in) {
    const job_user user(in);
    std::string body(10u << 20, '\0');
    for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 % 251);
    round_trip(user, body);
}

void too_large(store_lab& in) {
    const job_user user(in);
    new_job fine = user.make();
    new_job huge = user.make();
    huge.what.body.assign((10u << 20) + 1, 'x');
    in.refused(user.jobs().enqueue({fine, huge}), {errc::too_large}, "a body above 10 MiB");
    check(user.absence(fine.id) == job_absence::never_known, "the whole batch is refused");
    const identifier id = user.add();
    const claimed_job mine = user.claim_one();
    const settlement one[] = {{.held = &mine.lease,
                               .how = settlement::kind::succeed,
                               .when = {},
                               .error = {},
                               .output = std::string((10u << 20) + 1, 'x')}};
    in.refused(user.jobs().settle(one), {errc::too_large}, "an output above 10 MiB");
    check_equal(user.state_of(id), job_state::processing, "state of a job whose output was refused");
    check_equal(user.settle(mine.lease, settlement::kind::succeed).answer, write_answer::done, "settle without it");
}

void names(store_lab& in) {
    const job_user user(in);
    std::set<std::string> queues;
    for (const std::string& name : odd_names()) {
        new_job j = user.make(name);
        j.what.type = name;
        j.what.content_type = name.size() > 100 ? "text/plain" : name;
        j.unique_key = name;
        j.extra = {{name, name}};
        const identifier id = user.add(j);
        const job_view seen = user.view(id);
        check_equal(seen.queue, name, "queue");
        check(seen.what == j.what, "payload");
        check_equal(seen.unique_key, std::optional(name), "unique key");
        check(seen.extra == j.extra, "headers");
        check_equal(user.list({.state = {}, .queue = name, .type = name}), std::vector{id}, "list by queue and type");
        check_equal(user.count(name, job_state::pending), std::uint64_t{1}, "count by queue");
        in.ok(user.jobs().pause(name), "pause");
        check_equal(user.claim_ids(1, {name}).size(), std::size_t{0}, "jobs to claim while paused");
        in.ok(user.jobs().resume(name), "resume");
        const auto claimed = user.claim(1, long_lease, {name}, name);
        check_equal(claimed.size(), std::size_t{1}, "jobs to claim");
        check_equal(user.view(id).worker, name, "worker");
        queues.insert(name);
    }
    for (const auto& each : in.ok(user.jobs().queues(), "queues")) queues.erase(each.name);
    check(queues.empty(), "all queues are listed");
}

void keys_of_any_bytes(store_lab& in) {
    const job_user user(in);
    for (const std::string& each : odd_bytes()) {
        new_job j = user.make();
        j.unique_key = each;
        const identifier id = user.add(j);
        check(user.view(id).unique_key == each, "the unique key that get() gives");
        j.id = in.next_id();
        const enqueued again = user.enqueue(j);
        check(!again.created && again.id == id, "a unique key of any bytes is unique");
    }
}

void wrong_names(store_lab& in) {
    const job_user user(in);
    const auto refuse = [&](std::string queue, std::string type, std::optional<std::string> key,
                            std::string_view what) {
        new_job j = user.make(std::move(queue));
        j.what.type = std::move(type);
        j.unique_key = std::move(key);
        in.refused(user.jobs().enqueue({j}), {errc::too_large, errc::invalid_argument}, what);
        check(user.absence(j.id) == job_absence::never_known, "what was refused is not there");
    };
    const std::string long_name(1025, 'x');
    refuse(long_name, "t", {}, "a queue of 1025 bytes");
    refuse("q", long_name, {}, "a type of 1025 bytes");
    refuse("q", "t", long_name, "a unique key of 1025 bytes");
    refuse("q", std::string(std::size_t{64} * 1024, 'x'), {}, "a type of 64 KB");
    refuse(std::string("a\0b", 3), "t", {}, "a queue with a NUL");
    refuse("\xFF\xFE", "t", {}, "a queue that is not UTF-8");
    refuse("q", std::string("a\0b", 3), {}, "a type with a NUL");
    refuse("q", "\xC0\x80", {}, "a type that is not UTF-8");
}

void errors_of_any_bytes(store_lab& in) {
    const job_user user(in);
    for (const std::string& each : odd_bytes()) {
        user.add();
        const claimed_job mine = user.claim_one();
        check_equal(user.progress(mine.lease, 5, each), write_answer::done, "progress with an odd note");
        const settled ended = user.settle({.held = &mine.lease,
                                           .how = settlement::kind::dead_letter,
                                           .when = {},
                                           .error = {each, each},
                                           .output = {}});
        check_equal(ended.answer, write_answer::done, "a settlement is never refused for its error text");
    }
    for (const std::string& each : odd_names()) {
        const identifier id = user.add();
        const claimed_job mine = user.claim_one();
        user.settle(
            {.held = &mine.lease, .how = settlement::kind::fail, .when = {}, .error = {each, each}, .output = {}});
        check_equal(user.view(id).last_error.message, each, "error");
        check_equal(user.view(id).history.at(0).error.type, each, "type of the error in the history");
    }
}

void many_headers(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    for (int i = 0; i < 100; ++i)
        j.extra["header-" + std::to_string(i)] = std::string(static_cast<std::size_t>(i), '=');
    user.add(j);
    check(user.claim_one().extra == j.extra, "a hundred headers");
}

void headers_of_any_bytes(store_lab& in) {
    const job_user user(in);
    new_job j = user.make();
    j.extra[""] = "";
    j.extra[std::string(std::size_t{64} * 1024, 'x')] = std::string(std::size_t{64} * 1024, 'y');
    for (const std::string& each : odd_names()) j.extra[each] = each;
    for (const std::string& each : odd_bytes()) j.extra[each] = each;
    const identifier id = user.add(j);
    check(user.view(id).extra == j.extra, "the headers that get() gives");
    check(user.claim_one().extra == j.extra, "the headers that claim() gives");
}

// Nothing is promised about the length of a worker's name, but that the store is not hurt by it.
void workers_of_any_name(store_lab& in) {
    const job_user user(in);
    for (const std::string& each : odd_names()) {
        const identifier id = user.add();
        const auto mine = user.claim(1, long_lease, {"default"}, each);
        check_equal(mine.size(), std::size_t{1}, "jobs claimed by a worker with an odd name");
        check_equal(user.view(id).worker, each, "worker");
        user.settle(mine[0].lease, settlement::kind::succeed);
        check_equal(user.view(id).history.at(0).worker, each, "worker in the history");
    }
}

} // namespace

store_case_list job_content_cases() {
    return {
        {"bodies of no bytes, of any bytes and of a megabyte come back", &bodies},
        {"a body and an output of exactly 10 MiB come back", &the_largest},
        {"a body above the limit is refused, its batch with it", &too_large},
        {"names with quotes, braces, line ends and emoji come back", &names},
        {"unique keys are any bytes", &keys_of_any_bytes},
        {"names that are too long or no text are refused", &wrong_names},
        {"no error text keeps a job from being settled", &errors_of_any_bytes},
        {"a hundred headers come back", &many_headers},
        {"names and values of headers are any bytes, as long as you like", &headers_of_any_bytes},
        {"workers may have odd names", &workers_of_any_name},
    };
}

} // namespace holdfast::conformance
