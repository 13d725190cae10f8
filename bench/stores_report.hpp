// What was measured of the stores: each figure beside what the server or the library itself does in the same run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct store_figure {
    std::string store;
    std::string name;
    double value = 0;
    std::string unit;
    std::string against{}; // what it is compared with
    double reference = 0;  // the same unit; 0: with nothing
    double least = 0;      // value / reference promised; 0: none
    double most = 0;

    double ratio() const { return reference > 0 ? value / reference : 0; }
    bool promised() const { return reference > 0 && (least > 0 || most > 0); }
    bool kept() const { return !promised() || ((least == 0 || ratio() >= least) && (most == 0 || ratio() <= most)); }
};

class store_report {
public:
    void add(store_figure f); // printed at once
    void note(const std::string& line);
    bool kept() const;
    // False: it could not be written.
    bool write_json(const std::filesystem::path& file) const;

private:
    std::vector<store_figure> figures_;
    std::string latest_store_;
};

} // namespace bench
