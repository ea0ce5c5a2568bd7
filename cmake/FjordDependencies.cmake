# External libraries, each as one imported target. A module names those that it uses (PRIVATE_DEPENDS of fjord_module).
#
#   fmt::fmt spdlog::spdlog rapidjson::rapidjson yaml-cpp::yaml-cpp CLI11::CLI11 libmd::libmd xxhash::xxhash
#   Boost::headers thrift::thrift TBB::tbb prometheus-cpp::core ZLIB::ZLIB Catch2::Catch2 Threads::Threads
#
# What one module alone uses is looked for in its CMakeLists.txt:
#
#   PkgConfig::re2 (RE2: document)   PkgConfig::utf8proc (document)   PkgConfig::muparser (tuner)
#   PkgConfig::libdeflate PkgConfig::nghttp2 PkgConfig::openssl (gateway)
#   PkgConfig::LZ4 PkgConfig::ZSTD (storage/slotfile)   leveldb::leveldb (storage/leveldb)
#   leveldb::leveldb PkgConfig::rocksdb PkgConfig::wiredtiger (bench/engine, which is left out where they are missing)

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(RapidJSON REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(TBB REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
if(PROJECT_NAME STREQUAL "fjord" AND NOT FJORD_CLIENT_ONLY)
  find_package(Catch2 2 REQUIRED)  # not for users of the package
endif()

find_package(PkgConfig REQUIRED)
pkg_check_modules(libmd REQUIRED IMPORTED_TARGET GLOBAL libmd)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET GLOBAL libxxhash)
pkg_check_modules(thrift REQUIRED IMPORTED_TARGET GLOBAL thrift)
if(PROJECT_NAME STREQUAL "fjord" AND NOT FJORD_CLIENT_ONLY)  # for the programs alone
  pkg_check_modules(lua REQUIRED IMPORTED_TARGET GLOBAL lua5.4)
  pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET GLOBAL libseccomp)
  pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET GLOBAL jemalloc)  # fjord_use_jemalloc
endif()
add_library(libmd::libmd ALIAS PkgConfig::libmd)
add_library(xxhash::xxhash ALIAS PkgConfig::xxhash)
add_library(thrift::thrift ALIAS PkgConfig::thrift)

if(NOT TARGET rapidjson::rapidjson)
  add_library(rapidjson::rapidjson INTERFACE IMPORTED GLOBAL)
  target_include_directories(rapidjson::rapidjson SYSTEM INTERFACE ${RAPIDJSON_INCLUDE_DIRS} ${RapidJSON_INCLUDE_DIRS})
endif()
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp INTERFACE IMPORTED GLOBAL)
  target_link_libraries(yaml-cpp::yaml-cpp INTERFACE yaml-cpp)
endif()
