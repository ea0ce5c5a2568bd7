#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fjord::slotfile {

/// Large pieces of memory that are used again: fresh pages from the system cost as much as writing to them.
/// Threading: confined to its engine.
class ChunkPool {
 public:
  static constexpr std::size_t kChunkBytes = 1 << 20;

  /// Empty, with room for `capacity` bytes.
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

/// Document parts one behind the other, as they will be in a file, in pieces of memory that do not move while it grows.
/// Positions count all bytes; a part is never cut in two.
///
/// Threading: confined to its engine. Lifetime: the pool outlives it.
class PartBuffer {
 public:
  explicit PartBuffer(ChunkPool& pool) : pool_(&pool) {}
  ~PartBuffer() { clear(); }
  PartBuffer(const PartBuffer&) = delete;
  PartBuffer& operator=(const PartBuffer&) = delete;

  std::uint64_t size() const { return chunks_.empty() ? 0 : end() - dropped_; }
  /// What the next part is appended to, at the end, with up to `room` bytes.
  std::string& open(std::size_t room);
  void append(std::string_view part) { open(part.size()).append(part); }
  std::string_view view(std::uint64_t position, std::size_t length) const;
  /// Takes the parts behind `size` off again.
  void shrink(std::uint64_t size);
  /// Takes the first `count` bytes off; what follows them has position 0 then.
  void drop_front(std::uint64_t count);
  void clear();
  /// Appends the first `count` bytes to `pieces`, in order.
  void list(std::uint64_t count, std::vector<std::string_view>& pieces) const;

 private:
  struct Chunk {
    std::uint64_t begin;  ///< That of the first one is 0.
    std::string bytes;    ///< Never beyond its capacity.
  };
  std::uint64_t end() const { return chunks_.back().begin + chunks_.back().bytes.size(); }

  ChunkPool* pool_;
  std::vector<Chunk> chunks_;
  std::uint64_t dropped_ = 0;  ///< Of the first chunk.
};

}  // namespace fjord::slotfile
