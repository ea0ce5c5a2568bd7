#pragma once

#include <filesystem>
#include <string_view>

namespace fjord::test {

/// Returns the file `relative` of test/data/vectors, and fails the running test case if it is not there.
///
///     const auto path = test::vector_file("ids/document_ids.tsv");
std::filesystem::path vector_file(std::string_view relative);

}  // namespace fjord::test
