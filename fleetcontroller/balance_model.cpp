#include "balance_model.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "balance_steps.h"
#include "fjord/cluster/feature.h"
#include "fjord/cluster/placement.h"

namespace fjord::fleetcontroller {
namespace {

/// Shares load that was measured on nodes which hold no replica any more. The replicas that have no load of their own
/// yet get it: they have just come. If all have load, all get a part.
void add_load_of_gone(balancer::Holders& holders, double load) {
  const auto is_new = [](const balancer::Holder& holder) { return holder.own_load == 0; };
  const auto count = std::count_if(holders.begin(), holders.end(), is_new);
  for (balancer::Holder& holder : holders) {
    if (count == 0) holder.own_load += load / static_cast<double>(holders.size());
    if (count != 0 && is_new(holder)) holder.own_load = load / static_cast<double>(count);
  }
}

/// Sets which part of a bucket's reads each replica serves. A replica without a row in the state serves none.
void share_reads(balancer::Holders& holders, std::span<const ReadShare> rows) {
  double sum = 0;
  for (balancer::Holder& holder : holders) {
    holder.read_share = 0;
    for (const ReadShare& row : rows) {
      if (row.node == holder.node) holder.read_share = row.permille;
    }
    sum += holder.read_share;
  }
  if (sum == 0) return holders.share_equally();
  for (balancer::Holder& holder : holders) holder.read_share /= sum;
}

/// Sets what the distribution says of the nodes: capacity, and the leaf group. Nodes of a distribution without groups
/// are each a group of their own.
void add_groups(const DistributionConfig& distribution, std::vector<balancer::BalanceNode>& nodes) {
  const auto groups = distribution.flat_groups();
  const auto flat = distribution.flat_nodes();
  const auto leaves = std::count_if(groups.begin(), groups.end(), [](const auto& group) { return group.is_leaf; });
  for (std::size_t position = 0; position < flat.size(); ++position) {
    if (flat[position].index >= nodes.size()) continue;
    balancer::BalanceNode& node = nodes[flat[position].index];
    node.capacity *= flat[position].capacity;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      if (position < groups[group].first_node || position >= groups[group].node_end) continue;
      node.capacity *= groups[group].capacity;
      if (groups[group].is_leaf && leaves > 1) node.group = static_cast<std::uint32_t>(nodes.size() + group);
    }
  }
}

std::vector<balancer::BalanceNode> nodes_of(const ModelInput& input) {
  const ClusterView& view = input.places.view();
  std::vector<balancer::BalanceNode> nodes(view.state->node_count(NodeType::Storage));
  for (std::uint16_t i = 0; i < nodes.size(); ++i) {
    nodes[i].group = i;
    nodes[i].capacity = view.node(NodeId::storage(i)).capacity;
  }
  add_groups(*view.distribution, nodes);
  for (std::uint16_t i = 0; i < nodes.size(); ++i) {
    nodes[i].usable = view.is_up(NodeId::storage(i)) && view.distribution->contains_node(i) && nodes[i].capacity > 0;
    nodes[i].accepts = std::find(input.full.begin(), input.full.end(), i) == input.full.end();
    if (nodes[i].capacity <= 0) nodes[i].capacity = 1;
  }
  return nodes;
}

/// Adds the measured loads to the slices.
void add_loads(const ModelInput& input, balancer::BalanceModel& model) {
  std::vector<double> of_gone(model.slices.size());  // Own loads on nodes that hold no replica any more.
  for (std::uint16_t i = 0; i < model.nodes.size(); ++i) {
    const NodeLoads* node = input.loads.of(i);
    if (node == nullptr || !node->has_rates || node->rates.size() != model.slices.size()) continue;
    for (std::size_t bucket = 0; bucket < model.slices.size(); ++bucket) {
      balancer::Slice& slice = model.slices[bucket];
      const MeasuredLoad load = measured(node->rates[bucket], input.measure);
      const double own = load.searches + (input.reads_at_random ? 0 : load.reads);
      slice.reads += input.reads_at_random ? load.reads : 0;
      slice.writes += load.writes;
      slice.bytes = std::max(slice.bytes, node->stored_bytes[bucket]);
      balancer::Holder* holder = slice.holders.find(i);
      (holder == nullptr ? of_gone[bucket] : holder->own_load) += own;
    }
  }
  // The sum is over all replicas and each replica does all writes, so the load of one replica is the mean.
  const bool may_share = input.places.view().state->announces(feature::kReadShares);
  for (std::size_t bucket = 0; bucket < model.slices.size(); ++bucket) {
    balancer::Slice& slice = model.slices[bucket];
    if (slice.holders.empty()) continue;
    if (of_gone[bucket] > 0) add_load_of_gone(slice.holders, of_gone[bucket]);
    if (!may_share) slice.writes += std::exchange(slice.reads, 0);
    slice.writes /= static_cast<double>(slice.holders.size());
  }
}

/// Returns the nodes of each bucket, by its bits.
std::vector<NodeList> nodes_of_buckets(const ClusterView& view) {
  const auto map = placement_algorithm().prepare(view.state, view.distribution);
  std::vector<NodeList> nodes;
  nodes.reserve(std::size_t{1} << view.bits());
  for (std::uint64_t key = 0; key < std::uint64_t{1} << view.bits(); ++key) {
    nodes.push_back(map->ideal_nodes(BucketId(view.bits(), key)));
  }
  return nodes;
}

}  // namespace

