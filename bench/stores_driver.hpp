// A store from its plugin, driven as a worker and its clients would drive it. Whatever fails throws.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/identifier.hpp>
#include <holdfast/plugin_library.hpp>
#include <holdfast/sync_wait.hpp>

namespace bench {

inline constexpr std::size_t body_size = 200;

inline double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Both in turn, so that what disturbs one disturbs the other; the best of each.
template <class Ours, class Theirs>
std::pair<double, double> best_of(int rounds, Ours ours, Theirs theirs) {
    std::pair<double, double> best{};
    for (int i = 0; i < rounds; ++i) {
        best.second = std::max(best.second, theirs());
        best.first = std::max(best.first, ours());
    }
    return best;
}

// Both in turn, for what waits for the disk, whose speed changes from one second to the next: the round whose ratio is in
// the middle.
template <class Ours, class Theirs>
std::pair<double, double> middle_of(int rounds, Ours ours, Theirs theirs) {
    std::vector<std::pair<double, double>> all;
    for (int i = 0; i < rounds; ++i) {
        const double reference = theirs();
        all.emplace_back(ours(), reference);
    }
    std::ranges::sort(all, {}, [](const auto& each) { return each.first / each.second; });
    return all[all.size() / 2];
}

class driven_store {
public:
    using settings = std::vector<std::pair<std::string, std::string>>;

    // Finds the plugins beside this program. The store is prepared.
    driven_store(const std::string& plugin, const settings& with);

    // Each gives a rate per second. Rows that succeed are kept for `keep`; nothing = as the store does, 0 = not at all.
    double enqueue_in_bulk(int rows, int batch, holdfast::due when, std::optional<holdfast::duration> keep);
    // By coroutines on the runtime.
    double enqueue_one_by_one(int clients, std::chrono::milliseconds lasting);
    // By a thread that waits for each, as a client of pgbench does.
    double enqueue_by_a_thread(std::chrono::milliseconds lasting);
    // Claims and settles until there is nothing left, by several lanes at once.
    double drain(int batch, int lanes);

    // Ten jobs are enqueued, claimed and settled; how long the claim took, in microseconds.
    double claim_us();
    // Reads a list of dead letters of that many pages, then its first pages and its last in turn; the median time of both,
    // in microseconds.
    std::pair<double, double> page_times_us(int page, int pages);
    // What has been claimed is ended as dead letters.
    void bury(int rows, int batch);

private:
    template <class T>
    T await(holdfast::task<holdfast::result<T>> call) {
        auto answer = holdfast::sync_wait(**runtime_, std::move(call));
        if (!answer) throw holdfast::failed(std::move(answer.error()));
        return std::move(*answer);
    }
    std::vector<holdfast::new_job> make(int count, holdfast::due when, std::optional<holdfast::duration> keep);
    holdfast::task<int> settle_all(int batch, holdfast::settlement::kind how);
    holdfast::task<int> enqueue_until(std::chrono::steady_clock::time_point end);
    holdfast::job_store& jobs() { return *(*store_)->jobs(); }

    holdfast::null_logger quiet_;
    std::optional<holdfast::plugin_instance<holdfast::runtime>> runtime_;
    std::optional<holdfast::plugin_instance<holdfast::store>> store_;
    holdfast::identifier_source ids_;
    const std::string body_ = std::string(body_size, 'x');
};

// p99 of that many claims of ten, in microseconds, of two stores in turn, claim by claim; of several rounds the median.
std::pair<double, double> claim_p99_us(driven_store& one, driven_store& other, int samples, int rounds);

} // namespace bench
