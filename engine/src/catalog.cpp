#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/engine.hpp>
#include <holdfast/nearest.hpp>
#include <holdfast/policy_config.hpp>

namespace holdfast {
namespace {

class engine_catalog final : public policy_catalog {
public:
    result<void> add(const policy_options& options) override {
        if (auto checked = check_policy(options); !checked) return checked;
        const std::lock_guard lock(mutex_);
        auto [at, fresh] = entries_.try_emplace(std::string(options.name));
        if (!fresh)
            return fail(errc::duplicate,
                        "policy \"" + at->first + "\" is registered twice; policy names are unique in a host");
        at->second.cell.name = at->first;
        at->second.make_current(options);
        return {};
    }

    result<const policy_cell*> find(std::string_view name) const override {
        const std::lock_guard lock(mutex_);
        const auto at = entries_.find(name);
        if (at == entries_.end()) return std::unexpected(unknown(name));
        return &at->second.cell;
    }

    std::vector<std::string> names() const override {
        const std::lock_guard lock(mutex_);
        std::vector<std::string> all;
        for (const auto& [name, entry] : entries_) all.push_back(name);
        return all;
    }

    result<void> replace(const std::vector<policy_options>& changed) override {
        const std::lock_guard lock(mutex_);
        for (const policy_options& each : changed) {
            if (!entries_.contains(each.name)) return std::unexpected(unknown(each.name));
            if (auto checked = check_policy(each); !checked) return checked;
        }
        for (const policy_options& each : changed) entries_.find(each.name)->second.make_current(each);
        return {};
    }

private:
    struct entry {
        policy_cell cell;
        std::vector<std::unique_ptr<policy_options>> versions; // each distinct one once; never freed while in use

        void make_current(policy_options options) {
            options.name = cell.name;
            for (const auto& known : versions)
                if (*known == options) return cell.current.store(known.get(), std::memory_order_release);
            versions.push_back(std::make_unique<policy_options>(options));
            cell.current.store(versions.back().get(), std::memory_order_release);
        }
    };

    error unknown(std::string_view name) const {
        std::vector<std::string_view> known;
        for (const auto& [each, entry] : entries_) known.push_back(each);
        std::string message = "no policy \"" + std::string(name) + "\" is registered";
        const std::string hint = did_you_mean(name, known);
        message += !hint.empty()   ? hint
                   : known.empty() ? "; none is: add it to the host before it starts"
                                   : "; add it to the host before it starts";
        return {errc::unknown_policy, std::move(message), std::nullopt};
    }

    mutable std::mutex mutex_;
    std::map<std::string, entry, std::less<>> entries_;
};

} // namespace

std::unique_ptr<policy_catalog> make_policy_catalog() {
    return std::make_unique<engine_catalog>();
}

} // namespace holdfast
