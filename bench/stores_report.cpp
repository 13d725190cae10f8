#include "stores_report.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace bench {

namespace {

std::string promise_text(const store_figure& f) {
    if (f.reference <= 0) return {};
    char text[200];
    std::snprintf(text, sizeof text, "%5.2f x %-34s %10.0f", f.ratio(), f.against.c_str(), f.reference);
    std::string line = text;
    if (!f.promised()) return line;
    std::snprintf(text, sizeof text, "  %s %.3g  %s", f.least > 0 ? ">=" : "<=", f.least > 0 ? f.least : f.most,
                  f.kept() ? "kept" : "NOT KEPT");
    return line + text;
}

} // namespace

void store_report::add(store_figure f) {
    if (f.store != latest_store_) std::printf("%s%s\n", latest_store_.empty() ? "" : "\n", f.store.c_str());
    latest_store_ = f.store;
    std::printf("  %-44s %10.*f %-8s %s\n", f.name.c_str(), f.value < 100 ? 2 : 0, f.value, f.unit.c_str(),
                promise_text(f).c_str());
    std::fflush(stdout);
    figures_.push_back(std::move(f));
}

void store_report::note(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

bool store_report::kept() const {
    return std::ranges::all_of(figures_, &store_figure::kept);
}

bool store_report::write_json(const std::filesystem::path& file) const {
    std::ofstream out(file);
    out << "{\n  \"figures\": [";
    for (std::size_t i = 0; i < figures_.size(); ++i) {
        const store_figure& f = figures_[i];
        char numbers[200] = "";
        if (f.reference > 0)
            std::snprintf(numbers, sizeof numbers, ", \"against\": \"%s\", \"reference\": %.3f, \"ratio\": %.4f",
                          f.against.c_str(), f.reference, f.ratio());
        out << (i == 0 ? "\n" : ",\n") << "    {\"store\": \"" << f.store << "\", \"name\": \"" << f.name
            << "\", \"unit\": \"" << f.unit << "\", \"value\": " << f.value << numbers;
        if (f.promised()) out << ", \"promise_kept\": " << (f.kept() ? "true" : "false");
        out << "}";
    }
    out << "\n  ]\n}\n";
    out.close();
    return static_cast<bool>(out);
}

} // namespace bench
