#include <holdfast/store_limits.hpp>

#include "call.hpp"
#include "facets.hpp"

namespace holdfast::redis {

task<result<bool>> idempotency_facet::try_claim(std::string key, duration ttl, unit_of_work* in) {
    if (auto ok = store_limits::check_key("idempotency key", key); !ok) co_return std::unexpected(ok.error());
    if (auto ok = store_limits::check_time("a claim", ttl); !ok) co_return std::unexpected(ok.error());
    arguments with;
    with.add(std::move(key)).add(ttl);
    co_return co_await call_in<bool>(core_, in, "claim", script::key_claim, std::move(with), to_flag);
}

task<result<begin_answer>> idempotency_facet::begin(begin_request request) {
    if (auto ok = store_limits::check(request); !ok) co_return std::unexpected(ok.error());
    arguments with;
    with.add(request.key).add(std::move(request.fingerprint)).add(request.lease_for).add(request.keep_for);
    auto answer = co_await core_.run(script::key_begin, std::move(with), access::write);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    try {
        reader r(*answer);
        switch (r.integer()) {
        case 0: {
            const std::uint64_t token = r.token();
            const bool taken_over = r.flag();
            co_return begin_answer(idempotency_started{idempotency_lease(std::move(request.key), token), taken_over});
        }
        case 1: co_return begin_answer(idempotency_in_progress{std::chrono::microseconds(r.number())});
        case 2: co_return begin_answer(idempotency_completed{r.what()});
        default: co_return begin_answer(idempotency_mismatch{});
        }
    } catch (const failed& e) {
        co_return std::unexpected(e.what_failed());
    }
}

task<result<void>> idempotency_facet::complete(const idempotency_lease& held, payload answer, duration ttl,
                                               unit_of_work* in) {
    if (auto ok = store_limits::check_body("answer", answer.body, core_.how.max_payload); !ok) co_return ok;
    if (auto ok = store_limits::check_time("an answer", ttl); !ok) co_return ok;
    arguments with;
    with.add(&held).add(std::move(answer)).add(ttl);
    co_return co_await call_in<void>(core_, in, "complete", script::key_complete, std::move(with), owner_only);
}

task<result<void>> idempotency_facet::abandon(const idempotency_lease& held) {
    arguments with;
    with.add(&held);
    co_return co_await call<void>(core_, script::key_abandon, std::move(with), access::write, owner_only);
}

task<result<void>> idempotency_facet::renew(const idempotency_lease& held, duration lease_for) {
    if (auto ok = store_limits::check_time("a lease", lease_for); !ok) co_return std::unexpected(ok.error());
    arguments with;
    with.add(&held).add(lease_for);
    co_return co_await call<void>(core_, script::key_renew, std::move(with), access::write, owner_only);
}

} // namespace holdfast::redis
