#include "support/shared_dir.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <system_error>

namespace fjord::test {

std::optional<std::filesystem::path> shared_path(std::string_view relative) {
  const char* from_environment = std::getenv("FJORD_SHARED_DIR");
  std::filesystem::path path(from_environment != nullptr ? from_environment : FJORD_SHARED_DIR);
  path /= relative;
  std::error_code error;
  if (std::filesystem::exists(path, error)) return path;
  WARN("SKIPPED the rest of this test case: " << path.string() << " is not there (set FJORD_SHARED_DIR)");
  return std::nullopt;
}

}  // namespace fjord::test
