#include "core.hpp"

namespace holdfast::postgres {

task<result<std::unique_ptr<unit_of_work>>> core::begin() {
    using made = std::unique_ptr<unit_of_work>;
    auto here = [this](slot with) -> result<made> {
        const auto opened = with.open();
        if (!opened) return std::unexpected(opened.error());
        try {
            return std::make_unique<unit>(*this, connections, std::move(with));
        } catch (...) {
            return std::unexpected(to_error(compat::current_fault(), how(), false));
        }
    };
    co_return co_await connections.run<made>(std::move(here));
}

} // namespace holdfast::postgres
