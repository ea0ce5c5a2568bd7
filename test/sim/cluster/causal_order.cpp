#include "causal_order.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord::sim {
namespace {

bool is_write(rpc::OperationKind kind) { return kind == rpc::OperationKind::Put || kind == rpc::OperationKind::Remove; }

bool overlap(BucketId a, BucketId b) { return a.contains(b) || b.contains(a); }

bool has_other_nodes(const ClusterView& before, const ClusterView& now, BucketId bucket) {
  const NodeList then = before.ideal_nodes(bucket);
  const NodeList since = now.ideal_nodes(bucket);
  return !std::is_permutation(then.begin(), then.end(), since.begin(), since.end());
}

bool serves(const ClusterView& view, std::uint16_t node) {
  const NodeState state = view.node(NodeId::storage(node)).state;
  return state == NodeState::Up || state == NodeState::Retired;
}

/// Returns true if an ideal node of the bucket does not serve, so that another node may keep a replica in its place.
bool lacks_a_node(const ClusterView& view, BucketId bucket) {
  const NodeList places = view_of_places(view).ideal_nodes(bucket);
  return !std::all_of(places.begin(), places.end(), [&](std::uint16_t node) { return serves(view, node); });
}

std::uint16_t index_of(const std::string& name) {
  return static_cast<std::uint16_t>(std::stoul(name.substr(name.find('.') + 1)));
}

}  // namespace

void CausalOrderChecker::fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

CausalOrderChecker::Node& CausalOrderChecker::node(const std::string& name) {
  Node& node = nodes_[name];
  const std::uint64_t incarnation = cluster_->incarnation_of(name);
  if (node.incarnation != incarnation) node = {incarnation, 0, 0};
  return node;
}

void CausalOrderChecker::see_state(std::uint64_t version, const std::string& state, const std::string& distribution,
                                   bool is_active) {
  if (cluster_ == nullptr || (states_.contains(version) && (!is_active || floors_.contains(version)))) return;
  Result<ClusterState> parsed = ClusterState::parse(state);
  if (!parsed) return;
  const std::uint64_t floor_us = parsed->time_floor_us();
  if (is_active && floors_.emplace(version, floor_us).second) check_floor(version, floor_us);
  Result<DistributionConfig> groups = DistributionConfig::parse(distribution);
  // A message leaves out a distribution that has not changed.
  if (!distribution.empty() && groups) {
    states_.emplace(version, ClusterView::make(std::move(*parsed), std::move(*groups)));
  }
}

NetworkObserver::SeeReply CausalOrderChecker::see_request(const std::string& /*from*/, const std::string& to,
                                                          const rpc::Request& request) {
  if (cluster_ == nullptr || !to.starts_with("storage.")) return {};
  if (const auto* apply = std::get_if<rpc::Apply>(&request)) return see_writes(to, *apply);
  if (const auto* question = std::get_if<rpc::GetBucketInfo>(&request)) return see_question(to, *question);
  if (const auto* poll = std::get_if<rpc::Poll>(&request)) {
    Node& at = node(to);
    at.received = std::max(at.received, poll->info.state_version);
  }
  if (const auto* sets = std::get_if<rpc::SetReplicaSets>(&request)) {
    for (const auto& set : sets->buckets) check_act(sets->distributor, sets->state_version, set.bucket);
  }
  if (const auto* merge = std::get_if<rpc::MergeBucket>(&request)) {
    check_act(merge->distributor, merge->state_version, merge->bucket);
  }
  if (const auto* deletes = std::get_if<rpc::DeleteBuckets>(&request)) {
    for (const BucketId bucket : deletes->buckets) check_act(deletes->distributor, deletes->state_version, bucket);
  }
  return {};
}

NetworkObserver::SeeReply CausalOrderChecker::see_writes(const std::string& to, const rpc::Apply& request) {
  for (const rpc::StorageOperation& operation : request.operations) {
    if (!is_write(operation.kind)) continue;
    check_act(request.distributor, request.state_version, operation.bucket);
    std::uint64_t& written = distributors_[request.distributor].written[operation.bucket];
    written = std::max(written, request.state_version);
  }
  return [this, to, request, answered = node(to).answered](const Result<rpc::Reply>& reply) {
    const auto* applied = reply ? std::get_if<rpc::ApplyReply>(&*reply) : nullptr;
    if (applied == nullptr || applied->results.size() != request.operations.size()) return;
    for (std::size_t i = 0; i < request.operations.size(); ++i) {
      if (!applied->results[i].status) continue;
      if (is_write(request.operations[i].kind)) check_write(to, request, request.operations[i], answered);
      Node& at = node(to);
      at.answered = std::max(at.answered, request.state_version);
    }
  };
}

