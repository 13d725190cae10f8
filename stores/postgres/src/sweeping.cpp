#include "sweeping.hpp"

#include <holdfast/postgres/naming.hpp>
#include <holdfast/postgres/reader.hpp>

namespace holdfast::postgres {

using namespace std::chrono_literals;

namespace {

constexpr duration sweep_every = 15s;
constexpr duration longest_sweep = 5s;

} // namespace

void add_sweep(parameters& to, const store_options& how) {
    to.one(column::int8, micros(how.keep_succeeded)).one(column::int8, micros(how.keep_tombstones));
    to.one(column::int8, advisory_number(how.name, "schema"));
}

sweeper::sweeper(pool& of, const statement& what, const store_options& how)
    : pool_(of), what_(what), next_(of.on().now() + sweep_every) {
    add_sweep(how_, how);
}

sweeper::~sweeper() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return !under_way_; });
}

void sweeper::now_and_then() noexcept {
    const time_point now = pool_.on().coarse_now();
    if (now < next_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    if (under_way_ || now < next_.load()) return;
    next_ = now + sweep_every;
    give_up = std::chrono::steady_clock::now() + pool::patience;
    under_way_ = pool_.push(*this);
}

void sweeper::run(slot with) noexcept {
    bool more = false;
    try {
        const bool connected = std::chrono::steady_clock::now() < give_up;
        more = connected && sweep(std::move(with));
    } catch (...) { // the server is away, or busy
    }
    const std::lock_guard lock(mutex_);
    if (more) next_ = time_point::min(); // whoever calls next
    under_way_ = false;
    ended_.notify_all();
}

bool sweeper::sweep(slot with) {
    const auto opened = with.open();
    if (!opened) return false;
    const pool::watch watched(pool_, **opened, longest_sweep);
    pqxx::nontransaction alone((*opened)->session());
    return reader((*opened)->run(alone, what_, how_, !pool_.pooled()), 0).flag();
}

} // namespace holdfast::postgres
