#pragma once

#include "stores.hpp"

namespace bench {

void measure_sqlite(store_report& report, const store_scale& scale);
void measure_postgres(store_report& report, const store_scale& scale);
void measure_redis(store_report& report, const store_scale& scale);

} // namespace bench
