#include "stores_each.hpp"

namespace bench {

std::vector<std::pair<std::string_view, store_measurement>> store_measurements() {
    return {
#ifdef HOLDFAST_BENCH_SQLITE
        {"sqlite", &measure_sqlite},
#endif
#ifdef HOLDFAST_BENCH_POSTGRES
        {"postgres", &measure_postgres},
#endif
#ifdef HOLDFAST_BENCH_REDIS
        {"redis", &measure_redis},
#endif
    };
}

} // namespace bench
