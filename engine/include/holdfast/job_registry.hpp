// The kinds of jobs that a worker can run, by name. Filled before a worker starts, only read afterwards.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/job_type.hpp>
#include <holdfast/with_rules.hpp>

namespace holdfast {

class job_registry {
public:
    // errc::duplicate: there is a kind of that name. errc::invalid_argument: its options make no sense.
    result<void> add(std::unique_ptr<job_type> kind);
    template <class Job, class Handler, class... More>
    result<void> add(Handler handler, More... probe_or_rules) {
        return add(job_type_of<Job>(std::move(handler), std::move(probe_or_rules)...));
    }

    // Null when there is none. Lives as long as the registry.
    job_type* find(std::string_view name) const noexcept;
    std::vector<std::string> names() const;
    bool empty() const noexcept { return kinds_.empty(); }

    template <class Function>
    void for_each(Function function) const {
        for (const auto& [name, kind] : kinds_) function(*kind);
    }

private:
    std::map<std::string, std::unique_ptr<job_type>, std::less<>> kinds_;
};

} // namespace holdfast
