#include "sim_file.h"

#include <algorithm>
#include <cstring>

#include "fjord/common/check.h"

namespace fjord::sim {

void SimFileContent::save_sectors(std::uint64_t begin, std::uint64_t end) {
  if (!track_ || begin >= end) return;
  const std::uint64_t last = (end - 1) / kSector;
  if (saved_index_.size() <= last) saved_index_.resize(std::max<std::size_t>(last + 1, 2 * saved_index_.size()));
  for (std::uint64_t sector = begin / kSector; sector <= last; ++sector) {
    if (saved_index_[sector] != 0) {
      saved_[saved_index_[sector] - 1].clean = false;
      continue;
    }
    // The sector is unchanged since the last sync, so the visible bytes are durable up to the durable size.
    const std::uint64_t from = sector * kSector;
    const std::uint64_t to = std::min({from + kSector, durable_size_, size()});
    Saved saved{.sector = sector, .bytes = from < to ? data_.substr(from, to - from) : std::string(), .clean = false};
    saved_.push_back(std::move(saved));
    saved_index_[sector] = static_cast<std::uint32_t>(saved_.size());
  }
}

void SimFileContent::write(std::uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  const std::uint64_t end = offset + bytes.size();
  // Saves from the old end of the file on, because a gap before `offset` becomes zeros.
  save_sectors(std::min(offset, size()), end);
  if (offset == size()) {
    data_.append(bytes);
    return;
  }
  if (end > size()) data_.resize(end, '\0');
  std::memcpy(data_.data() + offset, bytes.data(), bytes.size());
}

void SimFileContent::resize(std::uint64_t new_size) {
  save_sectors(std::min(new_size, size()), std::max(new_size, size()));
  data_.resize(new_size, '\0');
}

void SimFileContent::flip_bit(std::uint64_t offset, int bit) {
  FJORD_CHECK(offset < size() && bit >= 0 && bit < 8);
  const auto flip = [bit](char& byte) { byte = static_cast<char>(byte ^ (1 << bit)); };
  flip(data_[offset]);
  if (!is_saved(offset / kSector)) return;
  std::string& bytes = saved_[saved_index_[offset / kSector] - 1].bytes;
  if (offset % kSector < bytes.size()) flip(bytes[offset % kSector]);
}

void SimFileContent::sync() {
  if (!track_) return;
  durable_size_ = size();
  if (saved_.empty()) return;
  std::vector<Saved> lost;
  for (Saved& saved : saved_) {
    saved_index_[saved.sector] = 0;
    if (saved.clean && saved.sector * kSector < durable_size_) lost.push_back(std::move(saved));
  }
  saved_ = std::move(lost);
  for (std::size_t i = 0; i < saved_.size(); ++i) saved_index_[saved_[i].sector] = static_cast<std::uint32_t>(i + 1);
}

void SimFileContent::fail_sync_new_data() {
  for (Saved& saved : saved_) saved.clean = true;
}

void SimFileContent::fail_sync_old_data() {
  FJORD_CHECK(track_);
  revert_all();
}

void SimFileContent::lose_power(Random& random, bool keep_some) {
  FJORD_CHECK(track_);
  if (saved_.empty() && durable_size_ == size()) return;
  const std::uint64_t choice = keep_some ? random.below(4) : 0;
  if (choice == 0) return revert_all();
  const bool keep_all = choice == 1;
  const std::uint64_t last_size = size();
  const std::uint64_t new_size = keep_all ? last_size : size_after_power_loss(random);
  for (const Saved& saved : saved_) {
    // If the truncation did not reach the disk, the old bytes stay instead of zeros.
    const bool uncut = new_size > last_size && (saved.sector + 1) * kSector > last_size;
    if (saved.clean || uncut || !(keep_all || random.chance(0.5))) restore(saved);
  }
  data_.resize(new_size, '\0');
  forget_all();
}

std::uint64_t SimFileContent::size_after_power_loss(Random& random) const {
  // The size is written apart from the data, and several times while a file grows.
  const auto [low, high] = std::minmax({durable_size_, size()});
  const std::uint64_t sector_end = (low / kSector + 1 + random.below(1 + (high - low) / kSector)) * kSector;
  const std::uint64_t sizes[] = {durable_size_, size(), size() > durable_size_ ? std::min(sector_end, high) : size()};
  return sizes[random.below(3)];
}

void SimFileContent::restore(const Saved& saved) {
  const std::uint64_t from = saved.sector * kSector;
  if (size() < from + saved.bytes.size()) data_.resize(from + saved.bytes.size(), '\0');
  std::memcpy(data_.data() + from, saved.bytes.data(), saved.bytes.size());
  const std::uint64_t end = std::min(from + kSector, size());
  if (from + saved.bytes.size() < end) {
    std::memset(data_.data() + from + saved.bytes.size(), 0, end - from - saved.bytes.size());
  }
}

void SimFileContent::revert_all() {
  for (const Saved& saved : saved_) restore(saved);
  data_.resize(durable_size_, '\0');
  forget_all();
}

void SimFileContent::forget_all() {
  durable_size_ = size();
  for (const Saved& saved : saved_) saved_index_[saved.sector] = 0;
  saved_.clear();
}

}  // namespace fjord::sim
