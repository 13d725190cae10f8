#include "sweep.hpp"

#include "job_records.hpp"

namespace holdfast::sqlite {

bool sweep(session& s, int limit) {
    bool more = false;
    const auto forget = [&](const std::vector<stored_job>& expired) {
        for (const stored_job& job : expired) forget_job(s, job, true);
        more |= static_cast<int>(expired.size()) == limit;
    };
    const store_time kept_since = after(s.now(), -s.how().keep_succeeded);
    forget(jobs_of(s.run(query::job_expired, s.now(), limit)));
    forget(jobs_of(s.run(query::job_purgeable, static_cast<int>(job_state::succeeded), kept_since, limit)));
    for (const query each :
         {query::job_unbury, query::claims_sweep, query::begin_sweep, query::lock_sweep, query::inbox_sweep})
        more |= s.exec(each, s.now(), limit) == limit;
    return more;
}

} // namespace holdfast::sqlite
