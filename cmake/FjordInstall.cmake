# What `cmake --install` puts together: the programs, and the package that find_package(fjord) finds, with the targets
#
#   fjord::client    the library for programs: #include <fjord/fjord.h>
#   fjord::plugin    what a plugin sees; the rest it finds in fjord-plugin-host (use fjord_add_plugin)

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/fjord)

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

# fjord::client is one archive, lib/libfjord.a, with the objects of `library` and of all modules below it. So the package has
# no target and no header of those modules, whose messages and classes change with every version.
set(modules common document cluster rpc client rpc_codec rpc_thrift connect storage_spi visitors tuner job_functions mapreduce
  monitoring library)
add_library(fjord_package STATIC)
set_target_properties(fjord_package PROPERTIES OUTPUT_NAME fjord EXPORT_NAME client LINKER_LANGUAGE CXX)
target_compile_features(fjord_package INTERFACE cxx_std_20)
target_include_directories(fjord_package INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set(header_folders "")
foreach(module IN LISTS modules)
  target_sources(fjord_package PRIVATE $<TARGET_OBJECTS:fjord_${module}>)
  get_target_property(libraries fjord_${module} INTERFACE_LINK_LIBRARIES)
  list(FILTER libraries EXCLUDE REGEX "fjord::")  # Their objects are in the archive.
  target_link_libraries(fjord_package INTERFACE ${libraries})
  get_target_property(folders fjord_${module} HEADER_DIRS)
  list(APPEND header_folders ${folders})
endforeach()
install(TARGETS fjord_package EXPORT fjord)

# A plugin links nothing, so that it has no second copy of what its host has.
add_library(fjord_plugin INTERFACE)
target_compile_features(fjord_plugin INTERFACE cxx_std_20)
target_include_directories(fjord_plugin INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(fjord_plugin PROPERTIES EXPORT_NAME plugin)
install(TARGETS fjord_plugin EXPORT fjord)

# The headers that these two include, and those that they include in turn.
get_target_property(folders fjord_plugins HEADER_DIRS)
list(APPEND header_folders ${folders})
install(CODE "
  set(folders \"${header_folders}\")
  set(headers fjord/fjord.h fjord/plugins/plugin.h)
  set(destination \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")
  include(\"${CMAKE_CURRENT_LIST_DIR}/install_headers.cmake\")")

install(TARGETS fjord fjordd fjord-inspect fjord-plugin-host fjord-script-host)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/fjord/scripts/fjord-plot-placement.py DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT fjord NAMESPACE fjord:: DESTINATION ${package_folder} FILE fjordTargets.cmake)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/fjordConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/fjordConfig.cmake INSTALL_DESTINATION ${package_folder}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/fjordConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/package/fjordConfig.cmake
  ${PROJECT_BINARY_DIR}/package/fjordConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/FjordDependencies.cmake
  DESTINATION ${package_folder})

# What the installed `fjord` says of its commands: completion for three shells, and manual pages.
install(CODE "
  set(fjord \"$<TARGET_FILE:fjord>\")
  set(share \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
  set(man \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1\")
  foreach(place bash-completion/completions/fjord zsh/site-functions/_fjord fish/vendor_completions.d/fjord.fish)
    string(REGEX MATCH \"^[a-z]+\" shell \${place})
    message(STATUS \"Installing: \${share}/\${place}\")
    execute_process(COMMAND \${fjord} completion \${shell} OUTPUT_VARIABLE script COMMAND_ERROR_IS_FATAL ANY)
    file(WRITE \"\${share}/\${place}\" \"\${script}\")
  endforeach()
  message(STATUS \"Installing: \${man}\")
  execute_process(COMMAND \${fjord} man --dir \${man} COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT reference)
