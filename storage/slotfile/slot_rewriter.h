#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "slot.h"

namespace fjord::slotfile {

/// Copies the newest versions of a slot into a new file, in small steps, while the slot serves reads and writes. The
/// slot is marked `rewriting`, so that it is not flushed or split meanwhile.
///
/// Threading: confined to its engine. Lifetime: the slot outlives it.
class SlotRewriter {
 public:
  enum class Losses { Refused, Accepted };

  /// `fresh` becomes the new file. Dropped remove entries are left out. Entries that do not verify are lost; if losses
  /// are accepted, also those that cannot be read.
  SlotRewriter(EngineContext& context, Slot& slot, std::shared_ptr<SlotFile> fresh, Losses losses);
  /// Discards an unfinished rewrite.
  ~SlotRewriter();
  SlotRewriter(const SlotRewriter&) = delete;
  SlotRewriter& operator=(const SlotRewriter&) = delete;

  Slot& slot() { return slot_; }
  /// Copies about `bytes_max` bytes. Returns true when everything is written (and not yet synced). Errors: NoSpace,
  /// IoError.
  Result<bool> step(std::uint64_t bytes_max);
  SlotFile& fresh() { return *fresh_; }
  bool is_empty() const { return entries_.empty(); }
  /// Returns true if an entry was lost and losses are refused: the rewrite must not replace the files.
  bool must_stop() const { return lost_ && losses_ == Losses::Refused; }
  /// Puts the entries that were lost in quarantine and leaves the files as they are.
  void quarantine_lost();
  /// Makes the slot refer to the new file. Returns the files that it referred to before.
  std::vector<std::shared_ptr<SlotFile>> finish();

 private:
  enum class Phase { Headers, Bodies, Lists, Done };

  void lay_out();
  Status copy(Part part, std::uint64_t bytes_max);
  Result<std::string_view> stored_part(std::size_t i, Part part);
  Result<std::string_view> part_or_loss(std::size_t i, Part part);
  std::uint64_t read_ahead(std::size_t i, Part part) const;
  Status write_out();
  Status write_lists();

  EngineContext& context_;
  Slot& slot_;
  std::shared_ptr<SlotFile> fresh_;
  const Losses losses_;
  bool lost_ = false;
  bool has_logged_unreadable_ = false;
  Phase phase_ = Phase::Headers;
  std::vector<std::uint32_t> numbers_;
  std::vector<MetaEntry> old_;      ///< The entries as in the index when the rewrite began.
  std::vector<MetaEntry> entries_;  ///< The entries as in the new file.
  std::vector<std::pair<std::uint32_t, MetaEntry>> forgotten_;
  RunFrame frame_;
  std::size_t at_ = 0;
  std::string out_;
  std::uint64_t out_offset_ = 0;
  ReadWindow window_;
  std::uint16_t window_file_ = MetaEntry::kGone;
};

}  // namespace fjord::slotfile
