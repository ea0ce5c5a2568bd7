#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "fjord/common/env.h"

namespace fjord::slotfile {

/// Reads ascending ranges of a file with few long reads: bytes that were read ahead are kept for the next range.
/// Lifetime: a view is valid until the next call.
class ReadWindow {
 public:
  static constexpr std::uint64_t kBytesMax = 1 << 20;

  /// Uses `buffer`, which has kBytesMax bytes, instead of allocating one; null has no effect.
  void lend(std::unique_ptr<char[]> buffer) {
    capacity_ = buffer == nullptr ? 0 : kBytesMax;
    buffer_ = std::move(buffer);
    size_ = 0;
  }
  /// Gives up the buffer and returns it if it has kBytesMax bytes; else returns null.
  std::unique_ptr<char[]> take_back() {
    size_ = 0;
    const bool usual_size = std::exchange(capacity_, 0) == kBytesMax;
    std::unique_ptr<char[]> buffer = std::move(buffer_);
    return usual_size ? std::move(buffer) : nullptr;
  }

  void forget() { size_ = 0; }
  bool contains(std::uint64_t begin, std::uint64_t length) const {
    return size_ != 0 && begin >= begin_ && begin + length <= begin_ + size_;
  }
  /// Returns the offset one past the last byte read.
  std::uint64_t end() const { return begin_ + size_; }

  /// Returns the bytes [begin, begin + length); fewer only at the end of the file. If they are not in the buffer, it
  /// reads on to `ahead_end`, but no more than kBytesMax in all. If that fails, it reads these bytes alone: a sector
  /// behind them that cannot be read is none of the caller's business.
  Result<std::string_view> read(const RandomAccessFile& file, std::uint64_t begin, std::uint64_t length,
                                std::uint64_t ahead_end) {
    if (!contains(begin, length)) {
      const std::uint64_t end = std::max(begin + length, std::min(ahead_end, begin + kBytesMax));
      if (end - begin > capacity_) {
        capacity_ = std::max(end - begin, std::min(capacity_ * 2, kBytesMax));
        buffer_ = std::make_unique_for_overwrite<char[]>(capacity_);
      }
      size_ = 0;
      begin_ = begin;
      Result<std::size_t> got = file.read(begin, {buffer_.get(), static_cast<std::size_t>(end - begin)});
      if (!got && end > begin + length) got = file.read(begin, {buffer_.get(), static_cast<std::size_t>(length)});
      FJORD_TRY_ASSIGN(size_, std::move(got));
    }
    const std::uint64_t skip = begin - begin_;
    if (skip >= size_) return std::string_view();
    return std::string_view(buffer_.get() + skip, std::min<std::uint64_t>(length, size_ - skip));
  }

 private:
  std::unique_ptr<char[]> buffer_;
  std::uint64_t capacity_ = 0;
  std::uint64_t begin_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace fjord::slotfile
