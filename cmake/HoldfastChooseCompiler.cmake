# Included before project(). Where the machine's own C++ compiler is too old (Debian 12 has GCC 12), takes the newest
# clang++-N there is. Does nothing when somebody has chosen already: CMAKE_CXX_COMPILER, CXX, a toolchain file or a
# parent project. HoldfastCheckCompiler refuses what is still too old afterwards.
if(DEFINED CMAKE_CXX_COMPILER OR DEFINED ENV{CXX} OR CMAKE_TOOLCHAIN_FILE)
    return()
endif()

# result = whether the C++ compiler at path is a GCC >= 13 or a Clang >= 19.
function(holdfast_is_new_enough path result)
    execute_process(COMMAND "${path}" --version OUTPUT_VARIABLE text ERROR_QUIET)
    execute_process(COMMAND "${path}" -dumpversion OUTPUT_VARIABLE version ERROR_QUIET)
    set(oldest 13)
    if(text MATCHES "clang")
        set(oldest 19)
    endif()
    if(version VERSION_GREATER_EQUAL oldest)
        set(${result} TRUE PARENT_SCOPE)
    endif()
endfunction()

find_program(default_compiler NAMES c++ g++ clang++ NO_CACHE)
if(default_compiler)
    holdfast_is_new_enough("${default_compiler}" default_will_do)
endif()
if(NOT default_will_do)
    foreach(number RANGE 30 19 -1)
        list(APPEND clangs clang++-${number})
    endforeach()
    find_program(CMAKE_CXX_COMPILER NAMES ${clangs} clang++ DOC "C++ compiler")
    if(NOT CMAKE_CXX_COMPILER)
        unset(CMAKE_CXX_COMPILER CACHE) # Let project() find what there is, and the check say why it will not do.
    endif()
endif()
