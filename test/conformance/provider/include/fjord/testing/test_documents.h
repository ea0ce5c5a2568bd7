#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::testing {

/// A put or remove that owns its bytes; spi::Write only points to them.
struct OwnedWrite {
  GlobalId gid;
  Timestamp timestamp;
  bool remove = false;
  std::string id;
  std::string header;
  std::string body;

  /// Lifetime: the view is valid until this object moves.
  spi::Write view() const;
};

/// Returns one type, "item": title and size in the header, text in the body.
const std::shared_ptr<const DocumentTypeRepo>& test_types();
DocumentId test_id(int number);
OwnedWrite test_put(int number, std::uint64_t timestamp_us, const std::string& text = "text");
OwnedWrite test_remove(int number, std::uint64_t timestamp_us);

/// Applies one batch and returns its results.
std::vector<spi::WriteResult> apply(spi::PersistenceProvider& provider, BucketId bucket,
                                    std::span<const OwnedWrite> writes);
/// Applies one write.
spi::WriteResult apply(spi::PersistenceProvider& provider, BucketId bucket, const OwnedWrite& write);

/// An entry of a docblock, with bytes of its own.
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
/// Returns all entries of an iteration, read in blocks of `max_bytes`, in ascending order of gid. Aborts on errors.
std::vector<OwnedEntry> iterate_all(spi::PersistenceProvider& provider, BucketId bucket,
                                    const spi::IterateOptions& options, std::size_t max_bytes = 1 << 20);

}  // namespace fjord::testing
