#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "batch.h"
#include "client_window.h"
#include "fjord/common/metrics.h"

namespace fjord::distributor {

/// The outcomes of clients' writes, by client and number, so that each write is executed once; and the writes in doubt
/// that their clients may still repeat. Confined to the executor.
class RequestRecords {
 public:
  explicit RequestRecords(Counter& duplicates) : duplicates_(duplicates) {}

  /// Notes a message of the client; for the client, all operations below `first_unsettled` have ended.
  void advance(std::uint64_t client, std::uint64_t first_unsettled, MonotonicTime now);
  /// Remembers that an attempt was refused, so that a duplicate of it stays refused.
  void remember_refusal(std::uint64_t client, std::uint64_t sequence, std::uint32_t attempt);

  enum class Found {
    New,    ///< The operation has to be executed.
    Waits,  ///< The operation is a duplicate of one in flight and ends with it.
    Ends,   ///< The operation ends at once, with the returned status and with the result that has been set.
  };
  /// Finds out whether the write is a duplicate. A repetition of a write in doubt is New, with its first timestamp.
  std::pair<Found, Status> recognise_duplicate(const OpRef& ref, MonotonicTime now);
  /// Records the outcome of a write. Returns its duplicates with their results set; the caller ends them with the same
  /// status.
  std::vector<OpRef> settle(const OpRef& ref, const Status& status, MonotonicTime now);

  /// Drops the writes in doubt for which `drops(gid)` is true.
  template <typename Predicate>
  void drop_doubts(Predicate drops) {
    std::erase_if(doubts_, [&](const auto& doubt) { return drops(doubt.second.gid); });
  }
  /// Calls `visit(gid, timestamp_us)` for each write in doubt that may still be repeated.
  template <typename Visitor>
  void visit_doubts(MonotonicTime now, Visitor visit) {
    std::erase_if(doubts_, [&](const auto& doubt) {
      return doubt.second.until <= now || windows_.find(doubt.first.first, doubt.first.second) == nullptr;
    });
    for (const auto& [operation, doubt] : doubts_) visit(doubt.gid, doubt.timestamp_us);
  }

 private:
  using Windows = ClientWindows<OpRef>;
  using ClientSequence = std::pair<std::uint64_t, std::uint64_t>;
  /// A write in doubt, which its client may repeat under its timestamp.
  struct Doubt {
    GlobalId gid;
    std::uint64_t timestamp_us = 0;
    MonotonicTime until;
  };
  bool may_repeat(const OpRef& ref, MonotonicTime now);

  Counter& duplicates_;
  Windows windows_;
  std::map<ClientSequence, Doubt> doubts_;
  MonotonicTime last_forget_;
};

}  // namespace fjord::distributor
