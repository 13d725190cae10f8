// "did you mean …?": the known name nearest to a mistyped one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// The number of single-character edits between two words; a swap of two neighbours counts as one.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

// The nearest of `known`, or nothing when none is near enough to be what was meant.
template <class Range>
std::string nearest(std::string_view wrong, const Range& known) {
    std::string best;
    std::size_t best_distance = std::max<std::size_t>(2, wrong.size() / 3) + 1;
    for (const auto& each : known) {
        const std::size_t distance = edit_distance(wrong, each);
        if (distance < best_distance) {
            best_distance = distance;
            best = std::string(each);
        }
    }
    return best;
}

// "; did you mean "x"?" or nothing: to be put at the end of a message.
template <class Range>
std::string did_you_mean(std::string_view wrong, const Range& known) {
    const std::string best = nearest(wrong, known);
    return best.empty() ? std::string() : "; did you mean \"" + best + "\"?";
}

} // namespace holdfast
