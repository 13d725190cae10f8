# Sets HOLDFAST_COMPILER_PROBLEM when the compiler cannot build Holdfast: why, and what to do. Also used by
# find_package(holdfast).
unset(HOLDFAST_COMPILER_PROBLEM)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    set(HOLDFAST_COMPILER_PROBLEM "it miscompiles coroutines: temporaries in a co_await are destroyed twice")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
    set(HOLDFAST_COMPILER_PROBLEM "it lacks parts of C++23")
endif()

if(HOLDFAST_COMPILER_PROBLEM)
    string(CONCAT HOLDFAST_COMPILER_PROBLEM
        "holdfast cannot be built with ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}: "
        "${HOLDFAST_COMPILER_PROBLEM}.\nUse Clang >= 19 or GCC >= 13: install one (Debian 12: apt-get install clang-19) "
        "and configure in a fresh build folder, with -DCMAKE_CXX_COMPILER=clang++-19 if it is not picked by itself.")
endif()