void BalancePlaces::update(const ClusterView& active) {
  if (active.version() == view_.version()) return;
  view_ = view_of_places(active);
  holders_.clear();
  homes_.reset();
  if (view_.bits() > kBalanceBitsMax) return;
  holders_ = nodes_of_buckets(view_);
  homes_ = std::make_shared<std::vector<NodeList>>(nodes_of_buckets(with_exceptions(view_, {})));
}

std::vector<std::string> unknown_loads(const BalancePlaces& places, const BalanceLoads& loads) {
  std::vector<std::string> unknown;
  const ClusterState& state = *places.view().state;
  for (std::uint16_t i = 0; i < state.node_count(NodeType::Storage); ++i) {
    if (!state.is_up(NodeId::storage(i))) continue;
    const NodeLoads* node = loads.of(i);
    if (node == nullptr || !node->has_rates || node->bits != state.bits()) {
      unknown.push_back(fmt::format("the loads of storage.{} are not known yet", i));
    }
  }
  return unknown;
}

balancer::BalanceModel make_model(const ModelInput& input) {
  const auto holders = input.places.holders();
  balancer::BalanceModel model;
  model.round = input.round;
  model.nodes = nodes_of(input);
  model.slices.resize(holders.size());
  std::size_t fewest = kMaxRedundancy;
  for (std::size_t bucket = 0; bucket < holders.size(); ++bucket) {
    balancer::Slice& slice = model.slices[bucket];
    slice.range = {static_cast<std::uint32_t>(bucket), static_cast<std::uint32_t>(bucket + 1)};
    for (const std::uint16_t node : holders[bucket]) slice.holders.push_back({.node = node});
    if (!slice.holders.empty()) share_reads(slice.holders, input.places.view().state->read_shares_of(bucket));
    slice.in_transfer = input.last.rests(bucket, input.round);
    fewest = std::min<std::size_t>(fewest, holders[bucket].size());
  }
  model.redundancy = static_cast<unsigned>(std::max<std::size_t>(fewest, 1));
  add_loads(input, model);
  model.homes = input.places.homes();
  model.rows_max = kBalanceRowsMax;
  model.step_bytes_max = static_cast<std::uint64_t>(static_cast<double>(model.bytes()) * input.bytes_part);
  return model;
}

}  // namespace fjord::fleetcontroller
