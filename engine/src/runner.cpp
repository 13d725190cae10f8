#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>

#include <holdfast/engine.hpp>

#include "listeners.hpp"
#include "pipeline_impl.hpp"

namespace holdfast {
namespace {

std::uint64_t seed_from_system() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
}

// Pipelines draw from series of their own, whatever the order in which they are made.
std::uint64_t seed_for(std::uint64_t seed, std::string_view name, std::string_view key) {
    for (const std::string_view part : {name, std::string_view("\0", 1), key})
        for (const char c : part) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return seed;
}

class engine_runner final : public pipeline_runner {
public:
    engine_runner(runtime& on, const policy_catalog& catalog, std::uint64_t seed)
        : on_(on), catalog_(catalog), seed_(seed == 0 ? seed_from_system() : seed) {}

    result<pipeline*> bind(std::string_view policy, std::string_view key) override {
        const auto cell = catalog_.find(policy);
        if (!cell) return std::unexpected(cell.error());
        const std::lock_guard lock(mutex_);
        auto& made = pipelines_[{std::string(policy), std::string(key)}];
        if (!made)
            made = std::make_unique<pipeline_impl>(on_, **cell, std::string(key), listeners_,
                                                   seed_for(seed_, policy, key));
        return made.get();
    }

    void listen(std::shared_ptr<execution_listener> listener) override { listeners_.add(std::move(listener)); }

private:
    runtime& on_;
    const policy_catalog& catalog_;
    const std::uint64_t seed_;
    listeners listeners_;
    std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, std::unique_ptr<pipeline_impl>> pipelines_;
};

} // namespace

std::unique_ptr<pipeline_runner> make_pipeline_runner(runtime& on, const policy_catalog& catalog, std::uint64_t seed) {
    return std::make_unique<engine_runner>(on, catalog, seed);
}

} // namespace holdfast
