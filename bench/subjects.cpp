#include "subjects.hpp"

namespace bench {

holdfast::host& running_host() {
    static holdfast::host instance = [] {
        auto made = holdfast::host::from_text("[runtime]\nplugin = \"asio\"\n[log]\nlevel = \"error\"\n", "bench");
        made.add(retry_only, timeout_breaker, all_stages, opened, contended, on_result, patient);
        made.start();
        return made;
    }();
    return instance;
}

} // namespace bench
