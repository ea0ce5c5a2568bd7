#include "connection_table.h"

#include <utility>

namespace fjord::rpc {
namespace {

/// A connection that holds this little may always read, and is not counted.
constexpr std::size_t kUncountedBytesMax = 16u << 10;
/// A peer that called itself a node is asked again and again; one that is silent for longer is not better than a
/// client.
constexpr std::chrono::seconds kNodeSilenceMax(30);

}  // namespace

ConnectionTable::Entry* ConnectionTable::find_victim(bool may_be_new) {
  Entry* victim = nullptr;
  const auto rank_of = [](const Entry& one) { return static_cast<int>(one.kind()); };
  const auto silent_since = Clock::now() - kNodeSilenceMax;
  for (const auto& [key, one] : entries_) {
    if (one->kind() == Kind::New && !may_be_new) continue;
    if (one->is_waiting_.load(std::memory_order_relaxed)) continue;
    if (one->kind() == Kind::Node && one->active_at() > silent_since) continue;
    const bool is_better = victim == nullptr || rank_of(*one) < rank_of(*victim) ||
                           (rank_of(*one) == rank_of(*victim) && one->active_at() < victim->active_at());
    if (is_better) victim = one.get();
  }
  return victim;
}

std::function<void(ConnectionTable::Why)> ConnectionTable::take_out(Entry& entry) {
  entry.is_ended_ = true;
  forget_memory(entry);
  if (entry.kind() == Kind::Client) --clients_;
  auto end = std::move(entry.end_);
  entries_.erase(&entry);
  return end;
}

void ConnectionTable::forget_memory(Entry& entry) {
  bytes_ -= entry.bytes_.exchange(0);
  half_frame_bytes_ -= entry.half_frame_bytes_.exchange(0);
}

std::shared_ptr<ConnectionTable::Entry> ConnectionTable::add(std::function<void(Why)> end) {
  auto entry = std::make_shared<Entry>();
  entry->end_ = std::move(end);
  std::function<void(Why)> end_victim;
  {
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= limits_.clients_max + limits_.reserved) {
      Entry* const victim = find_victim(true);
      if (victim == nullptr) return nullptr;
      end_victim = take_out(*victim);
    }
    entries_.emplace(entry.get(), entry);
  }
  if (end_victim) end_victim(Why::Full);
  return entry;
}

void ConnectionTable::remove(const Entry& entry) {
  std::function<void(Why)> dropped;
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(&entry);
  if (found == entries_.end()) return;
  const std::shared_ptr<Entry> keeps = found->second;
  dropped = take_out(*keeps);
}

bool ConnectionTable::note_call(Entry& entry, bool is_of_node) {
  const Kind wanted = is_of_node ? Kind::Node : Kind::Client;
  if (entry.kind() >= wanted) return true;
  std::function<void(Why)> end_victim;
  {
    const std::lock_guard lock(mutex_);
    if (entry.is_ended()) return false;
    if (entry.kind() == Kind::Client) --clients_;
    if (wanted == Kind::Client) {
      if (clients_ >= limits_.clients_max) {
        Entry* const victim = find_victim(false);
        if (victim == nullptr || victim->kind() != Kind::Client) return false;
        end_victim = take_out(*victim);
      }
      ++clients_;
    }
    entry.kind_ = wanted;
  }
  if (end_victim) end_victim(Why::Full);
  return true;
}

bool ConnectionTable::hold(Entry& entry, std::size_t bytes, std::size_t half_frame_bytes) {
  if (bytes <= kUncountedBytesMax) bytes = 0;
  if (half_frame_bytes <= kUncountedBytesMax) half_frame_bytes = 0;
  if (bytes != entry.bytes_) bytes_ += bytes - entry.bytes_.exchange(bytes);
  if (half_frame_bytes != entry.half_frame_bytes_) {
    half_frame_bytes_ += half_frame_bytes - entry.half_frame_bytes_.exchange(half_frame_bytes);
  }
  if (entry.is_ended()) {
    forget_memory(entry);
    return false;
  }
  if (half_frame_bytes > 0 && half_frame_bytes_ > limits_.half_frame_bytes_max) end_largest_half_frame();
  const std::size_t most = limits_.bytes_max + (entry.kind() == Kind::Node ? limits_.bytes_max / 4 : 0);
  return !entry.is_ended() && (bytes == 0 || bytes_ <= most);
}

void ConnectionTable::end_largest_half_frame() {
  std::function<void(Why)> end;
  {
    const std::lock_guard lock(mutex_);
    if (half_frame_bytes_ <= limits_.half_frame_bytes_max) return;
    Entry* victim = nullptr;
    for (const auto& [key, one] : entries_) {
      if (one->half_frame_bytes_ == 0) continue;
      const auto rank_of = [](const Entry& of) {
        return std::pair(of.kind() != Kind::Node, of.half_frame_bytes_.load());
      };
      if (victim == nullptr || rank_of(*one) > rank_of(*victim)) victim = one.get();
    }
    if (victim == nullptr) return;
    end = take_out(*victim);
  }
  end(Why::Memory);
}

}  // namespace fjord::rpc
