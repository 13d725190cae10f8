# The files that make find_package(holdfast COMPONENTS ...) work from an install prefix.
include(CMakePackageConfigHelpers)

configure_package_config_file(
    "${CMAKE_CURRENT_LIST_DIR}/holdfast-config.cmake.in"
    "${PROJECT_BINARY_DIR}/package/holdfast-config.cmake"
    INSTALL_DESTINATION "${HOLDFAST_INSTALL_CMAKE_DIR}"
    PATH_VARS HOLDFAST_INSTALL_PLUGIN_DIR
)
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/package/holdfast-config-version.cmake"
    COMPATIBILITY SameMinorVersion # Until 1.0 a minor release may break its users.
)
install(
    FILES
        "${PROJECT_BINARY_DIR}/package/holdfast-config.cmake"
        "${PROJECT_BINARY_DIR}/package/holdfast-config-version.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/HoldfastCheckCompiler.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/HoldfastPlugin.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/holdfast-plugin.map"
    DESTINATION "${HOLDFAST_INSTALL_CMAKE_DIR}"
)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
