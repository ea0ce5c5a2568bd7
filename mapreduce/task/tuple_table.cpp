#include "tuple_table.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "fjord/common/hash.h"

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
constexpr std::size_t kSlotsMin = 64;

std::size_t outside_bytes(const std::string& text) {
  static const std::size_t inside = std::string().capacity();
  return text.capacity() > inside ? text.capacity() + 1 : 0;
}

}  // namespace

char* TupleTable::allocate(std::size_t size, std::size_t alignment) {
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(free_) % alignment;
  const std::size_t padding = misaligned == 0 ? 0 : alignment - misaligned;
  if (free_ == nullptr || padding + size > free_bytes_) {
    const std::size_t bytes = std::max(size, kChunkBytes);
    chunks_.push_back(std::make_unique<char[]>(bytes));
    chunk_bytes_ += bytes;
    free_ = chunks_.back().get();
    free_bytes_ = bytes;
  } else {
    free_ += padding;
    free_bytes_ -= padding;
  }
  char* at = free_;
  free_ += size;
  free_bytes_ -= size;
  return at;
}

std::string_view TupleTable::copy(std::string_view bytes) {
  if (bytes.empty()) return {};
  char* at = allocate(bytes.size(), 1);
  std::memcpy(at, bytes.data(), bytes.size());
  return {at, bytes.size()};
}

void TupleTable::grow() {
  const std::size_t size = std::max(kSlotsMin, slots_.size() * 2);
  slots_.assign(size, 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t at = entries_[i].hash & (size - 1);
    while (slots_[at] != 0) at = (at + 1) & (size - 1);
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

std::size_t TupleTable::bytes() const {
  return chunk_bytes_ - free_bytes_ + value_bytes_ + entries_.capacity() * sizeof(Entry) +
         slots_.size() * sizeof(std::uint32_t);
}

Status TupleTable::add(std::string_view key, std::string_view value) {
  if (slots_.size() * 2 <= entries_.size() * 3) grow();
  const std::uint64_t hash = hash64(key);
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at] != 0) {
    const Entry& entry = entries_[slots_[at] - 1];
    if (entry.hash == hash && entry.key == key) break;
    at = (at + 1) & (slots_.size() - 1);
  }
  if (slots_[at] == 0) {
    Entry entry{hash, copy(key), std::string(value), nullptr};
    value_bytes_ += outside_bytes(entry.first);
    entries_.push_back(std::move(entry));
    slots_[at] = static_cast<std::uint32_t>(entries_.size());
  } else {
    Entry& entry = entries_[slots_[at] - 1];
    const std::size_t before = outside_bytes(entry.first);
    if (application_.combine(entry.key, entry.first, value)) {
      value_bytes_ += outside_bytes(entry.first) - before;
    } else {
      const More more{entry.more, copy(value)};
      entry.more = new (allocate(sizeof(More), alignof(More))) More(more);
    }
  }
  if (bytes() > bytes_max_) {
    return Status(StatusCode::TooLarge,
                  "the tuples of one task need more than " + std::to_string(bytes_max_) + " bytes (" +
                      std::to_string(entries_.size()) +
                      " keys so far); the limit is the setting mapreduce.task_memory_bytes",
                  {.limit = std::to_string(bytes_max_), .setting = "mapreduce.task_memory_bytes"});
  }
  return Status::ok();
}

std::vector<TupleTable::Key> TupleTable::sorted_keys(std::uint32_t destinations) const {
  std::vector<Key> keys;
  keys.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    keys.push_back(
        {static_cast<std::uint32_t>(entries_[i].hash % destinations), static_cast<std::uint32_t>(i), entries_[i].key});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return a.destination != b.destination ? a.destination < b.destination : a.key < b.key;
  });
  return keys;
}

void TupleTable::sorted_values(const Key& key, std::vector<std::string_view>& values) const {
  const Entry& entry = entries_[key.entry];
  values.clear();
  values.push_back(entry.first);
  for (const More* more = entry.more; more != nullptr; more = more->next) values.push_back(more->value);
  std::sort(values.begin(), values.end());
}

}  // namespace fjord::mapreduce
