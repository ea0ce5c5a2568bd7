#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "fjord/rpc/storage_messages.h"

namespace fjord::fleetcontroller {

/// The work of each second: counts, and times of execution in nanoseconds.
struct LoadRate {
  double read_ns = 0;
  double write_ns = 0;
  double reads = 0;
  double writes = 0;
  double search_ns = 0;
  double candidates = 0;  ///< Keywords that matched a search.
  double read_bytes = 0;
  double written_bytes = 0;
};

/// What counts as load (`balancer.load`, whose choices have this order).
enum class LoadMeasure {
  Time,        ///< Nanoseconds of execution in a second.
  Operations,  ///< Thousandths of operations in a second.
  Work,        ///< As Operations, and an operation counts as many reads as it takes the processor time of.
};

/// The load of a second.
struct MeasuredLoad {
  double reads = 0;
  double writes = 0;
  double searches = 0;

  double sum() const { return reads + writes + searches; }
};

MeasuredLoad measured(const LoadRate& rate, LoadMeasure measure);

/// The loads of one storage node, from its last two answers.
struct NodeLoads {
  std::uint64_t incarnation = 0;
  unsigned bits = 0;
  bool has_rates = false;        ///< False after the first answer.
  std::vector<LoadRate> rates;   ///< One element for each distribution bucket, 2^bits in all.
  LoadRate total;                ///< Rates of the whole node, which counts them apart from `rates`.
  std::uint64_t operations = 0;  ///< Operations between these answers; a keyword that matches a search counts as one.
  std::vector<std::uint64_t> stored_bytes;

  /// `counted`: operations in all periods of this incarnation; `counted_before`: those before its first period. Their
  /// sum is the node's own count: no operation is counted twice, and none is lost.
  std::uint64_t counted = 0;
  std::uint64_t counted_before = 0;
};

/// Makes loads of the counts that storage nodes report (rpc::GetLoadsReply). The counts of a process only rise, so an
/// answer that is lost or arrives twice changes no sum. After a restart everything that the new process has counted is
/// new.
///
/// Threading: not thread-safe.
class BalanceLoads {
 public:
  /// Takes an answer in. Returns false if it is not newer than the last one of its process; then nothing changes.
  bool add(std::uint16_t node, const rpc::GetLoadsReply& reply);
  /// Null if the node has not answered.
  const NodeLoads* of(std::uint16_t node) const;
  void clear() { nodes_.clear(); }

 private:
  struct Followed {
    NodeLoads loads;
    std::int64_t at_us = 0;  ///< The node's clock in its last answer.
    std::vector<rpc::BucketLoad> counts;
    rpc::BucketLoad total;
  };
  std::map<std::uint16_t, Followed> nodes_;
};

}  // namespace fjord::fleetcontroller
