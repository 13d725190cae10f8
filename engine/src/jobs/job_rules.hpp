// The rules of a kind of job, wherever they were declared, as one table.
#pragma once

#include <string>
#include <vector>

#include <holdfast/error.hpp>
#include <holdfast/exception_table.hpp>
#include <holdfast/job_type.hpp>

namespace holdfast::job_rules {

// errc::invalid_argument: the kind has rules at its registration that leave nothing for those in its options to take.
result<void> check(const job_type& kind);

// Innermost first: those given at registration, those of its options (.rules, .retry), the host's, and what holds for
// jobs without any: all is tried again, 60s, doubled each time. The job's maximum of attempts is the store's to keep.
exception_table table_of(const job_type& kind, const exception_policy* of_host);

// What is probably not meant, one sentence each.
std::vector<std::string> lint(const job_options& options, const exception_table& rules);

} // namespace holdfast::job_rules
