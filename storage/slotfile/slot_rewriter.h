#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "slot.h"

namespace fjord::slotfile {

/// Copies the newest versions of a slot into a new file, in small steps, while the slot serves reads and takes writes.
/// The slot is marked `rewriting`, which keeps it from being flushed and split meanwhile.
///
/// Threading: confined to its engine. Lifetime: the slot outlives it.
class SlotRewriter {
 public:
  /// `fresh` is made anew; removed entries that are forgotten are left out.
  SlotRewriter(EngineContext& context, Slot& slot, std::shared_ptr<SlotFile> fresh);
  /// Gives up what was not finished.
  ~SlotRewriter();
  SlotRewriter(const SlotRewriter&) = delete;
  SlotRewriter& operator=(const SlotRewriter&) = delete;

  Slot& slot() { return slot_; }
  /// Copies about `bytes_max` bytes. True when all of it is written (and not yet synced). Errors: NoSpace, IoError.
  Result<bool> step(std::uint64_t bytes_max);
  SlotFile& fresh() { return *fresh_; }
  bool is_empty() const { return entries_.empty(); }
  /// The slot refers to the new file from now on. Returns those that it does not refer to any more.
  std::vector<std::shared_ptr<SlotFile>> finish();

 private:
  enum class Phase { Headers, Bodies, Lists, Done };

  void lay_out();
  Status copy(Part part, std::uint64_t bytes_max);
  Result<std::string_view> stored_part(std::size_t i, Part part);
  std::uint64_t read_ahead(std::size_t i, Part part) const;
  Status write_out();
  Status write_lists();

  EngineContext& context_;
  Slot& slot_;
  std::shared_ptr<SlotFile> fresh_;
  Phase phase_ = Phase::Headers;
  std::vector<std::uint32_t> numbers_;
  std::vector<MetaEntry> old_;      ///< As they were in the index.
  std::vector<MetaEntry> entries_;  ///< As they are in the new file.
  std::vector<std::pair<std::uint32_t, MetaEntry>> forgotten_;
  RunFrame frame_;
  std::size_t at_ = 0;
  std::string out_;
  std::uint64_t out_offset_ = 0;
  ReadWindow window_;
  std::uint16_t window_file_ = MetaEntry::kGone;
};

}  // namespace fjord::slotfile
