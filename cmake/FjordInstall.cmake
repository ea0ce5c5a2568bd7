# What `cmake --install` puts together: the programs, and the package that find_package(fjord) finds, with the targets
#
#   fjord::client    the library for programs: #include <fjord/fjord.h>
#   fjord::connect   the part of it below: asynchronous, with the messages of the protocol; may change
#   fjord::plugin    what a plugin sees; the rest it finds in fjord-plugin-host (use fjord_add_plugin)

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/fjord)

set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(modules common document cluster rpc client rpc_codec rpc_thrift connect storage_spi visitors tuner job_functions mapreduce
  monitoring library)
foreach(module IN LISTS modules)
  set(export_name ${module})
  if(module STREQUAL library)
    set(export_name client)
  elseif(module STREQUAL client)
    set(export_name client_core)
  endif()
  set_target_properties(fjord_${module} PROPERTIES EXPORT_NAME ${export_name})
  get_target_property(has_headers fjord_${module} HEADER_SETS)
  set(headers "")
  if(has_headers)
    set(headers FILE_SET HEADERS)
  endif()
  install(TARGETS fjord_${module} EXPORT fjord ${headers})
endforeach()

# Headers alone: libraries of plugins stay free of a second copy of what the host has.
foreach(folder storage/spi visitors mapreduce/functions plugins)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endforeach()
add_library(fjord_plugin INTERFACE)
target_compile_features(fjord_plugin INTERFACE cxx_std_20)
target_include_directories(fjord_plugin INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set_target_properties(fjord_plugin PROPERTIES EXPORT_NAME plugin)
install(TARGETS fjord_plugin EXPORT fjord)

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
