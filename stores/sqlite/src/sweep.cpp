#include "sweep.hpp"

#include "job_records.hpp"

namespace holdfast::sqlite {

bool sweep(session& s, int limit) {
    const auto expired = jobs_of(s.run(query::job_expired, s.now(), limit));
    for (const stored_job& job : expired) forget_job(s, job, true);
    bool more = static_cast<int>(expired.size()) == limit;
    for (const query each :
         {query::job_unbury, query::claims_sweep, query::begin_sweep, query::lock_sweep, query::inbox_sweep})
        more |= s.exec(each, s.now(), limit) == limit;
    return more;
}

} // namespace holdfast::sqlite
