#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fjord/document/document_id.h"

namespace fjord::distributor {

/// How an operation locks its document.
enum class LockMode : std::uint8_t {
  SharedWrite,  ///< A plain write: shared with other writes, since timestamps order them.
  SharedRead,   ///< A read that must see nothing of a write in flight: shared with other reads.
  Exclusive,    ///< An operation that reads before it writes: exclusive.
};

/// Document locks, granted in the order of arrival. Confined to the distributor's executor.
template <typename Waiter>
class DocumentLocks {
 public:
  /// Returns true if the lock is held, until release(). Returns false if `waiter` is kept until it gets the lock.
  bool acquire(const GlobalId& document, LockMode mode, const Waiter& waiter) {
    Lock& lock = locks_[document];
    if (lock.waiting.empty() && is_free_for(lock, mode)) {
      grant(lock, mode);
      return true;
    }
    lock.waiting.emplace_back(waiter, mode);
    return false;
  }

  /// Releases a lock. Returns the waiters that get the lock thereby; drops those for which `wants` is false.
  template <typename Predicate>
  std::vector<Waiter> release(const GlobalId& document, Predicate wants) {
    std::vector<Waiter> next;
    auto at = locks_.find(document);
    Lock& lock = at->second;
    --lock.holders;
    while (!lock.waiting.empty()) {
      auto& [waiter, mode] = lock.waiting.front();
      if (wants(waiter)) {
        if (!is_free_for(lock, mode)) break;
        grant(lock, mode);
        next.push_back(std::move(waiter));
      }
      lock.waiting.pop_front();
    }
    if (lock.is_idle()) locks_.erase(at);
    return next;
  }

  /// Drops the waiters for which `drops` is true; they have to call acquire() again later.
  template <typename Predicate>
  void drop_waiting(Predicate drops) {
    for (auto& [document, lock] : locks_) {
      std::erase_if(lock.waiting, [&](const auto& waiting) { return drops(waiting.first); });
    }
    std::erase_if(locks_, [](const auto& entry) { return entry.second.is_idle(); });
  }

  /// Returns, while operations write the document, the storage node that answers its reads; empty before the first
  /// read. Returns null while no operation writes it. One replica may have a write in flight that another one lacks, so
  /// reads of both could see the new version and then the old one. Valid until the next call.
  std::optional<std::uint16_t>* reader(const GlobalId& document) {
    const auto at = locks_.find(document);
    return at == locks_.end() || at->second.mode == LockMode::SharedRead ? nullptr : &at->second.reader;
  }

  std::size_t documents() const { return locks_.size(); }

 private:
  struct Lock {
    LockMode mode = LockMode::SharedWrite;  ///< How the holders lock the document.
    std::uint32_t holders = 0;
    std::optional<std::uint16_t> reader;
    std::deque<std::pair<Waiter, LockMode>> waiting;

    bool is_idle() const { return holders == 0 && waiting.empty(); }
  };
  static bool is_free_for(const Lock& lock, LockMode mode) {
    return lock.holders == 0 || (lock.mode == mode && mode != LockMode::Exclusive);
  }
  static void grant(Lock& lock, LockMode mode) {
    if (lock.mode != mode) lock.reader.reset();
    lock.mode = mode;
    ++lock.holders;
  }

  std::unordered_map<GlobalId, Lock> locks_;
};

}  // namespace fjord::distributor
