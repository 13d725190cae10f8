# cmake -D SOURCE=<file> -P HoldfastCompileFail.cmake -- <compiler> <options>...
# Compiles the file without making anything, and compares with what its first line expects.
file(STRINGS "${SOURCE}" first_line LIMIT_COUNT 1)

set(command)
set(past_dashes FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
    if(past_dashes)
        list(APPEND command "${CMAKE_ARGV${i}}")
    elseif(CMAKE_ARGV${i} STREQUAL "--")
        set(past_dashes TRUE)
    endif()
endforeach()

execute_process(
    COMMAND ${command} -fsyntax-only -fdiagnostics-color=never "${SOURCE}"
    RESULT_VARIABLE exit_code
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output
)

if(first_line STREQUAL "// compiles")
    if(NOT exit_code EQUAL 0)
        message(FATAL_ERROR "should compile, but:\n${output}")
    endif()
elseif(first_line MATCHES "^// expect: (.+)$")
    set(expected "${CMAKE_MATCH_1}")
    if(exit_code EQUAL 0)
        message(FATAL_ERROR "compiles, but should be refused with: ${expected}")
    elseif(NOT output MATCHES "${expected}")
        message(FATAL_ERROR "is refused, but not with: ${expected}\n${output}")
    endif()
else()
    message(FATAL_ERROR "${SOURCE}:1: expected `// expect: <regex>` or `// compiles`, found `${first_line}`")
endif()
