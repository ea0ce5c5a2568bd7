#include <algorithm>
#include <array>
#include <optional>

#include "fjord/cluster/placement_plan.h"
#include "fjord/cluster/placement_statistics.h"
#include "placement/exceptions.h"

namespace fjord {
namespace {

constexpr unsigned kPlanBitsMax = 24;
/// A move tries only this many nodes, the emptiest ones, as its target.
constexpr std::size_t kTargetsMax = 64;

/// The groups of each node from the root down. They show how far apart two nodes are.
class NodePaths {
 public:
  explicit NodePaths(const DistributionConfig& distribution) {
    for (const DistributionConfig::FlatGroup& group : distribution.flat_groups()) {
      for (std::uint32_t at = group.first_node; at < group.node_end; ++at) {
        const std::uint16_t index = distribution.flat_nodes()[at].index;
        if (index >= paths_.size()) paths_.resize(index + std::size_t{1});
        paths_[index].push_back(group.id);
      }
    }
  }

  std::size_t shared_groups(std::uint16_t a, std::uint16_t b) const {
    const auto& mine = paths_[a];
    const auto& theirs = paths_[b];
    std::size_t count = 0;
    while (count < mine.size() && count < theirs.size() && mine[count] == theirs[count]) ++count;
    return count;
  }

  /// Returns the largest number of groups that the node shares with any one node of the list, apart from `except`.
  std::size_t shared_with(std::uint16_t node, const NodeList& list, std::uint16_t except) const {
    std::size_t most = 0;
    for (const std::uint16_t other : list) {
      if (other != except) most = std::max(most, shared_groups(node, other));
    }
    return most;
  }

 private:
  std::vector<std::vector<std::uint64_t>> paths_;
};

class Planner {
 public:
  Planner(std::span<const std::uint64_t> bytes, const ClusterState& state, const DistributionConfig& distribution,
          const ExceptionPlanOptions& options)
      : bytes_(bytes), state_(state), distribution_(distribution), options_(options), paths_(distribution) {
    ClusterState plain = state;
    plain.set_exceptions({});
    algorithm_ = place_all_buckets(plain, distribution);
    current_ = algorithm_;
    shares_ = fair_shares(state, distribution);
    loads_ = bytes_by_node(algorithm_, bytes_);
    loads_.resize(std::max(loads_.size(), shares_.size()));
    double sum = 0;
    for (const std::uint64_t load : loads_) sum += static_cast<double>(load);
    fair_.resize(loads_.size());
    for (std::size_t node = 0; node < shares_.size(); ++node) fair_[node] = shares_[node] * sum;
    to_.resize(bytes_.size());
    from_.resize(bytes_.size());
  }

  ExceptionPlan plan() {
    ExceptionPlan plan;
    plan.without = max_over_mean();
    keep_old_exceptions();
    plan.before = max_over_mean();
    drop_needless_exceptions();
    list_buckets();
    relieve();
    plan.after = max_over_mean();
    for (std::uint64_t bucket = 0; bucket < to_.size(); ++bucket) {
      if (to_[bucket]) plan.exceptions.push_back({bucket, *from_[bucket], *to_[bucket]});
    }
    return plan;
  }

 private:
  struct Move {
    std::uint64_t bucket = 0;
    std::uint16_t to = 0;
  };

  double max_over_mean() const { return balance_of(loads_, shares_).max_over_mean; }
  double load(std::size_t node) const { return static_cast<double>(loads_[node]); }
  double bytes(std::uint64_t bucket) const { return static_cast<double>(bytes_[bucket]); }

  /// Moves a replica of the bucket in `current_` and in the loads. The exceptions stay as they are.
  void replace(std::uint64_t bucket, std::uint16_t from, std::uint16_t to) {
    NodeList list;
    for (const std::uint16_t node : current_[bucket]) list.push_back(node == from ? to : node);
    current_[bucket] = list;
    loads_[from] -= bytes_[bucket];
    loads_[to] += bytes_[bucket];
  }

  void keep_old_exceptions() {
    for (const PlacementException& old : state_.exceptions()) {
      if (to_[old.bucket] || !exception_holds(old, current_[old.bucket], state_, distribution_)) continue;
      if (count_ == options_.exceptions_max) break;
      set_exception(old.bucket, old.from, old.to);
      replace(old.bucket, old.from, old.to);
    }
  }

  void set_exception(std::uint64_t bucket, std::uint16_t from, std::uint16_t to) {
    if (!to_[bucket]) ++count_;
    from_[bucket] = from;
    to_[bucket] = to;
  }
  void drop_exception(std::uint64_t bucket) {
    if (to_[bucket]) --count_;
    to_[bucket].reset();
  }

  void drop_needless_exceptions() {
    const double limit = (1 + options_.max_over_mean) / 2;
    for (const PlacementException& old : state_.exceptions()) {
      if (to_[old.bucket] != old.to || from_[old.bucket] != old.from) continue;
      if (load(old.from) + bytes(old.bucket) > limit * fair_[old.from]) continue;
      replace(old.bucket, old.to, old.from);
      drop_exception(old.bucket);
    }
  }

  void list_buckets() {
    buckets_of_.resize(loads_.size());
    for (std::uint64_t bucket = 0; bucket < current_.size(); ++bucket) {
      if (bytes_[bucket] == 0) continue;
      for (const std::uint16_t node : current_[bucket]) buckets_of_[node].push_back(bucket);
    }
  }

