# holdfast_toml: toml++ as headers alone. Distributions also ship it compiled, and their targets would make every user
# of the host link that library.
find_package(tomlplusplus CONFIG QUIET)
add_library(holdfast_toml INTERFACE)
target_compile_definitions(holdfast_toml INTERFACE TOML_HEADER_ONLY=1)
if(tomlplusplus_FOUND)
    target_include_directories(
        holdfast_toml SYSTEM
        INTERFACE $<TARGET_PROPERTY:tomlplusplus::tomlplusplus,INTERFACE_INCLUDE_DIRECTORIES>)
else()
    find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h)
    if(NOT TOMLPLUSPLUS_INCLUDE_DIR)
        message(FATAL_ERROR "holdfast: host: toml++ not found (Debian: apt-get install libtomlplusplus-dev)")
    endif()
    target_include_directories(holdfast_toml SYSTEM INTERFACE "${TOMLPLUSPLUS_INCLUDE_DIR}")
endif()
