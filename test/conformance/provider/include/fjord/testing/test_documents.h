#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::testing {

/// A put or remove with the bytes that spi::Write only points to.
struct OwnedWrite {
  GlobalId gid;
  Timestamp timestamp;
  bool remove = false;
  std::string id;
  std::string header;
  std::string body;

  /// Good as long as this is not moved.
  spi::Write view() const;
};

/// One type, "item": title and size in the header, text in the body.
const std::shared_ptr<const DocumentTypeRepo>& test_types();
DocumentId test_id(int number);
OwnedWrite test_put(int number, std::uint64_t timestamp_us, const std::string& text = "text");
OwnedWrite test_remove(int number, std::uint64_t timestamp_us);

/// Applies one batch and gives its results.
std::vector<spi::WriteResult> apply(spi::PersistenceProvider& provider, BucketId bucket,
                                    std::span<const OwnedWrite> writes);
/// Applies one write.
spi::WriteResult apply(spi::PersistenceProvider& provider, BucketId bucket, const OwnedWrite& write);

/// An entry of a docblock with its bytes.
struct OwnedEntry {
  GlobalId gid;
  std::uint64_t timestamp_us = 0;
  bool removed = false;
  std::string id;
  std::string header;
  std::string body;

  friend auto operator<=>(const OwnedEntry&, const OwnedEntry&) = default;
};
std::vector<OwnedEntry> entries_of(const std::string& block);
/// Everything that an iteration gives, in blocks of `max_bytes`, by rising gid. A failure ends the process.
std::vector<OwnedEntry> iterate_all(spi::PersistenceProvider& provider, BucketId bucket,
                                    const spi::IterateOptions& options, std::size_t max_bytes = 1 << 20);

}  // namespace fjord::testing
