#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "fjord/document/document.h"
#include "fjord/document/document_type.h"
#include "fjord/document/selection.h"

namespace fjord::test {

/// Returns the schema of documents.jsonl for a suite, plus the types and fields that only other vector files use.
/// Selections on unknown types or fields are refused.
std::shared_ptr<const DocumentTypeRepo> selection_types(const std::string& suite);

/// A document of documents.jsonl.
struct Subject {
  std::string id;
  std::string type;
  std::optional<EncodedDocument> encoded;  ///< Present only for a put whose id is valid.
};

struct Suite {
  std::shared_ptr<const DocumentTypeRepo> types;
  std::map<std::string, Subject> subjects;
};

/// Returns the suites by name. Call it from inside a test case, like everything here.
std::map<std::string, Suite> read_suites(const std::filesystem::path& documents);

/// Counts the rows of a vector file that do not pass, by the feature that they need, and compares with the table in
/// document/SELECTION.md, which gives the reasons.
class LeftOut {
 public:
  explicit LeftOut(std::string file) : file_(std::move(file)) {}
  void add(const std::string& what) { ++rows_[what]; }
  /// Fails the test if the table lists other rows or other numbers for the file.
  void check() const;

 private:
  std::string file_;
  std::map<std::string, int> rows_;
};

}  // namespace fjord::test
