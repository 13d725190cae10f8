// The time zones of this machine, read from its zoneinfo files: the same with every standard library.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <holdfast/time_zone.hpp>

namespace holdfast {

// "UTC" and offsets such as "+02:00" need no files. A zone is read once, when it is first asked for.
class system_time_zones final : public time_zones {
public:
    system_time_zones(); // the usual folders
    explicit system_time_zones(std::vector<std::filesystem::path> folders);
    ~system_time_zones() override;

    result<const time_zone*> find(std::string_view name) override;

private:
    result<std::unique_ptr<time_zone>> read(const std::string& name) const;

    const std::vector<std::filesystem::path> folders_;
    std::mutex mutex_;
    std::map<std::string, std::unique_ptr<time_zone>, std::less<>> known_;
};

} // namespace holdfast
