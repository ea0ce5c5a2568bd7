#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/random.h"

namespace fjord::sim {

/// The content of a file: what readers see and, if asked for, what a loss of power would leave.
///
/// The durable side is kept as differences: for each 512-byte sector that was written since the last sync, its content
/// before. So plain writes cost one copy more, and files that are never written again cost nothing.
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
  /// Everything written since the last sync counts as clean and stays visible, but is not durable.
  void fail_sync_new_data();
  /// What readers see goes back to the last sync.
  void fail_sync_old_data();
  /// Becomes what the disk holds: the last sync and, with `keep_some`, parts of what came after it.
  void lose_power(Random& random, bool keep_some);

 private:
  /// The durable content of a sector that readers see differently.
  struct Saved {
    std::uint64_t sector = 0;
    std::string bytes;   ///< shorter than a sector (also empty) where the durable file ends
    bool clean = false;  ///< left behind by a sync that failed: no later sync makes the new content durable
  };

  std::uint64_t size_after_power_loss(Random& random) const;
  /// Before the bytes [begin, end) change.
  void save_sectors(std::uint64_t begin, std::uint64_t end);
  void restore(const Saved& saved);
  void revert_all();
  void forget_all();
  bool is_saved(std::uint64_t sector) const { return sector < saved_index_.size() && saved_index_[sector] != 0; }

  bool track_;
  std::string data_;
  std::uint64_t durable_size_ = 0;
  std::vector<Saved> saved_;                ///< in the order of the first write
  std::vector<std::uint32_t> saved_index_;  ///< by sector: 1 + place in saved_, or 0
};

}  // namespace fjord::sim
