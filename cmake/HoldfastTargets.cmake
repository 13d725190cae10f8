include(GNUInstallDirs)

# The package's CMake files, and the plugins, under the install prefix.
set(HOLDFAST_INSTALL_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")
set(HOLDFAST_INSTALL_PLUGIN_DIR "${CMAKE_INSTALL_LIBDIR}/holdfast/plugins")
# Where this build's plugins are. The installed package sets the same name, so one CMakeLists.txt serves both.
set(HOLDFAST_PLUGIN_DIR "${PROJECT_BINARY_DIR}/plugins" CACHE INTERNAL "Folder of the Holdfast plugins")

# holdfast_add_library(<name> [HEADER_ONLY] [PUBLIC <targets>...] [PRIVATE <targets>...])
#
# The library of the current folder: holdfast_<name>, for users holdfast::<name>. Headers are in include/, sources in
# src/. It is installed as the package's component <name>. PRIVATE dependencies are headers for our own sources: users
# of the installed library do not need them.
function(holdfast_add_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "HEADER_ONLY" "" "PUBLIC;PRIVATE")
    set(target holdfast_${name})
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/*.hpp)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/*.cpp)

    if(arg_HEADER_ONLY OR NOT sources)
        add_library(${target} INTERFACE)
        set(visibility INTERFACE)
    else()
        add_library(${target} STATIC ${sources})
        set(visibility PUBLIC)
        target_include_directories(${target} PRIVATE src)
        list(TRANSFORM arg_PRIVATE REPLACE "(.+)" "$<BUILD_INTERFACE:\\1>")
        target_link_libraries(${target} PRIVATE ${arg_PRIVATE})
    endif()
    target_link_libraries(${target} ${visibility} ${arg_PUBLIC})
    target_compile_features(${target} ${visibility} cxx_std_23)
    target_sources(${target} ${visibility} FILE_SET HEADERS BASE_DIRS include FILES ${headers})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
    add_library(holdfast::${name} ALIAS ${target})

    install(TARGETS ${target} EXPORT holdfast-${name} FILE_SET HEADERS)
    install(EXPORT holdfast-${name} NAMESPACE holdfast:: DESTINATION "${HOLDFAST_INSTALL_CMAKE_DIR}")
endfunction()

# holdfast_add_driver(<name> <targets>... [SOURCES <files>...])
#
# What the plugins for one kind of server share: holdfast_driver_<name>, linked into each of them, never installed. Headers
# are in include/, sources in src/ unless they are named.
function(holdfast_add_driver name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES")
    if(NOT arg_SOURCES)
        file(GLOB arg_SOURCES CONFIGURE_DEPENDS src/*.cpp)
    endif()
    set(target holdfast_driver_${name})
    add_library(${target} STATIC ${arg_SOURCES})
    target_include_directories(${target} PUBLIC include PRIVATE src)
    target_link_libraries(${target} PUBLIC holdfast::abstractions ${arg_UNPARSED_ARGUMENTS})
    set_target_properties(
        ${target}
        PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    )
endfunction()

# holdfast_ship_plugin(<target> [SKIP_VERIFY])
#
# Makes a plugin from holdfast_add_plugin part of the product: it is built into the plugin folder, installed, and, unless
# it needs a server or settings to be verified, listed in the global property HOLDFAST_SHIPPED_PLUGINS. The target
# holdfast_plugins builds all of them.
add_custom_target(holdfast_plugins)
function(holdfast_ship_plugin target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "SKIP_VERIFY" "" "")
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${HOLDFAST_PLUGIN_DIR}")
    if(NOT arg_SKIP_VERIFY)
        set_property(GLOBAL APPEND PROPERTY HOLDFAST_SHIPPED_PLUGINS ${target})
    endif()
    add_dependencies(holdfast_plugins ${target})
    install(TARGETS ${target} DESTINATION "${HOLDFAST_INSTALL_PLUGIN_DIR}")
endfunction()

# holdfast_precompile(<target> <headers>...): compiles them once for the whole target. A source might lean then on what it
# does not include: the test of the package as a subfolder of another project is built without (HOLDFAST_PRECOMPILE).
function(holdfast_precompile target)
    if(NOT HOLDFAST_PRECOMPILE)
        return()
    endif()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    # ccache keeps what was compiled with a precompiled header only if told so, and clang must leave the time out of it.
    if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
        set(lenient CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
        set_target_properties(
            ${target}
            PROPERTIES CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;${lenient};${CMAKE_CXX_COMPILER_LAUNCHER}"
        )
        if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
            target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
        endif()
    endif()
endfunction()