  /// Takes buckets from the fullest node until it is within the limit, then from the next one.
  void relieve() {
    std::vector<bool> is_stuck(loads_.size(), false);
    // Each step takes load from the fullest node, so the loop ends. The limit on steps is for large buckets, with which
    // it would take long.
    for (std::size_t steps = 8 * options_.exceptions_max + loads_.size(); steps > 0; --steps) {
      std::optional<std::uint16_t> fullest;
      for (std::size_t node = 0; node < loads_.size(); ++node) {
        if (is_stuck[node] || load(node) <= options_.max_over_mean * fair_[node]) continue;
        if (!fullest || load(node) * fair_[*fullest] > load(*fullest) * fair_[node]) {
          fullest = static_cast<std::uint16_t>(node);
        }
      }
      if (!fullest) return;
      const std::optional<Move> move = find_move(*fullest);
      if (move) {
        apply(*move, *fullest);
      } else {
        is_stuck[*fullest] = true;
      }
    }
  }

  void apply(const Move& move, std::uint16_t from) {
    replace(move.bucket, from, move.to);
    buckets_of_[move.to].push_back(move.bucket);
    std::erase(buckets_of_[from], move.bucket);
    if (!to_[move.bucket]) {
      set_exception(move.bucket, from, move.to);
    } else if (*from_[move.bucket] == move.to) {
      // The replica returns to the node that the algorithm names, so it needs no exception any more.
      drop_exception(move.bucket);
    } else {
      set_exception(move.bucket, *from_[move.bucket], move.to);
    }
  }

  /// Returns a move from `from` to one of the emptiest nodes. It moves the smallest bucket that brings `from` within
  /// its limit, or else the largest one. The target stays within its limit or, if no such move exists, less full than
  /// `from` is now.
  std::optional<Move> find_move(std::uint16_t from) const {
    const std::vector<std::uint16_t> targets = emptiest_nodes(from);
    for (const bool is_careful : {true, false}) {
      for (const std::uint16_t to : targets) {
        const double excess = load(from) - options_.max_over_mean * fair_[from];
        const double room = is_careful ? options_.max_over_mean * fair_[to] - load(to)
                                       : load(from) / fair_[from] * fair_[to] - load(to);
        const std::optional<std::uint64_t> bucket = best_bucket(from, to, excess, room, is_careful);
        if (bucket) return Move{*bucket, to};
      }
    }
    return std::nullopt;
  }

  std::vector<std::uint16_t> emptiest_nodes(std::uint16_t except) const {
    std::vector<std::uint16_t> nodes;
    for (std::size_t node = 0; node < shares_.size(); ++node) {
      if (shares_[node] > 0 && node != except) nodes.push_back(static_cast<std::uint16_t>(node));
    }
    const std::size_t count = std::min(nodes.size(), kTargetsMax);
    std::partial_sort(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(count), nodes.end(),
                      [&](std::uint16_t a, std::uint16_t b) {
                        const double mine = load(a) * fair_[b];
                        const double theirs = load(b) * fair_[a];
                        return mine != theirs ? mine < theirs : a < b;
                      });
    nodes.resize(count);
    return nodes;
  }

  std::optional<std::uint64_t> best_bucket(std::uint16_t from, std::uint16_t to, double excess, double room,
                                           bool is_careful) const {
    std::optional<std::uint64_t> best;
    for (const std::uint64_t bucket : buckets_of_[from]) {
      const double size = bytes(bucket);
      const bool fits = is_careful ? size <= room : size < room;
      if (!fits || (best && !is_better(size, bytes(*best), excess)) || !may_move(bucket, from, to)) continue;
      best = bucket;
    }
    return best;
  }

  static bool is_better(double size, double than, double excess) {
    const bool is_enough = size >= excess;
    if (is_enough != (than >= excess)) return is_enough;
    return is_enough ? size < than : size > than;
  }

  bool may_move(std::uint64_t bucket, std::uint16_t from, std::uint16_t to) const {
    if (current_[bucket].contains(to)) return false;
    const bool is_excepted = to_[bucket].has_value();
    if (is_excepted) {
      if (*to_[bucket] != from) return false;
      if (*from_[bucket] == to) return true;
    } else if (count_ >= options_.exceptions_max) {
      return false;
    }
    // An exception must keep replicas as far apart as the algorithm's list does (exception_holds()), so `to` is
    // compared with the node that it replaces in that list.
    const NodeList& list = algorithm_[bucket];
    if (list.contains(to)) return false;
    const std::uint16_t origin = is_excepted ? *from_[bucket] : from;
    return paths_.shared_with(to, list, origin) <= paths_.shared_with(origin, list, origin);
  }

  std::span<const std::uint64_t> bytes_;
  const ClusterState& state_;
  const DistributionConfig& distribution_;
  const ExceptionPlanOptions& options_;
  NodePaths paths_;
  std::vector<NodeList> algorithm_;  ///< Nodes of each bucket by the algorithm alone.
  std::vector<NodeList> current_;    ///< Nodes of each bucket with the exceptions of the plan.
  std::vector<double> shares_;
  std::vector<double> fair_;  ///< Fair number of bytes by node.
  std::vector<std::uint64_t> loads_;
  /// The exceptions, by bucket. If to_ is set, the replica that the algorithm puts on from_ is on to_ instead.
  std::vector<std::optional<std::uint16_t>> from_;
  std::vector<std::optional<std::uint16_t>> to_;
  std::size_t count_ = 0;
  std::vector<std::vector<std::uint64_t>> buckets_of_;
};

}  // namespace

ExceptionPlan plan_exceptions(std::span<const std::uint64_t> bucket_bytes, const ClusterState& state,
                              const DistributionConfig& distribution, const ExceptionPlanOptions& options) {
  FJORD_CHECK(state.bits() <= kPlanBitsMax);
  FJORD_CHECK(bucket_bytes.size() == std::size_t{1} << state.bits());
  return Planner(bucket_bytes, state, distribution, options).plan();
}

}  // namespace fjord
