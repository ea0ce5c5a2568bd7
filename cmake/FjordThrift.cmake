# fjord_thrift_module(<name> FILES a.thrift ... )
#
# Makes the library fjord_<name> (alias fjord::<name>) from the C++ code that the Thrift compiler generates for the files:
# <file>_types.h and, per service, <Service>.h with asynchronous (cob_style) clients and processors. Generated code is
# compiled without warnings and seen by its users as system headers.
function(fjord_thrift_module name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "FILES")
  find_program(FJORD_THRIFT_COMPILER thrift REQUIRED)
  mark_as_advanced(FJORD_THRIFT_COMPILER)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/gen-cpp)
  file(MAKE_DIRECTORY ${generated})
  list(TRANSFORM ARG_FILES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE inputs)

  set(sources "")
  foreach(input IN LISTS inputs)
    # What a file declares decides which files come out of it; a changed .thrift file is therefore configured again.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${input})
    get_filename_component(base ${input} NAME_WE)
    set(headers ${base}_types.h)
    set(implementations "")
    file(STRINGS ${input} type_lines REGEX "^(struct|union|exception|enum) ")
    if(type_lines)
      list(APPEND implementations ${base}_types.cpp)
    endif()
    file(STRINGS ${input} service_lines REGEX "^service [A-Za-z0-9_]+")
    foreach(line IN LISTS service_lines)
      string(REGEX REPLACE "^service ([A-Za-z0-9_]+).*" "\\1" service "${line}")
      list(APPEND headers ${service}.h)
      list(APPEND implementations ${service}.cpp)
    endforeach()
    file(STRINGS ${input} constant_lines REGEX "^const ")
    if(constant_lines)
      list(APPEND headers ${base}_constants.h)
      list(APPEND implementations ${base}_constants.cpp)
    endif()
    list(TRANSFORM headers PREPEND ${generated}/)
    list(TRANSFORM implementations PREPEND ${generated}/)
    add_custom_command(
      OUTPUT ${implementations} ${headers}
      COMMAND ${FJORD_THRIFT_COMPILER} --gen cpp:cob_style,no_skeleton,moveable_types -I ${CMAKE_CURRENT_SOURCE_DIR}
              -out ${generated} ${input}
      DEPENDS ${inputs}
      COMMENT "Generating C++ from ${base}.thrift"
      VERBATIM)
    list(APPEND sources ${implementations} ${headers})
  endforeach()

  set(target fjord_${name})
  add_library(${target} STATIC ${sources})
  add_library(fjord::${name} ALIAS ${target})
  target_include_directories(${target} SYSTEM PUBLIC ${generated})
  target_compile_options(${target} PRIVATE -w)
  target_link_libraries(${target} PUBLIC thrift::thrift)
  _fjord_set_folder(${target})
endfunction()
