#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "bucket_table.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::slotfile {

/// Reads and verifies everything that is stored again and again, at a limited rate, so that damage is noticed before a
/// client asks and before a restart: the headers, frames and metadata entries of each file, and the newest documents. A
/// pass begins at once after damage was found somewhere, because damage seldom comes alone.
///
/// Threading: confined to the engine's executor.
class Scrubber {
 public:
  explicit Scrubber(BucketTable& table) : table_(table), context_(table.context()) {}

  /// Reads about 1 MiB if the rate allows it. Returns the time until the next step is due.
  Duration step(MonotonicTime now);

 private:
  void begin_pass();
  void end_pass(MonotonicTime now);
  bool begin_bucket();
  void check_files(Bucket& bucket, Slot& slot);
  bool is_bad(SlotFile& file);

  BucketTable& table_;
  EngineContext& context_;
  std::unique_ptr<spi::DocumentIterator> pass_;  ///< Iterates over the bucket that is being read.
  std::uint64_t cursor_ = 0;                     ///< Uid of the bucket to read next; 0 between passes.
  /// Files whose lists were verified in this pass, and whether something was wrong with them. Slots share files.
  std::map<std::uint32_t, bool> checked_;
  std::uint64_t cost_ = 0;  ///< Bytes that the running step has read, and what its calls cost, in bytes.
  bool again_ = false;      ///< Another pass follows at once.
  MonotonicTime next_;
};

}  // namespace fjord::slotfile
