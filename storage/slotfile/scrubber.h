#pragma once

#include <cstdint>
#include <memory>

#include "bucket_table.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::slotfile {

/// Reads all documents again and again, at a limited rate, so that damage is noticed before a client asks.
///
/// Threading: confined to the engine's executor.
class Scrubber {
 public:
  explicit Scrubber(BucketTable& table) : table_(table), context_(table.context()) {}

  /// Reads about 1 MiB if the rate allows it.
  void step(MonotonicTime now);

 private:
  BucketTable& table_;
  EngineContext& context_;
  std::unique_ptr<spi::DocumentIterator> pass_;  ///< Iterates over the bucket that is being read.
  std::uint64_t cursor_ = 0;                     ///< Uid of the bucket to read next.
  MonotonicTime next_;
};

}  // namespace fjord::slotfile
