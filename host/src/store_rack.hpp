// The stores that a host has, and which facet comes from which.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/host.hpp>
#include <holdfast/plugin_library.hpp>

#include "configuration.hpp"

namespace holdfast::detail {

// Filled on one thread; then asked from any. Destroys the stores that it owns, the last one first.
class store_rack {
public:
    // `configuration` is what messages call it.
    explicit store_rack(std::string configuration) : configuration_(std::move(configuration)) {}
    ~store_rack();
    store_rack(const store_rack&) = delete;
    store_rack& operator=(const store_rack&) = delete;

    // As the default store. The program keeps it.
    void lend(store& mine);
    // As the default store, or for one facet, which it must offer.
    result<void> add(const plugin_choice& from, std::optional<facet> only, plugin_instance<store> made);
    // Gives each facet that no section of its own names to the default store, if that offers it.
    void share_out();

    // Prepares all of them. A store that takes too long is given up: `stop_runtime` is called, so that its call ends,
    // and this returns once it has.
    result<void> prepare(runtime& on, logger& log, const std::function<void()>& stop_runtime);
    result<void> check(const std::vector<asked_promises>& asked) const;

    result<store*> main() const;
    result<store*> of(facet f) const;
    std::vector<store_in_use> in_use() const;

private:
    struct entry {
        std::string section; // "[store]"; empty for the program's own
        std::string where;   // "desk.toml:3"
        std::optional<plugin_instance<store>> own;
        store* what;
        std::vector<facet> facets;

        std::string title() const; // the store "sqlite" of [store]
        std::string place() const; // "desk.toml:3: ", or nothing
    };

    const entry* keeper_of(facet f) const;
    result<void> check(const asked_promises& asked) const;
    result<void> check_together(const asked_promises& asked) const;

    std::string configuration_;
    std::vector<entry> entries_;
    std::optional<std::size_t> main_;
};

} // namespace holdfast::detail
