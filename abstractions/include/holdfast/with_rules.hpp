// Rules for the errors of one kind of job, given where it is registered: rules with predicates are no constants, so
// they cannot be part of its options.
#pragma once

#include <memory>
#include <utility>

#include <holdfast/exception_policy.hpp>
#include <holdfast/job_type.hpp>

namespace holdfast {

namespace detail {

class ruled_job final : public job_type {
public:
    ruled_job(std::unique_ptr<job_type> kind, exception_policy rules)
        : kind_(std::move(kind)), rules_(std::move(rules)) {}

    const job_options& options() const noexcept override { return kind_->options(); }
    holdfast::restart restart() const noexcept override { return kind_->restart(); }
    const exception_policy* rules() const noexcept override { return &rules_; }
    task<result<void>> run(payload what, job_context& context) override { return kind_->run(std::move(what), context); }
    task<happened> probe(payload what, job_context& context) override { return kind_->probe(std::move(what), context); }

private:
    const std::unique_ptr<job_type> kind_;
    const exception_policy rules_;
};

} // namespace detail

inline std::unique_ptr<job_type> with_rules(std::unique_ptr<job_type> kind, exception_policy rules) {
    return std::make_unique<detail::ruled_job>(std::move(kind), std::move(rules));
}

// As job_type_of without them: host.add<send_invoice>(handle, rules).
template <class Job, class Handler>
std::unique_ptr<job_type> job_type_of(Handler handler, exception_policy rules) {
    return with_rules(job_type_of<Job>(std::move(handler)), std::move(rules));
}
template <class Job, class Handler, class Probe>
std::unique_ptr<job_type> job_type_of(Handler handler, Probe probe, exception_policy rules) {
    return with_rules(job_type_of<Job>(std::move(handler), std::move(probe)), std::move(rules));
}

} // namespace holdfast
