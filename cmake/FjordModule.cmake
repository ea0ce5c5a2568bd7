# fjord_add, fjord_module, fjord_executable, fjord_use_jemalloc, fjord_test, fjord_fuzz_test.

# The folders that the Python client needs. Its source distribution has no others (pyproject.toml).
set(FJORD_CLIENT_FOLDERS common document cluster rpc rpc/codec storage/spi visitors client tuner mapreduce/functions mapreduce
  monitoring api rpc/thrift client/connect library python)

# fjord_add(<folder>): adds a folder of the repository if it exists and FJORD_ONLY, when set, names it.
function(fjord_add folder)
  if(FJORD_CLIENT_ONLY AND NOT folder IN_LIST FJORD_CLIENT_FOLDERS)
    return()
  endif()
  if(FJORD_ONLY AND NOT folder STREQUAL "test" AND NOT folder IN_LIST FJORD_ONLY)
    return()
  endif()
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/${folder})
  endif()
endfunction()

# Stops the configure step when a dependency inside Fjord has not been added yet.
function(_fjord_require_targets name)
  foreach(dependency IN LISTS ARGN)
    if(dependency MATCHES "^fjord::" AND NOT TARGET ${dependency})
      message(FATAL_ERROR "${name} depends on ${dependency}, which is not above it in the root CMakeLists.txt")
    endif()
  endforeach()
endfunction()

# The folder of a target in an IDE: its folder in the repository.
function(_fjord_set_folder target)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES FOLDER "${folder}")
endfunction()

# The standard headers that most sources include, compiled once. Sources include what they use all the same: the preset dev
# builds without this.
if(FJORD_PCH)
  add_library(fjord_standard_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/link_check_main.cpp)
  target_precompile_headers(fjord_standard_headers PRIVATE
    <algorithm> <chrono> <cstdint> <functional> <map> <memory> <optional> <span> <string> <string_view> <unordered_map>
    <utility> <variant> <vector>)
  set_target_properties(fjord_standard_headers PROPERTIES FOLDER cmake)
endif()
function(_fjord_use_standard_headers target)
  if(FJORD_PCH)
    target_precompile_headers(${target} REUSE_FROM fjord_standard_headers)
  endif()
endfunction()

