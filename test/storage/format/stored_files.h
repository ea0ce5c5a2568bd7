#pragma once

#include <filesystem>
#include <string>

#include "fjord/document/document.h"
#include "fjord/storage/spi/persistence_provider.h"
#include "fjord/testing/test_documents.h"

namespace fjord::testing {

/// A copy of a folder of test/data in a scratch folder that is removed at the end.
class StoredFiles {
 public:
  /// `relative` as in "slotfile/v1"; the file README.md is left out.
  explicit StoredFiles(const std::string& relative);
  ~StoredFiles();
  StoredFiles(const StoredFiles&) = delete;
  StoredFiles& operator=(const StoredFiles&) = delete;

  std::string path() const { return path_.string(); }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }
  /// Where the folder is in the repository.
  static std::filesystem::path source(const std::string& relative);

 private:
  std::filesystem::path path_;
};

/// "id:test:item:n=<location>:<number>"
DocumentId located_id(int location, int number);
OwnedWrite located_put(int location, int number, std::uint64_t timestamp_us, const std::string& text);
OwnedWrite located_remove(int location, int number, std::uint64_t timestamp_us);

/// The document of that id as it is stored, decoded. Fails the test if it is not there or cannot be read.
Document stored_document(spi::PersistenceProvider& provider, BucketId bucket, const DocumentId& id);
/// What located_put(..., text) stores, decoded.
Document located_document(int location, int number, const std::string& text);

}  // namespace fjord::testing
