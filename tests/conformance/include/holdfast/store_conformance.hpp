// Proves that a store keeps its contract: per facet and topic, capability-driven. `holdfast verify` is a thin command
// around this; a test program of a store's own can run it as well.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/conformance.hpp>
#include <holdfast/runtime.hpp>
#include <holdfast/store.hpp>

namespace holdfast::conformance {

// The message of a case that was skipped because its facet is absent.
inline constexpr const char* not_offered = "not offered";

// Another process, in serve_rival(). It ends with the object. One thread at a time.
class rival {
public:
    virtual ~rival() = default;
    virtual void say(const std::string& line) = 0;
    // The next line that it wrote to standard output. Throws when none comes within a minute or the process has ended.
    virtual std::string hear() = 0;
};

// Where stores come from. The kit calls prepare() on each, and destroy() on the fresh ones at their end.
struct store_bed {
    // An empty store, with a namespace of its own.
    std::function<std::unique_ptr<store>()> fresh;
    // One more instance on the data of the latest fresh one, as another process would have it. Empty when the data goes
    // with the instance. Two are open at the same time only when the store's capabilities say that it is shared.
    std::function<std::unique_ptr<store>()> again;
    // What the stores were given. On virtual time if the store's clock follows it, else on real time. Not stopped.
    runtime* on = nullptr;
    // Starts another process that opens the data of the latest fresh store and calls serve_rival(). Empty: what takes two
    // processes is skipped.
    std::function<std::unique_ptr<rival>()> elsewhere{};
};

struct store_options {
    std::string filter; // as in options

    // How often a race of a hundred is run, where one outcome in many shows.
    int rounds = 20;
    // Of the random walks. A case that fails says which one to repeat.
    std::uint64_t seed = 1;
};

// Every case there is, in the order in which they run. The groups are the facets, "store" and "units".
std::vector<case_info> store_cases();

// Runs the cases that the filter chooses, each on a fresh store, and reports each as it ends, on the calling thread,
// which must not be one of the runtime's. A store that hangs ends the process as a runtime does.
summary run_store_suite(const store_bed& bed, const store_options& how,
                        const std::function<void(const case_result&)>& report);

// What the other process does: what the kit asks it to on its standard input, until that ends. The store is prepared, and on
// the data of the one that is proved; nothing else may be written to standard output.
void serve_rival(store& on_the_same_data, runtime& on);

} // namespace holdfast::conformance
