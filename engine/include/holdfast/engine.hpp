// Turns declarations into work on a runtime: the catalog of policies and the runner that ships with Holdfast. Hosts
// use it; so do tests, on a simulated runtime.
#pragma once

#include <cstdint>
#include <memory>

#include <holdfast/logger.hpp>
#include <holdfast/pipeline.hpp>
#include <holdfast/policies.hpp>
#include <holdfast/policy.hpp>
#include <holdfast/runtime.hpp>

namespace holdfast {

// Policies by name, replaceable while in use.
std::unique_ptr<policy_catalog> make_policy_catalog();

// The runner that works on any runtime. `seed` fixes every random draw; 0 takes one from the system. The runtime and
// the catalog must outlive it.
std::unique_ptr<pipeline_runner> make_pipeline_runner(runtime& on, const policy_catalog& catalog,
                                                      std::uint64_t seed = 0);

// The three together.
class engine {
public:
    explicit engine(runtime& on, std::uint64_t seed = 0)
        : runtime_(on), catalog_(make_policy_catalog()), runner_(make_pipeline_runner(on, *catalog_, seed)),
          policies_(*runner_) {}

    // Throws failed(errc::duplicate) when the name is taken.
    template <class... Policy>
    engine& add(const Policy&... each) {
        (add_one(each.options()), ...);
        return *this;
    }

    holdfast::runtime& runtime() noexcept { return runtime_; }
    policy_catalog& catalog() noexcept { return *catalog_; }
    pipeline_runner& runner() noexcept { return *runner_; }
    holdfast::policies& policies() noexcept { return policies_; }

private:
    void add_one(const policy_options& options) {
        if (auto added = catalog_->add(options); !added) throw failed(std::move(added.error()));
    }

    holdfast::runtime& runtime_;
    std::unique_ptr<policy_catalog> catalog_;
    std::unique_ptr<pipeline_runner> runner_;
    holdfast::policies policies_;
};

} // namespace holdfast
