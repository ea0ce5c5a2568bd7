#include "recorder.h"

#include <fmt/format.h>

#include "fjord/cluster/cluster_state.h"

namespace fjord::sim {

NetworkObserver::SeeReply Recorder::both(SeeReply first, SeeReply second) {
  if (!first) return second;
  if (!second) return first;
  return [first = std::move(first), second = std::move(second)](const Result<rpc::Reply>& reply) {
    first(reply);
    second(reply);
  };
}

NetworkObserver::SeeReply Recorder::see_rest(const std::string& from, const std::string& to,
                                             const rpc::Request& request) {
  if (const auto* apply = std::get_if<rpc::Apply>(&request)) {
    return [owners = see_apply(to, *apply),
            transfers = transfers_.see_apply(to, *apply)](const Result<rpc::Reply>& reply) {
      owners(reply);
      transfers(reply);
    };
  }
  if (const auto* execute = std::get_if<rpc::Execute>(&request)) return transfers_.see_execute(*execute);
  if (const auto* sets = std::get_if<rpc::SetReplicaSets>(&request)) {
    maintenance_.see_sets(to, *sets);
    return transfers_.see_sets(to, *sets);
  }
  if (const auto* deletes = std::get_if<rpc::DeleteBuckets>(&request)) {
    maintenance_.see_delete(to, *deletes);
    return transfers_.see_delete(to, *deletes);
  }
  if (const auto* poll = std::get_if<rpc::Poll>(&request)) {
    see_term(from, poll->info);
    see_state(from, poll->info);
  }
  if (std::holds_alternative<rpc::GetLoads>(request)) {
    return [this, to](const Result<rpc::Reply>& reply) {
      const auto* loads = reply ? std::get_if<rpc::GetLoadsReply>(&*reply) : nullptr;
      if (loads != nullptr) balance_.see_loads(to, *loads);
    };
  }
  if (balance_.is_watching() && std::holds_alternative<rpc::Balance>(request) && to.starts_with("fleetcontroller")) {
    return [this](const Result<rpc::Reply>& reply) {
      const auto* answer = reply ? std::get_if<rpc::BalanceReply>(&*reply) : nullptr;
      if (answer != nullptr) balance_.see_answer(*answer);
    };
  }
  if (const auto* merge = std::get_if<rpc::MergeBucket>(&request)) {
    return [this, newer_stays = transfers_.see_merge(to, *merge)](const Result<rpc::Reply>& reply) {
      newer_stays(reply);
      const auto* merged = reply ? std::get_if<rpc::MergeBucketReply>(&*reply) : nullptr;
      if (merged != nullptr && merged->entries_copied > 0) exposure_.note(10);
      if (merged != nullptr && merged->status.code() == StatusCode::NoSpace) exposure_.note(14);
    };
  }
  return {};
}

NetworkObserver::SeeReply Recorder::see_apply(const std::string& to, const rpc::Apply& request) {
  std::vector<BucketId> buckets;
  for (const rpc::StorageOperation& operation : request.operations) buckets.push_back(operation.bucket);
  return [this, to, version = request.state_version, distributor = request.distributor,
          buckets = std::move(buckets)](const Result<rpc::Reply>& reply) {
    const auto* applied = reply ? std::get_if<rpc::ApplyReply>(&*reply) : nullptr;
    if (applied == nullptr || applied->results.size() != buckets.size()) return;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const StatusCode code = applied->results[i].status.code();
      if (code == StatusCode::NoSpace) exposure_.note(14);
      if (code == StatusCode::WrongDistribution || code == StatusCode::NotReady) continue;
      exposure_.note(11);
      note_owner(to, version, buckets[i], distributor);
    }
  };
}

void Recorder::note_owner(const std::string& to, std::uint64_t version, BucketId bucket, std::uint16_t distributor) {
  const auto [first, is_first] = owners_.try_emplace({version, bucket.raw()}, distributor);
  if (is_first || first->second == distributor || !failure_.empty()) return;
  failure_ = fmt::format("I11: distributor.{} and distributor.{} act for {} in state {}, the latter at {}",
                         first->second, distributor, bucket.to_string(), version, to);
}

void Recorder::see_state(const std::string& from, const rpc::ClusterInfo& info) {
  if (!info.state.empty()) note_text(from, info.state_version, info.state, info.distribution, true);
  if (info.pending_state.empty()) return;
  const Result<ClusterState> pending = ClusterState::parse(info.pending_state);
  if (pending) note_text(from, pending->version(), info.pending_state, info.pending_distribution, false);
}

void Recorder::see_term(const std::string& from, const rpc::ClusterInfo& info) {
  if (info.term == 0 || info.state_version == 0) return;
  const auto [owner, is_new_term] = terms_.try_emplace(info.term, from);
  if (owner->second != from && failure_.empty()) {
    failure_ = fmt::format("I11: term {} is of {} and of {}", info.term, owner->second, from);
  }
  const auto [first, is_new_state] = term_of_state_.try_emplace(info.state_version, info.term);
  if (!is_new_state) return;
  const auto next = std::next(first);
  const bool in_order = (first == term_of_state_.begin() || std::prev(first)->second <= first->second) &&
                        (next == term_of_state_.end() || first->second <= next->second);
  if (in_order || !failure_.empty()) return;
  failure_ = fmt::format("I11: {} makes state {} active in term {}, which is not the order of the terms", from,
                         info.state_version, info.term);
}

void Recorder::note_text(const std::string& from, std::uint64_t version, const std::string& state,
                         const std::string& distribution, bool is_active) {
  maintenance_.see_state(version, state, distribution);
  balance_.see_state(version, state, distribution);
  causal_order_.see_state(version, state, distribution, is_active);
  const std::string text = state + " | " + distribution;
  const auto [first, is_first] = states_.try_emplace(version, text, from);
  if (is_first || !failure_.empty()) return;
  // An empty distribution means that it has not changed.
  if (first->second.first == text || distribution.empty()) return;
  failure_ = fmt::format("I11: state {} is '{}' of {} and '{}' of {}", version, first->second.first,
                         first->second.second, text, from);
}

}  // namespace fjord::sim
