#include "part_buffer.h"

#include <algorithm>

namespace fjord::slotfile {

namespace {

/// Capacity of the first chunk. It is small, because most slots hold few bytes.
constexpr std::size_t kLeastBytes = 4096;

}  // namespace

std::string& PartBuffer::open(std::size_t room) {
  if (!chunks_.empty() && chunks_.back().bytes.capacity() - chunks_.back().bytes.size() >= room) {
    return chunks_.back().bytes;
  }
  const std::uint64_t begin = chunks_.empty() ? 0 : end();
  const std::size_t capacity =
      begin >= ChunkPool::kChunkBytes ? ChunkPool::kChunkBytes : std::max(kLeastBytes, static_cast<std::size_t>(begin));
  chunks_.push_back({begin, pool_->take(std::max(capacity, room))});
  return chunks_.back().bytes;
}

std::string_view PartBuffer::view(std::uint64_t position, std::size_t length) const {
  if (length == 0) return {};
  position += dropped_;
  auto chunk = chunks_.end() - 1;
  if (position < chunk->begin) {
    chunk = std::upper_bound(chunks_.begin(), chunks_.end(), position,
                             [](std::uint64_t at, const Chunk& other) { return at < other.begin; }) -
            1;
  }
  return std::string_view(chunk->bytes).substr(position - chunk->begin, length);
}

void PartBuffer::list(std::uint64_t count, std::vector<std::string_view>& pieces) const {
  std::uint64_t skip = dropped_;
  for (auto chunk = chunks_.begin(); chunk != chunks_.end() && count != 0; ++chunk) {
    const std::string_view bytes = std::string_view(chunk->bytes).substr(skip, count);
    if (!bytes.empty()) pieces.push_back(bytes);
    count -= bytes.size();
    skip = 0;
  }
}

void PartBuffer::shrink(std::uint64_t size) {
  if (size == 0) return clear();
  size += dropped_;
  while (chunks_.back().begin >= size) {
    pool_->give_back(std::move(chunks_.back().bytes));
    chunks_.pop_back();
  }
  chunks_.back().bytes.resize(size - chunks_.back().begin);
}

void PartBuffer::drop_front(std::uint64_t count) {
  if (count >= size()) return clear();
  const std::uint64_t cut = count + dropped_;
  std::size_t gone = 0;
  while (chunks_[gone].begin + chunks_[gone].bytes.size() <= cut) {
    pool_->give_back(std::move(chunks_[gone].bytes));
    ++gone;
  }
  chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<std::ptrdiff_t>(gone));
  const std::uint64_t base = chunks_.front().begin;
  for (Chunk& chunk : chunks_) chunk.begin -= base;
  dropped_ = cut - base;
}

void PartBuffer::clear() {
  for (Chunk& chunk : chunks_) pool_->give_back(std::move(chunk.bytes));
  chunks_.clear();
  dropped_ = 0;
}

}  // namespace fjord::slotfile
