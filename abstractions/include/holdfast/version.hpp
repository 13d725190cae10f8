// The one place that states Holdfast's version; the build reads it from here.
#pragma once

#define HOLDFAST_VERSION_MAJOR 0
#define HOLDFAST_VERSION_MINOR 1
#define HOLDFAST_VERSION_PATCH 0

namespace holdfast {

#define HOLDFAST_DETAIL_TEXT2(x) #x
#define HOLDFAST_DETAIL_TEXT(x) HOLDFAST_DETAIL_TEXT2(x)
inline constexpr const char* version_text = HOLDFAST_DETAIL_TEXT(HOLDFAST_VERSION_MAJOR) "." HOLDFAST_DETAIL_TEXT(
    HOLDFAST_VERSION_MINOR) "." HOLDFAST_DETAIL_TEXT(HOLDFAST_VERSION_PATCH);
#undef HOLDFAST_DETAIL_TEXT
#undef HOLDFAST_DETAIL_TEXT2

} // namespace holdfast
