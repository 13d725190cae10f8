#include <holdfast/system_time_zones.hpp>

#include <fstream>
#include <iterator>
#include <utility>

#include "zone_file.hpp"

namespace holdfast {

namespace {

// Names are paths below the folder: nothing else gets out of it.
bool is_zone_name(std::string_view name) noexcept {
    if (name.empty() || name.front() == '/' || name.find("..") != std::string_view::npos) return false;
    for (const char c : name) {
        const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                          c == '_' || c == '-' || c == '+';
        if (!good) return false;
    }
    return true;
}

} // namespace

system_time_zones::system_time_zones()
    : system_time_zones({"/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"}) {}
system_time_zones::system_time_zones(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}
system_time_zones::~system_time_zones() = default;

result<const time_zone*> system_time_zones::find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(name); found != known_.end()) return found->second.get();
    std::string key(name);
    auto zone = read(key);
    if (!zone) return std::unexpected(std::move(zone.error()));
    return known_.emplace(std::move(key), std::move(*zone)).first->second.get();
}

result<std::unique_ptr<time_zone>> system_time_zones::read(const std::string& name) const {
    if (const auto offset = parse_fixed_zone(name)) return std::make_unique<fixed_zone>(*offset);
    const std::string what = "time zone \"" + name + "\"";
    if (!is_zone_name(name))
        return fail(errc::invalid_argument, what + ": a zone is named as \"Europe/Berlin\", \"UTC\" or \"+02:00\"");
    std::string tried;
    for (const std::filesystem::path& folder : folders_) {
        const std::filesystem::path path = folder / name;
        std::error_code none;
        if (!std::filesystem::is_regular_file(path, none)) {
            tried += (tried.empty() ? "" : ", ") + path.string();
            continue;
        }
        std::ifstream file(path, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        auto zone = read_zone_file(bytes);
        if (!zone) return fail(errc::invalid_argument, what + ": " + path.string() + ": " + zone.error().message);
        return zone;
    }
    return fail(errc::not_found, what + " is not known here; looked for " + tried +
                                     ": check its name, install the system's tzdata, or write an offset as \"+02:00\"");
}

} // namespace holdfast
