# Options of the build, and what follows from them for every target.

option(FJORD_WERROR "Treat warnings as errors" ON)
option(FJORD_LINK_CHECKS "Build the link check of each module with `all` and run it as a test" OFF)
option(FJORD_CCACHE "Compile through ccache where it is installed" ON)
option(FJORD_UNITY "Compile the sources of a module in groups, which halves the time of a whole build" OFF)
option(FJORD_PCH "Precompile the standard headers that most sources use" ON)
option(FJORD_MOLD "Link with mold where it is installed" ON)
option(FJORD_JEMALLOC "Allocate with jemalloc in the programs" ON)
set(FJORD_SANITIZE "" CACHE STRING "Sanitizers: `address,undefined`, `thread` or `fuzzer` (clang only; implies the first)")
set(FJORD_ONLY "" CACHE STRING "Configure only these module folders (with their tests), e.g. `common;document`; empty: all")
option(FJORD_CLIENT_ONLY "Configure only the Python client and the modules that it links, for pyproject.toml" OFF)
option(FJORD_PYTHON "Build the Python client where the headers of Python and nanobind are found" ON)
set(FJORD_SIM_SEEDS 250 CACHE STRING "How many seeds the simulation runs as part of the tests, of each scenario; the other numbers of seeds follow from it")
set(FJORD_SHARED_DIR "${PROJECT_SOURCE_DIR}/../shared" CACHE PATH
    "Folder of the test vectors and data sets that are not part of this repository")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)  # target all_verify_interface_header_sets
set_property(GLOBAL PROPERTY USE_FOLDERS ON)
# A source with flags of its own (such as -msse4.2) cannot use the precompiled header and quietly reads the real ones.
set(CMAKE_PCH_WARN_INVALID OFF)

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(FJORD_PCH OFF)  # clang refuses a precompiled header that was made without the -pthread of a target
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
# -g1 keeps stack traces with line numbers at a fifth of the size of -g. NDEBUG silences the assert() of libraries;
# FJORD_CHECK does not look at it.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

# The Python extension links the libraries into a shared object. Without interposition of symbols the compiler may inline as in
# an executable, and the linker makes direct calls again where an executable is linked: the programs lose nothing.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fno-semantic-interposition)
endif()

# A module's own code answers for these; generated code and external headers do not.
set(FJORD_WARNING_OPTIONS -Wall -Wextra -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees overlapping, overlong and uninitialised copies in std::string's own code under -O2 where there are none (GCC bugs 105329, 105651).
  list(APPEND FJORD_WARNING_OPTIONS -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
    -Wno-maybe-uninitialized)
endif()
if(FJORD_WERROR)
  list(APPEND FJORD_WARNING_OPTIONS -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND FJORD_WARNING_OPTIONS -Wthread-safety)
endif()

if(FJORD_SANITIZE MATCHES "fuzzer")
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FJORD_SANITIZE=fuzzer needs clang; g++ has no libFuzzer")
  endif()
  # Only the fuzz targets link the main() of libFuzzer (see fjord_fuzz_test); everything is instrumented for it.
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined)
  add_compile_options(-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/test/fuzz/ignorelist.txt)
  add_link_options(-fsanitize=address,undefined)
elseif(FJORD_SANITIZE)
  add_compile_options(-fsanitize=${FJORD_SANITIZE})
  add_link_options(-fsanitize=${FJORD_SANITIZE})
endif()
if(FJORD_SANITIZE)
  add_compile_options(-O1 -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)  # mistaken about the standard library once it is instrumented
    # Thrift's protocols load enumerators from the wire before anybody can check them; g++ cannot except its headers.
    add_compile_options(-fno-sanitize=enum)
  endif()
  if(FJORD_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # Boost.Asio contains fences, which g++ reports once per use
  endif()
endif()

if(FJORD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(FJORD_CCACHE_PROGRAM ccache)
  mark_as_advanced(FJORD_CCACHE_PROGRAM)
  if(FJORD_CCACHE_PROGRAM)
    # The sloppiness is what ccache needs to see through precompiled headers. With the build folder kept out of the hash,
    # one cache serves every build folder; debug information then names the one that compiled the file first.
    set(CMAKE_CXX_COMPILER_LAUNCHER env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_NOHASHDIR=true
        CCACHE_BASEDIR=${PROJECT_SOURCE_DIR})
    if(FJORD_SANITIZE MATCHES "fuzzer")  # ccache does not know this option of clang.
      list(APPEND CMAKE_CXX_COMPILER_LAUNCHER CCACHE_EXTRAFILES=${PROJECT_SOURCE_DIR}/test/fuzz/ignorelist.txt)
    endif()
    list(APPEND CMAKE_CXX_COMPILER_LAUNCHER ${FJORD_CCACHE_PROGRAM})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      add_compile_options(-fpch-preprocess)
    endif()
  endif()
endif()

if(FJORD_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold FJORD_HAVE_MOLD)
  if(FJORD_HAVE_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
