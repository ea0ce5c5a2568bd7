#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/rpc/controller_messages.h"

namespace fjord::distributor {

/// How fast storage nodes answer this distributor, and which are much slower than the others. Health checks do not show
/// this: a node with a failing disk answers them as before.
///
/// The measure is the third quartile of the recent answers, one for batches that only read and one for batches that
/// write. A batch without an answer counts with the time that it has waited. A node is suspect when one of the two
/// measures stays above an absolute limit and above a multiple of the median of the other nodes. So neither noise of
/// microseconds nor a cluster that is slow as a whole makes a node suspect. It recovers when it was fast for some
/// seconds without a break.
///
/// Confined to the distributor's executor.
class NodeLatencies {
 public:
  enum class Kind : std::uint8_t { Read, Write };

  explicit NodeLatencies(MetricRegistry& metrics);

  /// Notes that a batch is sent to the node. Returns the number to pass to answered().
  std::uint64_t sent(std::uint16_t node, Kind kind, std::size_t operations, MonotonicTime now);
  /// Notes the end of a batch. `is_answer`: the node answered, or had all the time allowed; false: it was not reached.
  void answered(std::uint16_t node, std::uint64_t number, bool is_answer, MonotonicTime now);
  /// Drops the measurements of a node that has restarted or is away.
  void forget(std::uint16_t node);
  /// Sets the nodes that the fleet controller finds slow, by the reports of all distributors.
  void set_marked(std::vector<std::uint16_t> nodes) { marked_ = std::move(nodes); }

  /// Returns `nodes` without those that are suspect or marked; returns all of them if none would be left.
  std::vector<std::uint16_t> without_slow(std::vector<std::uint16_t> nodes, MonotonicTime now);
  /// Returns true if the node is suspect or marked, and more than `operations_max` operations wait for its answer.
  bool is_clogged(std::uint16_t node, std::size_t operations_max) const;
  /// Returns true if the node is avoided and has not been probed for a while; the caller then sends it a read for whose
  /// answer no client waits, so that a recovery is noticed. Counts the probe as sent.
  bool wants_probe(std::uint16_t node, MonotonicTime now);
  /// Returns the latencies of all nodes that are suspect or were measured lately.
  std::vector<rpc::NodeLatency> report(MonotonicTime now);

 private:
  struct Sample {
    MonotonicTime at;
    std::int64_t us = 0;
  };
  struct Call {
    Kind kind = Kind::Read;
    std::size_t operations = 0;
    MonotonicTime at;
  };
  struct Node {
    std::deque<Sample> samples[2];  // Kept answers, by kind of batch.
    std::map<std::uint64_t, Call> calls;
    std::size_t operations = 0;  // Number of operations in `calls`.
    std::optional<std::int64_t> typical_us[2];
    std::int64_t peers_us[2] = {0, 0};
    bool suspect = false;
    std::optional<MonotonicTime> slow_since;  // Since when it has been slow, while it is not suspect.
    std::optional<MonotonicTime> fast_since;  // Since when it has been fast, while it is suspect.
    MonotonicTime last_measured;
    MonotonicTime last_probe;
    Gauge* gauges[2] = {nullptr, nullptr};
  };

  bool is_avoided(std::uint16_t node) const;
  void evaluate(MonotonicTime now);
  std::optional<std::int64_t> typical_of(Node& node, Kind kind, MonotonicTime now);
  std::int64_t peers_of(std::uint16_t index, Kind kind) const;
  void judge(std::uint16_t index, Node& node, MonotonicTime now);

  MetricRegistry& metrics_;
  Gauge& suspects_;
  Counter& probes_;
  std::map<std::uint16_t, Node> nodes_;
  std::size_t suspect_count_ = 0;
  std::vector<std::uint16_t> marked_;
  std::uint64_t next_call_ = 1;
  MonotonicTime evaluated_at_;
};

}  // namespace fjord::distributor
