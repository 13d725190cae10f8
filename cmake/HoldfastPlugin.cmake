# holdfast_add_plugin(<target> SOURCES <files>... [LINK <targets>...] [OUTPUT_NAME <name>])
#
# A plugin that the host can load: <name>.so, which exports its descriptor alone and must resolve on its own. Here and
# after find_package(holdfast).
function(holdfast_add_plugin target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT_NAME" "SOURCES;LINK")
    if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "holdfast_add_plugin(<target> SOURCES <files>... [LINK <targets>...] [OUTPUT_NAME <name>])")
    endif()
    if(NOT arg_OUTPUT_NAME)
        set(arg_OUTPUT_NAME ${target})
    endif()
    set(exports "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/holdfast-plugin.map")

    add_library(${target} MODULE ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE holdfast::abstractions ${arg_LINK})
    set_target_properties(
        ${target}
        PROPERTIES
            PREFIX ""
            SUFFIX ".so"
            OUTPUT_NAME "${arg_OUTPUT_NAME}"
            POSITION_INDEPENDENT_CODE ON
            CXX_VISIBILITY_PRESET hidden
            VISIBILITY_INLINES_HIDDEN ON
            LINK_DEPENDS "${exports}"
    )
    target_link_options(${target} PRIVATE "LINKER:--version-script=${exports}")
    # A sanitizer's symbols come from the executable, so a sanitized plugin cannot resolve on its own.
    if(NOT HOLDFAST_SANITIZE AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
        target_link_options(${target} PRIVATE LINKER:-z,defs)
    endif()
endfunction()
