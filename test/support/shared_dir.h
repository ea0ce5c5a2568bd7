#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace fjord::test {

/// The file or folder `relative` of the shared folder, which holds test vectors and data sets outside this repository.
/// Its place is the environment variable FJORD_SHARED_DIR, or else the CMake cache variable of the same name.
///
/// Without it the running test case prints a warning that says what it leaves out, and gets nothing:
///
///     const auto vectors = test::shared_path("vectors/ids");
///     if (!vectors) return;
///
/// Call it from inside a test case.
std::optional<std::filesystem::path> shared_path(std::string_view relative);

}  // namespace fjord::test
