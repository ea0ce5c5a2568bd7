#pragma once

#include <filesystem>
#include <string_view>

namespace fjord::test {

// Files of the source tree. Only project_files.cpp is compiled with the path of the tree: the compiler cache then
// serves all other tests in every checkout.

/// Returns the file `relative` of the source tree.
std::filesystem::path project_file(std::string_view relative);

/// Returns the file `relative` of test/data.
std::filesystem::path data_file(std::string_view relative);

/// Returns the file `relative` of test/data/vectors, and fails the running test case if it is not there.
///
///     const auto path = test::vector_file("ids/document_ids.tsv");
std::filesystem::path vector_file(std::string_view relative);

}  // namespace fjord::test
