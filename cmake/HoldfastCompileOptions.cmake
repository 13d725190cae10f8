# How everything in this repository is compiled. Only what the targets need themselves is passed on to users.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(NOT PROJECT_IS_TOP_LEVEL)
    return() # Warnings, sanitizers and caches are the parent project's business.
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()

# clang counts -Wsign-conversion into -Wconversion, GCC does not; here it is off for both.
add_compile_options(
    -Wall
    -Wextra
    -Wpedantic
    -Wshadow
    -Wconversion
    -Wno-sign-conversion
    -Wcast-qual
    -Wextra-semi
    -Wformat=2
    -Wimplicit-fallthrough
    -Wnon-virtual-dtor
    -Wold-style-cast
    -Woverloaded-virtual
)
if(HOLDFAST_WARNINGS_AS_ERRORS)
    add_compile_options(-Werror)
endif()

if(HOLDFAST_SANITIZE)
    set(sanitizer_flags -fsanitize=${HOLDFAST_SANITIZE} -fno-omit-frame-pointer)
    if(HOLDFAST_SANITIZE MATCHES "undefined")
        list(APPEND sanitizer_flags -fno-sanitize-recover=undefined)
    endif()
    add_compile_options(${sanitizer_flags})
    add_link_options(${sanitizer_flags})
endif()