# fjord_compile_together(<target>): with FJORD_UNITY, the compiler reads the sources of the target eight at a time, so that it
# reads the headers once for eight sources. The presets dev, asan-ubsan and tsan compile each source alone.
function(fjord_compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${FJORD_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  if(FJORD_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ takes a source that another one includes for a header, where a class with members of unnamed namespaces is a fault.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# fjord_module(<name> [SEPARATE] HEADERS ... [SOURCES ...] [DEPENDS ...] [PRIVATE_DEPENDS ...])
#
# Makes the library fjord_<name> with the alias fjord::<name>. HEADERS are the public ones, below include/; DEPENDS is what
# they mention, PRIVATE_DEPENDS what only the sources mention. Private headers sit beside the sources. A module without
# SOURCES is an interface library. SEPARATE: each source is compiled alone, because two of them use a name differently; as
# those of test/ and bench/ are.
function(fjord_module name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "SEPARATE" "" "SOURCES;HEADERS;DEPENDS;PRIVATE_DEPENDS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fjord_module(${name}): unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  _fjord_require_targets(${name} ${ARG_DEPENDS} ${ARG_PRIVATE_DEPENDS})

  set(target fjord_${name})
  if(NOT ARG_SOURCES)
    if(ARG_PRIVATE_DEPENDS)
      message(FATAL_ERROR "fjord_module(${name}): PRIVATE_DEPENDS means nothing without SOURCES")
    endif()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${ARG_DEPENDS})
    set(scope INTERFACE)
  else()
    add_library(${target} STATIC ${ARG_SOURCES})
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_options(${target} PRIVATE ${FJORD_WARNING_OPTIONS})
    target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
    _fjord_use_standard_headers(${target})
    if(NOT ARG_SEPARATE AND NOT CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/(test|bench)(/|$)")
      fjord_compile_together(${target})
    endif()
    set(scope PUBLIC)
  endif()
  add_library(fjord::${name} ALIAS ${target})
  target_compile_features(${target} ${scope} cxx_std_20)
  if(ARG_HEADERS)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS include FILES ${ARG_HEADERS})
  endif()
  _fjord_set_folder(${target})
  if(ARG_SOURCES)
    _fjord_add_link_check(${target})
  endif()
endfunction()

# The target fjord_link_checks builds the checks of all modules.
function(_fjord_add_link_check target)
  set(check ${target}_link_check)
  add_executable(${check} ${PROJECT_SOURCE_DIR}/cmake/link_check_main.cpp)
  target_link_libraries(${check} PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${target}>)
  set_target_properties(${check} PROPERTIES FOLDER link_checks)
  if(NOT TARGET fjord_link_checks)
    add_custom_target(fjord_link_checks)
  endif()
  add_dependencies(fjord_link_checks ${check})
  if(FJORD_LINK_CHECKS)
    add_test(NAME ${check} COMMAND ${check})
    set_tests_properties(${check} PROPERTIES LABELS link_check)
  else()
    set_target_properties(${check} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# fjord_executable(<name> SOURCES ... [DEPENDS ...]): a program, in <build folder>/bin.
function(fjord_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPENDS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fjord_executable(${name}): unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  _fjord_require_targets(${name} ${ARG_DEPENDS})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${FJORD_WARNING_OPTIONS})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  _fjord_use_standard_headers(${name})
  _fjord_set_folder(${name})
endfunction()

# The executable allocates with jemalloc instead of the C library; not under a sanitizer, which has an allocator of its own.
function(fjord_use_jemalloc executable)
  if(FJORD_JEMALLOC AND NOT FJORD_SANITIZE)
    target_link_libraries(${executable} PRIVATE PkgConfig::jemalloc)
  endif()
endfunction()

# fjord_test(NAME x_test [MEMORY] SOURCES ... [DEPENDS ...] [ARGS ...] [LABELS ...] [ENVIRONMENT ...] [TIMEOUT seconds])
#
# Makes one Catch2 program and registers it as one test. main() and <catch2/catch.hpp> (precompiled) are shared by all of
# them. Sources see test/ as an include folder (#include "support/..."). `./run test` leaves out the label `long` unless
# asked. Without LABELS it is `unit` and `quick`: `./run test --quick` runs it, so it takes a few seconds at most; a
# slower one says LABELS unit. MEMORY adds the label `memory`: these are tests of code that parses bytes or manages
# memory by hand, and `./run test --asan --quick` builds and runs them alone.
function(fjord_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "MEMORY" "NAME;TIMEOUT" "SOURCES;DEPENDS;ARGS;LABELS;ENVIRONMENT")
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_NAME OR NOT ARG_SOURCES)
    message(FATAL_ERROR "fjord_test(${ARG_NAME}): needs NAME and SOURCES; unknown arguments: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  _fjord_require_targets(${ARG_NAME} ${ARG_DEPENDS})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE fjord_test_main ${ARG_DEPENDS})
  target_precompile_headers(${ARG_NAME} REUSE_FROM fjord_test_main)
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit quick)
  endif()
  if(ARG_MEMORY)
    list(APPEND ARG_LABELS memory)
    fjord_memory_test_needs(${ARG_NAME})
  endif()
  _fjord_finish_test(${ARG_NAME} "${ARG_ARGS}" "${ARG_LABELS}" "${ARG_ENVIRONMENT}" "${ARG_TIMEOUT}")
  if(quick IN_LIST ARG_LABELS)
    fjord_quick_test_needs(${ARG_NAME})
  endif()
endfunction()

# fjord_quick_test_needs(<target>...): the target fjord_quick_tests, which `./run test --quick` builds, builds these.
function(fjord_quick_test_needs)
  _fjord_add_to(fjord_quick_tests ${ARGN})
endfunction()

# fjord_memory_test_needs(<target>...): the target fjord_memory_tests, which `./run test --asan --quick` builds, builds these.
function(fjord_memory_test_needs)
  _fjord_add_to(fjord_memory_tests ${ARGN})
endfunction()

# The target `group` builds these targets, too.
function(_fjord_add_to group)
  if(NOT TARGET ${group})
    add_custom_target(${group})
  endif()
  add_dependencies(${group} ${ARGN})
endfunction()

# fjord_fuzz_test(NAME x_fuzz SOURCES ... [DEPENDS ...])
#
# SOURCES define LLVMFuzzerTestOneInput; the seeds are in corpus/x beside them. With FJORD_SANITIZE=fuzzer (clang)
# libFuzzer drives it, through test/fuzz/fuzz.sh; otherwise test/support/fuzz_main.cpp does, with the seeds and
# mutations of them. Label: fuzz. The target fjord_fuzz_tests builds all of them.
function(fjord_fuzz_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;DEPENDS")
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_NAME OR NOT ARG_SOURCES)
    message(FATAL_ERROR "fjord_fuzz_test(${ARG_NAME}): needs NAME and SOURCES; unknown: ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  _fjord_require_targets(${ARG_NAME} ${ARG_DEPENDS})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPENDS})
  _fjord_add_to(fjord_fuzz_tests ${ARG_NAME})
  string(REGEX REPLACE "_fuzz$" "" target ${ARG_NAME})
  set(seeds ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${target})
  if(FJORD_SANITIZE MATCHES "fuzzer")
    target_link_options(${ARG_NAME} PRIVATE -fsanitize=fuzzer)
    _fjord_finish_test(${ARG_NAME} "${seeds};${PROJECT_BINARY_DIR}/fuzz" "fuzz" "" ""
                       ${PROJECT_SOURCE_DIR}/test/fuzz/fuzz.sh)
    # How long it takes is said when it is started; it ends by itself.
    set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT 0)
  else()
    target_sources(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/test/support/fuzz_main.cpp)
    _fjord_finish_test(${ARG_NAME} "--runs=20000;--seed=1;${seeds}" "fuzz" "" "")
  endif()
endfunction()

# What else is given goes before the program on the command line of the test.
function(_fjord_finish_test name arguments labels environment timeout)
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/test)
  target_compile_options(${name} PRIVATE ${FJORD_WARNING_OPTIONS})
  _fjord_set_folder(${name})
  if(NOT timeout)
    set(timeout 120)
  endif()
  if(FJORD_SANITIZE)
    math(EXPR timeout "${timeout} * 5")
    # handle_sigbus=0: the storage engine handles SIGBUS itself, and leaves a handler alone that it finds (common/lost_pages.h).
    list(APPEND environment UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=second_deadlock_stack=1:handle_sigbus=0
         ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:handle_sigbus=0)
  endif()
  add_test(NAME ${name} COMMAND ${ARGN} $<TARGET_FILE:${name}> ${arguments})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${labels}" ENVIRONMENT "${environment}")
endfunction()