void CausalOrderChecker::check_write(const std::string& to, const rpc::Apply& request,
                                     const rpc::StorageOperation& write, std::uint64_t answered) {
  ++writes_;
  if (request.state_version < answered) {
    fail(fmt::format("I21: {} takes a write to {} of state {}, and has answered in state {} before", to,
                     write.bucket.to_string(), request.state_version, answered));
  }
  const std::uint64_t received = node(to).received;
  Write& latest = latest_[received];
  if (write.timestamp_us <= latest.timestamp_us) return;
  latest = {write.timestamp_us, fmt::format("{} takes a write to {} at {}, and has received state {}", to,
                                            write.bucket.to_string(), write.timestamp_us, received)};
  const auto later = floors_.upper_bound(received);
  if (later != floors_.end()) check_floor(later->first, later->second);
}

void CausalOrderChecker::check_floor(std::uint64_t version, std::uint64_t floor_us) {
  for (const auto& [received, write] : latest_) {
    if (received >= version) break;
    if (write.timestamp_us > floor_us) {
      fail(fmt::format("I21: {}; it is above the floor of state {}, {}", write.text, version, floor_us));
    }
  }
}

NetworkObserver::SeeReply CausalOrderChecker::see_question(const std::string& to, const rpc::GetBucketInfo& request) {
  if (request.of_all_owners || request.only_damaged) return {};
  return [this, to, request](const Result<rpc::Reply>& reply) {
    const auto* told = reply ? std::get_if<rpc::GetBucketInfoReply>(&*reply) : nullptr;
    if (told == nullptr || !told->status) return;
    Node& at = node(to);
    at.answered = std::max(at.answered, request.state_version);
    auto& reports = distributors_[request.distributor].reports[request.state_version];
    if (request.all) reports.emplace(index_of(to), BucketId());
    for (const BucketId bucket : request.buckets) reports.emplace(index_of(to), bucket);
  };
}

void CausalOrderChecker::check_act(std::uint16_t distributor, std::uint64_t version, BucketId bucket) {
  Distributor& by = distributors_[distributor];
  for (const auto& [written_to, written] : by.written) {
    if (written >= version || !overlap(written_to, bucket) || !has_other_rows(written, version, bucket)) continue;
    ++rows_acted_on_;
    if (has_collected(by, written, version, bucket)) continue;
    fail(fmt::format(
        "I21: distributor.{} acts on {} under the rows of state {} without having collected it since its writes in "
        "state {}",
        distributor, bucket.to_string(), version, written));
  }
}

/// Returns whether `by` has collected the reports of all serving nodes that had the bucket when it was written.
bool CausalOrderChecker::has_collected(const Distributor& by, std::uint64_t written, std::uint64_t version,
                                       BucketId bucket) const {
  const ClusterView places = view_of_places(states_.at(written));
  const NodeList members = places.ideal_nodes(bucket.with_used_bits(places.bits()));
  for (auto reports = by.reports.upper_bound(written); reports != by.reports.end(); ++reports) {
    if (reports->first > version) break;
    const auto state = states_.find(reports->first);
    if (state == states_.end()) continue;
    const bool is_complete = std::all_of(members.begin(), members.end(), [&](std::uint16_t member) {
      if (!serves(state->second, member)) return true;
      return std::any_of(reports->second.begin(), reports->second.end(),
                         [&](const auto& one) { return one.first == member && overlap(one.second, bucket); });
    });
    if (is_complete) return true;
  }
  return false;
}

bool CausalOrderChecker::has_other_rows(std::uint64_t before, std::uint64_t now, BucketId bucket) const {
  const auto a = states_.find(before);
  const auto b = states_.find(now);
  if (a == states_.end() || b == states_.end() || a->second.bits() != b->second.bits()) return false;
  const BucketId place = bucket.with_used_bits(a->second.bits());
  if (std::ranges::equal(a->second.state->exceptions_of(place.bits()), b->second.state->exceptions_of(place.bits()))) {
    return false;
  }
  // A change of the nodes may have made up for that of the rows. And a row that moves a replica to a node that is away
  // has no effect yet: the distributor leaves the replica where it is. In place of an ideal node that is away, then or
  // now, the distributor keeps a member that the rows take off the bucket, so the replica set may stay the same.
  return has_other_nodes(view_of_places(a->second), view_of_places(b->second), place) &&
         has_other_nodes(a->second, b->second, place) && !lacks_a_node(a->second, place) &&
         !lacks_a_node(b->second, place);
}

}  // namespace fjord::sim
