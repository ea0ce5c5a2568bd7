#include "part_buffer.h"

#include <algorithm>

namespace fjord::slotfile {

namespace {

/// The first piece: most slots hold little.
constexpr std::size_t kLeastBytes = 4096;

}  // namespace

std::string& PartBuffer::open(std::size_t room) {
  if (!chunks_.empty() && chunks_.back().bytes.capacity() - chunks_.back().bytes.size() >= room) {
    return chunks_.back().bytes;
  }
  const std::uint64_t begin = size();
  std::size_t capacity = ChunkPool::kChunkBytes;
  if (begin < capacity) capacity = std::max(kLeastBytes, static_cast<std::size_t>(begin));
  chunks_.push_back({begin, pool_->take(std::max(capacity, room))});
  return chunks_.back().bytes;
}

std::string_view PartBuffer::view(std::uint64_t position, std::size_t length) const {
  if (length == 0) return {};
  auto chunk = chunks_.end() - 1;
  if (position < chunk->begin) {
    chunk = std::upper_bound(chunks_.begin(), chunks_.end(), position,
                             [](std::uint64_t at, const Chunk& other) { return at < other.begin; }) -
            1;
  }
  return std::string_view(chunk->bytes).substr(position - chunk->begin, length);
}

void PartBuffer::shrink(std::uint64_t size) {
  while (!chunks_.empty() && chunks_.back().begin >= size) {
    pool_->give_back(std::move(chunks_.back().bytes));
    chunks_.pop_back();
  }
  if (!chunks_.empty()) chunks_.back().bytes.resize(size - chunks_.back().begin);
}

void PartBuffer::clear() { shrink(0); }

}  // namespace fjord::slotfile
