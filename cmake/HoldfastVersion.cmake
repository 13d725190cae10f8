# HOLDFAST_VERSION, read from the one header that states it.
set(version_header "${CMAKE_CURRENT_LIST_DIR}/../abstractions/include/holdfast/version.hpp")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${version_header}")
file(STRINGS "${version_header}" version_lines REGEX "^#define HOLDFAST_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
string(REGEX REPLACE "#define HOLDFAST_VERSION_[A-Z]+ " "" version_numbers "${version_lines}")
list(JOIN version_numbers "." HOLDFAST_VERSION)
