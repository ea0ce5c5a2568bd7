#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace fjord::test {

/// Returns the path of the file or folder `relative` in the shared folder, which holds test vectors and data sets
/// outside this repository. The environment variable FJORD_SHARED_DIR, or else the CMake cache variable of this name,
/// says where it is.
///
/// If there is no shared folder, prints a warning that says what the running test case leaves out, and returns nothing:
///
///     const auto vectors = test::shared_path("vectors/ids");
///     if (!vectors) return;
///
/// Call it from inside a test case.
std::optional<std::filesystem::path> shared_path(std::string_view relative);

}  // namespace fjord::test
