#include <holdfast/job_registry.hpp>

#include "job_rules.hpp"

namespace holdfast {

result<void> job_registry::add(std::unique_ptr<job_type> kind) {
    const job_options& options = kind->options();
    const std::string name(options.name);
    try {
        check(options); // those made at run time were not looked at by the compiler
    } catch (const invalid_job& e) {
        return fail(errc::invalid_argument, "job \"" + name + "\": " + e.what());
    }
    if (auto checked = job_rules::check(*kind); !checked) return checked;
    if (kinds_.contains(name))
        return fail(errc::duplicate, "there are two kinds of job named \"" + name +
                                         "\": each .name is given once, it is how stores tell them apart");
    kinds_.emplace(name, std::move(kind));
    return {};
}

job_type* job_registry::find(std::string_view name) const noexcept {
    const auto found = kinds_.find(name);
    return found == kinds_.end() ? nullptr : found->second.get();
}

std::vector<std::string> job_registry::names() const {
    std::vector<std::string> all;
    for (const auto& [name, kind] : kinds_) all.push_back(name);
    return all;
}

} // namespace holdfast
