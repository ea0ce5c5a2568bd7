#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/status.h"

namespace fjord::distributor {

/// Deduplication windows: recognise duplicates of writes. Each client numbers its operations and reports the number
/// below which all have ended, which bounds the memory. A `Waiter` is kept for each duplicate that arrives while the
/// first message is still being executed. Confined to the distributor's executor.
template <typename Waiter>
class ClientWindows {
 public:
  enum class State {
    Pending,
    InDoubt,
    Refused,  ///< This attempt was certainly not applied; a newer attempt may still be applied.
    Settled,
  };
  struct RequestRecord {
    State state = State::Pending;
    std::uint32_t attempt = 0;       ///< Number of the newest attempt received.
    std::uint64_t timestamp_us = 0;  ///< Timestamp of the write; a repetition of the write gets the same timestamp.
    Status status;                   ///< The outcome, if Settled or Refused.
    bool existed = false;
    std::uint64_t version_us = 0;  ///< The stored version of the document, if the outcome is TestAndSetFailed.
    std::vector<Waiter> waiters;
  };

  /// Drops the records of `client` below `first_unsettled`: these operations have ended for the client.
  void advance(std::uint64_t client, std::uint64_t first_unsettled, MonotonicTime now) {
    Window& window = windows_[client];
    window.last_seen = now;
    if (first_unsettled <= window.first) return;
    window.first = first_unsettled;
    window.records.erase(window.records.begin(), window.records.lower_bound(first_unsettled));
  }

  /// Returns true if the operation has ended for the client already, so that this message is a late duplicate.
  bool is_settled_duplicate(std::uint64_t client, std::uint64_t sequence) const {
    auto window = windows_.find(client);
    return window != windows_.end() && sequence < window->second.first;
  }

  /// Returns the record of an operation; a new one is Pending. `second` is true if the record is new.
  std::pair<RequestRecord*, bool> find_or_add(std::uint64_t client, std::uint64_t sequence) {
    auto [it, added] = windows_[client].records.try_emplace(sequence);
    return {&it->second, added};
  }

  /// Returns null if the operation is unknown, or has ended for its client meanwhile.
  RequestRecord* find(std::uint64_t client, std::uint64_t sequence) {
    auto window = windows_.find(client);
    if (window == windows_.end()) return nullptr;
    auto record = window->second.records.find(sequence);
    return record == window->second.records.end() ? nullptr : &record->second;
  }

  /// Removes the records of clients whose last message came before `before`.
  void forget_idle(MonotonicTime before) {
    std::erase_if(windows_, [&](const auto& entry) { return entry.second.last_seen < before; });
  }

 private:
  struct Window {
    std::uint64_t first = 0;
    MonotonicTime last_seen;
    std::map<std::uint64_t, RequestRecord> records;
  };
  std::unordered_map<std::uint64_t, Window> windows_;
};

}  // namespace fjord::distributor
