#include "fjord/bench/placement_comparison.h"

#include <array>
#include <bit>
#include <ctime>
#include <fmt/format.h>

#include "fjord/cluster/placement.h"
#include "fjord/cluster/placement_statistics.h"

namespace fjord {
namespace {

constexpr std::array<std::string_view, 3> kChangeNames = {"add", "remove", "reweight"};
constexpr std::uint64_t kBucketsMax = std::uint64_t{1} << 24;
constexpr unsigned kNodesMax = 65000;

Status invalid_options(std::string message) { return {StatusCode::InvalidArgument, std::move(message)}; }

/// Returns a tree with groups of equal size. RUSH's batches are such groups, too.
DistributionGroup tree_of(const ComparisonOptions& options, PlacementKind kind) {
  DistributionGroup root{"root", 1.0, {}, {}};
  if (options.groups > 1 || kind == PlacementKind::Rush) {
    for (unsigned group = 0; group < options.groups; ++group) {
      root.groups.push_back({fmt::format("group{}", group), 1.0, {}, {}});
    }
  }
  for (unsigned node = 0; node < options.nodes; ++node) {
    const std::size_t group = std::size_t{node} * options.groups / options.nodes;
    auto& nodes = root.groups.empty() ? root.nodes : root.groups[group].nodes;
    nodes.push_back({static_cast<std::uint16_t>(node), 1.0});
  }
  return root;
}

void change_tree(DistributionGroup& root, const ComparisonOptions& options, PlacementKind kind) {
  const DistributionGroup::Node added{static_cast<std::uint16_t>(options.nodes), 1.0};
  if (options.change == ClusterChange::Add) {
    if (kind == PlacementKind::Rush) {
      root.groups.push_back({"added", 1.0, {added}, {}});
    } else {
      (root.groups.empty() ? root.nodes : root.groups.back().nodes).push_back(added);
    }
    return;
  }
  const auto change_in = [&](std::vector<DistributionGroup::Node>& nodes) {
    for (std::size_t at = 0; at < nodes.size(); ++at) {
      if (nodes[at].index != options.nodes / 2) continue;
      if (options.change == ClusterChange::Reweight) {
        nodes[at].capacity = 2.0;
      } else if (kind == PlacementKind::Tree) {
        nodes[at].capacity = 0.0;
      } else {
        nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(at));
      }
      return;
    }
  };
  change_in(root.nodes);
  for (DistributionGroup& group : root.groups) change_in(group.nodes);
}

struct Placed {
  std::vector<NodeList> lists;
  std::vector<std::uint64_t> replicas;
  std::vector<double> shares;
  double map_ns = 0;
  double prepare_us = 0;
};

Placed place(const ClusterState& state, const DistributionConfig& distribution, std::uint64_t buckets,
             const Clock& clock) {
  Placed placed;
  const MonotonicTime begin = clock.now();
  const auto map = placement_algorithm().prepare(std::make_shared<const ClusterState>(state),
                                                 std::make_shared<const DistributionConfig>(distribution));
  placed.prepare_us = static_cast<double>((clock.now() - begin).count());
  placed.lists.resize(buckets);
  // The buckets are measured in this many parts. The fastest one counts, because other programs disturb the caches.
  constexpr std::uint64_t kParts = 8;
  for (std::uint64_t part = 0; part < kParts; ++part) {
    const std::uint64_t first = buckets * part / kParts;
    const std::uint64_t end = buckets * (part + 1) / kParts;
    const MonotonicTime prepared = clock.now();
    for (std::uint64_t bucket = first; bucket < end; ++bucket) {
      placed.lists[bucket] = map->ideal_nodes(BucketId(state.bits(), bucket));
    }
    if (end == first) continue;
    const double ns = static_cast<double>((clock.now() - prepared).count()) * 1e3 / static_cast<double>(end - first);
    placed.map_ns = placed.map_ns == 0 ? ns : std::min(placed.map_ns, ns);
  }
  placed.replicas = replicas_by_node(placed.lists);
  placed.shares = fair_shares(state, distribution);
  return placed;
}

double least_share(const Placed& before, const Placed& after, const ComparisonOptions& options, double replicas) {
  if (options.change == ClusterChange::Add) return after.shares[options.nodes];
  const std::size_t node = options.nodes / 2;
  if (options.change == ClusterChange::Reweight) return after.shares[node] - before.shares[node];
  return node < before.replicas.size() ? static_cast<double>(before.replicas[node]) / replicas : 0.0;
}

}  // namespace

MonotonicTime CpuClock::now() const {
  timespec time{};
  FJORD_CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0);
  return {std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000};
}

std::string_view to_string(ClusterChange change) { return kChangeNames[static_cast<std::size_t>(change)]; }

Result<ClusterChange> cluster_change_of(std::string_view name) {
  for (const ClusterChange change : {ClusterChange::Add, ClusterChange::Remove, ClusterChange::Reweight}) {
    if (to_string(change) == name) return change;
  }
  return invalid_options(fmt::format("'{}' is none of add, remove, reweight", name));
}

Result<ComparisonResult> compare_placement(const PlacementSettings& settings, const ComparisonOptions& options,
                                           const Clock& clock) {
  if (options.nodes < 2 || options.nodes > kNodesMax) return invalid_options(fmt::format("2 to {} nodes", kNodesMax));
  if (options.groups < 1 || options.groups > options.nodes) return invalid_options("as many groups as nodes, at most");
  if (options.buckets < 1 || options.buckets > kBucketsMax)
    return invalid_options(fmt::format("1 to {} buckets", kBucketsMax));

  DistributionGroup tree = tree_of(options, settings.kind());
  FJORD_TRY_ASSIGN(DistributionConfig plain, DistributionConfig::make(options.redundancy, tree));
  FJORD_TRY_ASSIGN(const DistributionConfig before_config, plain.with_placement(settings));
  change_tree(tree, options, settings.kind());
  FJORD_TRY_ASSIGN(plain, DistributionConfig::make(options.redundancy, tree));
  FJORD_TRY_ASSIGN(const DistributionConfig after_config, plain.with_placement(settings));

  ClusterState state;
  state.set_bits(static_cast<unsigned>(std::max<std::uint64_t>(1, std::bit_width(options.buckets - 1))));
  for (unsigned node = 0; node <= options.nodes; ++node) {
    state.set_node_state(NodeId::storage(static_cast<std::uint16_t>(node)), NodeState::Up);
  }
  const Placed before = place(state, before_config, options.buckets, clock);
  const Placed after = place(state, after_config, options.buckets, clock);

  double replicas = 0;
  for (const std::uint64_t count : before.replicas) replicas += static_cast<double>(count);
  const PlacementBalance balance = balance_of(before.replicas, before.shares);
  ComparisonResult result;
  result.max_over_mean = balance.max_over_mean;
  result.stddev = balance.stddev;
  result.max_over_mean_after = balance_of(after.replicas, after.shares).max_over_mean;
  result.moved_share = static_cast<double>(moved_replicas(before.lists, after.lists)) / replicas;
  result.least_share = least_share(before, after, options, replicas);
  result.map_ns = std::min(before.map_ns, after.map_ns);
  result.prepare_us = before.prepare_us;
  return result;
}

}  // namespace fjord
