#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fjord::slotfile {

/// Keeps large blocks of memory for reuse, because fresh pages from the system cost as much as writing to them.
/// Threading: confined to its engine.
class ChunkPool {
 public:
  static constexpr std::size_t kChunkBytes = 1 << 20;

  /// Returns an empty string with room for `capacity` bytes.
  std::string take(std::size_t capacity) {
    std::string chunk;
    if (capacity == kChunkBytes && !spare_.empty()) {
      chunk = std::move(spare_.back());
      spare_.pop_back();
    }
    chunk.reserve(capacity);
    return chunk;
  }
  void give_back(std::string chunk) {
    if (chunk.capacity() != kChunkBytes || spare_.size() == kSpareMax) return;
    chunk.clear();
    spare_.push_back(std::move(chunk));
  }

 private:
  static constexpr std::size_t kSpareMax = 32;
  std::vector<std::string> spare_;
};

/// Document parts one after the other, as they will be in a file. They are in chunks of memory that do not move while
/// the buffer grows. Positions count all bytes; a part is never divided between chunks.
///
/// Threading: confined to its engine. Lifetime: the pool outlives it.
class PartBuffer {
 public:
  explicit PartBuffer(ChunkPool& pool) : pool_(&pool) {}
  ~PartBuffer() { clear(); }
  PartBuffer(const PartBuffer&) = delete;
  PartBuffer& operator=(const PartBuffer&) = delete;

  std::uint64_t size() const { return chunks_.empty() ? 0 : end() - dropped_; }
  /// Returns the string to which the next part is to be appended, with room for `room` bytes.
  std::string& open(std::size_t room);
  void append(std::string_view part) { open(part.size()).append(part); }
  std::string_view view(std::uint64_t position, std::size_t length) const;
  /// Removes the parts after the first `size` bytes.
  void shrink(std::uint64_t size);
  /// Removes the first `count` bytes; the byte after them then has position 0.
  void drop_front(std::uint64_t count);
  void clear();
  /// Appends the first `count` bytes to `pieces`, in order.
  void list(std::uint64_t count, std::vector<std::string_view>& pieces) const;

 private:
  struct Chunk {
    std::uint64_t begin;  ///< Position of the first byte; 0 for the first chunk.
    std::string bytes;    ///< Its capacity is never exceeded, so that the bytes do not move.
  };
  std::uint64_t end() const { return chunks_.back().begin + chunks_.back().bytes.size(); }

  ChunkPool* pool_;
  std::vector<Chunk> chunks_;
  std::uint64_t dropped_ = 0;  ///< Bytes removed at the front of the first chunk.
};

}  // namespace fjord::slotfile
