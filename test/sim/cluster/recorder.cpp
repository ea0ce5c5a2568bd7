#include "recorder.h"

#include <fmt/format.h>

namespace fjord::sim {

NetworkObserver::SeeReply Recorder::see_request(const std::string& from, const std::string& to,
                                                const rpc::Request& request) {
  if (const auto* apply = std::get_if<rpc::Apply>(&request)) return see_apply(to, *apply);
  if (const auto* poll = std::get_if<rpc::Poll>(&request)) see_state(from, poll->info);
  if (std::holds_alternative<rpc::MergeBucket>(request)) {
    return [this](const Result<rpc::Reply>& reply) {
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
  if (info.state.empty()) return;
  const auto [first, is_first] = states_.try_emplace(info.state_version, info.state + " | " + info.distribution, from);
  if (is_first || !failure_.empty()) return;
  // A part that is empty means: as you have it.
  const std::string text = info.state + " | " + info.distribution;
  if (first->second.first == text || info.distribution.empty()) return;
  failure_ = fmt::format("I11: state {} is '{}' of {} and '{}' of {}", info.state_version, first->second.first,
                         first->second.second, text, from);
}

}  // namespace fjord::sim
