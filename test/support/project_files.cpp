#include "support/vector_file.h"

#include <catch2/catch.hpp>

namespace fjord::test {

std::filesystem::path vector_file(std::string_view relative) {
  std::filesystem::path path = std::filesystem::path(FJORD_TEST_DATA_DIR) / "vectors" / relative;
  INFO(path.string());
  REQUIRE(std::filesystem::exists(path));
  return path;
}

}  // namespace fjord::test
