#include "support/project_files.h"

#include <catch2/catch.hpp>

namespace fjord::test {

std::filesystem::path project_file(std::string_view relative) {
  return std::filesystem::path(FJORD_SOURCE_DIR) / relative;
}

std::filesystem::path data_file(std::string_view relative) { return project_file("test/data") / relative; }

std::filesystem::path vector_file(std::string_view relative) {
  std::filesystem::path path = data_file("vectors") / relative;
  INFO(path.string());
  REQUIRE(std::filesystem::exists(path));
  return path;
}

}  // namespace fjord::test
