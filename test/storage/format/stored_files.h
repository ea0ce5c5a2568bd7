#pragma once

#include <filesystem>
#include <string>

#include "fjord/document/document.h"
#include "fjord/storage/spi/persistence_provider.h"
#include "fjord/testing/test_documents.h"

namespace fjord::testing {

/// A copy of a folder of test/data, in a temporary folder that the destructor removes.
class StoredFiles {
 public:
  /// `relative` is a path below test/data, such as "slotfile/v1". README.md is not copied.
  explicit StoredFiles(const std::string& relative);
  ~StoredFiles();
  StoredFiles(const StoredFiles&) = delete;
  StoredFiles& operator=(const StoredFiles&) = delete;

  std::string path() const { return path_.string(); }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }
  /// Returns the path of the folder in the repository.
  static std::filesystem::path source(const std::string& relative);

 private:
  std::filesystem::path path_;
};

/// Returns "id:test:item:n=<location>:<number>".
DocumentId located_id(int location, int number);
OwnedWrite located_put(int location, int number, std::uint64_t timestamp_us, const std::string& text);
OwnedWrite located_remove(int location, int number, std::uint64_t timestamp_us);

/// Returns the stored document with that id, decoded. Fails the test if it does not exist or cannot be read.
Document stored_document(spi::PersistenceProvider& provider, BucketId bucket, const DocumentId& id);
/// Returns the document that located_put(..., text) stores, decoded.
Document located_document(int location, int number, const std::string& text);

}  // namespace fjord::testing
