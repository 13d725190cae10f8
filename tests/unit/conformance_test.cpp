#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <holdfast/conformance.hpp>
#include <holdfast/simulated_runtime.hpp>

#include "catch.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HOLDFAST_TEST_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOLDFAST_TEST_SANITIZED
#endif

namespace conformance = holdfast::conformance;

#if !defined(HOLDFAST_TEST_SANITIZED)

namespace {
std::atomic<std::size_t> allocations = 0;
}

void* operator new(std::size_t size) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

#endif

namespace {

conformance::options counting() {
    conformance::options how;
#if !defined(HOLDFAST_TEST_SANITIZED)
    how.allocations = [] { return allocations.load(std::memory_order_relaxed); };
#endif
    return how;
}

} // namespace

TEST_CASE("the simulated runtime passes every conformance case") {
    for (const auto& each : conformance::runtime_cases()) {
        DYNAMIC_SECTION(each.title()) {
            auto how = counting();
            how.filter = each.title();
            std::string message;
            const auto total =
                conformance::run_runtime_suite([] { return std::make_unique<holdfast::simulated_runtime>(); }, how,
                                               [&](const auto& r) { message = r.message; });
            INFO(message);
            CHECK(total.failed == 0);
            CHECK(total.passed + total.skipped == 1);
        }
    }
}

TEST_CASE("a simulated runtime that shuffles passes every conformance case that has an order to shuffle") {
    const auto seed = GENERATE(1, 2, 3);
    const auto make = [=] { return std::make_unique<holdfast::simulated_runtime>(static_cast<std::uint64_t>(seed)); };
    for (const auto& each : conformance::runtime_cases()) {
        // Arithmetic over a million draws, and the like: long, and the same in any order.
        if (each.number == 8 || each.number == 12 || each.number == 43 || each.group == "runtime") continue;
        conformance::options how;
        how.seed = 9;
        how.filter = each.title();
        std::string message;
        const auto total = conformance::run_runtime_suite(make, how, [&](const auto& r) { message = r.message; });
        INFO(each.title() << ": " << message);
        CHECK(total.passed == 1);
    }
}

TEST_CASE("the kit has the fifty cases of the resilience suite, each once") {
    std::vector<int> seen(51);
    for (const auto& each : conformance::runtime_cases()) {
        CHECK_FALSE(each.name.empty());
        if (each.group != "runtime" && each.group != "trace") ++seen.at(static_cast<std::size_t>(each.number));
    }
    for (std::size_t i = 1; i <= 50; ++i) {
        INFO("case " << i);
        CHECK(seen[i] == 1);
    }
}

namespace {

// Runs timers at once instead of when they are due.
class hasty_runtime final : public holdfast::runtime {
public:
    std::string_view name() const noexcept override { return "hasty"; }
    holdfast::time_point now() const noexcept override { return inner_.now(); }
    bool post(holdfast::work& w) noexcept override { return inner_.post(w); }
    bool post_blocking(holdfast::work& w) noexcept override { return inner_.post_blocking(w); }
    bool arm(holdfast::timer& t, holdfast::time_point) noexcept override { return inner_.arm(t, now()); }
    bool cancel(holdfast::timer& t) noexcept override { return inner_.cancel(t); }
    void wait(holdfast::parker& p) noexcept override { inner_.wait(p); }
    void stop() noexcept override { inner_.stop(); }
    bool stopped() const noexcept override { return inner_.stopped(); }

private:
    holdfast::simulated_runtime inner_;
};

} // namespace

TEST_CASE("a runtime whose timers are early fails, with a message that says so") {
    conformance::options how;
    how.filter = "a timer never runs early";
    std::string message;
    const auto total = conformance::run_runtime_suite([] { return std::make_unique<hasty_runtime>(); }, how,
                                                      [&](const auto& r) { message = r.message; });
    CHECK(total.failed == 1);
    CHECK_THAT(message, Catch::Matchers::ContainsSubstring("a timer never runs early: expected to hold, does not"));
}

TEST_CASE("a factory that gives no runtime fails every case instead of crashing") {
    const auto total =
        conformance::run_runtime_suite([] { return std::unique_ptr<holdfast::runtime>(); }, {}, [](const auto&) {});
    CHECK(total.passed == 0);
    CHECK(total.failed == static_cast<int>(conformance::runtime_cases().size()));
}
