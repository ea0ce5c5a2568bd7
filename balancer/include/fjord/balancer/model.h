#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "fjord/cluster/distribution.h"
#include "fjord/cluster/placement.h"
#include "fjord/common/check.h"

namespace fjord::balancer {

/// Adjacent distribution buckets [begin, end), by their numbers at the cluster's distribution bits.
struct BucketRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  std::uint32_t size() const { return end - begin; }
  bool contains(std::uint32_t bucket) const { return begin <= bucket && bucket < end; }
  friend bool operator==(const BucketRange&, const BucketRange&) = default;
};

/// A node that holds a replica of a slice, with the share of the slice's reads that it serves.
struct Holder {
  std::uint16_t node = 0;
  double read_share = 0.0;  ///< From 0 to 1; the shares of all holders of a slice add up to 1.
  /// Load of this replica alone, in the unit of Slice::reads: reads and searches that are sent to it by other rules
  /// than the read shares. It goes along when the replica moves.
  double own_load = 0.0;

  /// Compares what is decided, and not the measured load.
  friend bool operator==(const Holder& a, const Holder& b) { return a.node == b.node && a.read_share == b.read_share; }
};

/// The holders of one slice. Needs no allocation, because a model has a hundred thousand slices.
class Holders {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Holder& operator[](std::size_t i) { return holders_[i]; }
  const Holder& operator[](std::size_t i) const { return holders_[i]; }
  Holder* begin() { return holders_.data(); }
  Holder* end() { return holders_.data() + size_; }
  const Holder* begin() const { return holders_.data(); }
  const Holder* end() const { return holders_.data() + size_; }
  void push_back(Holder holder) {
    FJORD_CHECK(size_ < holders_.size());
    holders_[size_++] = holder;
  }
  /// Returns null if the node holds no replica.
  Holder* find(std::uint16_t node) {
    for (Holder& holder : *this) {
      if (holder.node == node) return &holder;
    }
    return nullptr;
  }
  const Holder* find(std::uint16_t node) const { return const_cast<Holders*>(this)->find(node); }
  /// Gives each holder the same share.
  void share_equally() {
    for (Holder& holder : *this) holder.read_share = 1.0 / static_cast<double>(size_);
  }
  friend bool operator==(const Holders& a, const Holders& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  std::array<Holder, kMaxRedundancy> holders_{};
  std::size_t size_ = 0;
};

/// The unit that is measured and moved: adjacent buckets that have the same holders.
struct Slice {
  BucketRange range;
  Holders holders;
  double reads = 0.0;   ///< Load of the slice's reads in a round, which its holders share. The caller chooses the unit.
  double writes = 0.0;  ///< Load of the slice's writes in a round, in the unit of `reads`; each holder bears all of it.
  std::uint64_t bytes = 0;   ///< Bytes of one replica.
  bool in_transfer = false;  ///< A replica is being copied to one of the holders; the slice must not move now.

  /// Returns the load of the slice's reads, of its writes on one holder, and of the holders' own loads.
  double load() const {
    double load = reads + writes;
    for (const Holder& holder : holders) load += holder.own_load;
    return load;
  }
  /// Returns the load that the slice puts on a holder.
  double load_at(const Holder& holder) const { return writes + reads * holder.read_share + holder.own_load; }
  /// Multiplies all loads by `factor`; bytes stay.
  void scale_loads(double factor) {
    reads *= factor;
    writes *= factor;
    for (Holder& holder : holders) holder.own_load *= factor;
  }
  /// Adds the loads and bytes of another slice with equal holders.
  void add(const Slice& other) {
    FJORD_CHECK(holders == other.holders);
    reads += other.reads;
    writes += other.writes;
    bytes += other.bytes;
    for (std::size_t i = 0; i < holders.size(); ++i) holders[i].own_load += other.holders[i].own_load;
  }
};

/// A storage node that slices can lie on.
struct BalanceNode {
  double capacity = 1.0;    ///< Load that the node can carry, in proportion to other nodes. Above 0.
  std::uint32_t group = 0;  ///< The planner never puts two replicas of a slice on nodes of one group.
  bool usable = true;       ///< False: the node is gone or is being removed; its slices have to be placed elsewhere.
  bool accepts = true;      ///< False: nothing may move onto the node, for example because its disk is nearly full.
};

/// A bucket whose load was measured separately from its slice.
struct HotBucket {
  std::uint32_t bucket = 0;
  double load = 0.0;
};

/// Buckets that the queries of one topic of the query log search together [KBD 2020, 9.3].
struct Topic {
  double frequency = 0.0;  ///< Number of queries in a round.
  /// Pairs (bucket, number of candidates that a query finds in it).
  std::vector<std::pair<std::uint32_t, double>> matches;
};

/// What a balancing algorithm knows about the cluster.
struct BalanceModel {
  std::uint64_t round = 0;
  unsigned redundancy = 1;
  std::vector<BalanceNode> nodes;
  std::vector<Slice> slices;   ///< Ascending by range and without gaps; together they have all buckets.
  std::vector<HotBucket> hot;  ///< The buckets with the most load, ascending by bucket.
  std::vector<Topic> topics;   ///< Empty if topics are not counted.
  /// Bytes that one step may move, over all nodes together.
  std::uint64_t step_bytes_max = UINT64_MAX;
  /// The nodes that each bucket, by its number, lies on without a row in the table of overrides. Null: rows cost
  /// nothing.
  std::shared_ptr<const std::vector<NodeList>> homes;
  std::size_t rows_max = SIZE_MAX;  ///< Rows that the table of overrides may have.
  /// An operator asks for this step: an algorithm that places again only now and then does it now.
  bool is_requested = false;

  std::uint32_t buckets() const { return slices.empty() ? 0 : slices.back().range.end; }
  /// Returns the bytes of all replicas.
  std::uint64_t bytes() const;
};

/// Returns true if the holders of the slice serve different shares of its reads.
bool has_uneven_reads(const Slice& slice);

/// Returns the rows of the table of overrides that a slice needs: for each of its buckets one for each replica that
/// does not lie at home, and one if reads are shared unevenly.
std::size_t rows_of(const BalanceModel& model, const Slice& slice);

/// Returns the load of each node divided by its capacity, by the loads and read shares of the slices.
std::vector<double> node_loads(const BalanceModel& model);

/// Returns the greatest load of a usable node over the mean of the usable nodes, weighted by capacity; 1 if there is no
/// load. It says how much sooner the hottest node is saturated than in a balanced cluster [KBD 2020, 4.5.1].
double imbalance(const BalanceModel& model, const std::vector<double>& loads);

}  // namespace fjord::balancer
