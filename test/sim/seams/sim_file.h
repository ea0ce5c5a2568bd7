#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/random.h"

namespace fjord::sim {

/// The content of a file as readers see it and, if tracked, as a power loss would leave it.
///
/// The durable side is kept as differences: the content before, for each 512-byte sector written since the last sync.
/// So a write costs one extra copy, and files that are never written again cost nothing.
class SimFileContent {
 public:
  static constexpr std::uint64_t kSector = 512;

  explicit SimFileContent(bool track_durable) : track_(track_durable) {}

  const std::string& data() const { return data_; }
  std::uint64_t size() const { return data_.size(); }

  void write(std::uint64_t offset, std::string_view bytes);
  void resize(std::uint64_t size);
  void flip_bit(std::uint64_t offset, int bit);

  void sync();
  /// Marks all unsynced data as clean: it stays visible, but is not durable.
  void fail_sync_new_data();
  /// Resets the visible content to that of the last sync.
  void fail_sync_old_data();
  /// Makes the content what the disk holds: the last sync and, with `keep_some`, parts of later writes.
  void lose_power(Random& random, bool keep_some);

 private:
  /// The durable content of a sector that differs from the visible content.
  struct Saved {
    std::uint64_t sector = 0;
    std::string bytes;   ///< Shorter than a sector, or empty, where the durable file ends.
    bool clean = false;  ///< Left by a failed sync: no later sync makes the new content durable.
  };

  std::uint64_t size_after_power_loss(Random& random) const;
  /// Saves the durable sectors before the bytes [begin, end) change.
  void save_sectors(std::uint64_t begin, std::uint64_t end);
  void restore(const Saved& saved);
  void revert_all();
  void forget_all();
  bool is_saved(std::uint64_t sector) const { return sector < saved_index_.size() && saved_index_[sector] != 0; }

  bool track_;
  std::string data_;
  std::uint64_t durable_size_ = 0;
  std::vector<Saved> saved_;                ///< Saved sectors in the order of their first write.
  std::vector<std::uint32_t> saved_index_;  ///< By sector: its place in saved_ plus 1; 0 if not saved.
};

}  // namespace fjord::sim
