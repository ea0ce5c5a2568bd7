#include "distributor_faults.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "faulty_services.h"

namespace fjord::sim {
namespace {

/// Passes calls on, after `before` has changed them; `after` changes the answers.
class ChangedTransport : public rpc::Transport {
 public:
  explicit ChangedTransport(rpc::Transport& transport) : transport_(transport) {}

  void call(const rpc::Address& to, rpc::Request request, Duration timeout, Executor& executor,
            rpc::ReplyFunction done) override {
    rpc::Address target = to;
    before(target, request);
    transport_.call(target, std::move(request), timeout, executor,
                    [this, target, done = std::move(done)](Result<rpc::Reply> reply) mutable {
                      if (reply) after(target, *reply);
                      done(std::move(reply));
                    });
  }

 protected:
  virtual void before(rpc::Address&, rpc::Request&) {}
  virtual void after(const rpc::Address&, rpc::Reply&) {}

  rpc::Transport& transport_;
};

/// Bug::SkipReplica: each write is sent to the first of its replicas; the others count as if they had taken it.
class SkipsReplicas final : public rpc::Transport {
 public:
  explicit SkipsReplicas(rpc::Transport& transport) : transport_(transport) {}

  void call(const rpc::Address& to, rpc::Request request, Duration timeout, Executor& executor,
            rpc::ReplyFunction done) override {
    auto* apply = std::get_if<rpc::Apply>(&request);
    if (apply == nullptr) return transport_.call(to, std::move(request), timeout, executor, std::move(done));
    std::vector<bool> is_sent;
    std::vector<rpc::StorageOperation> sent;
    for (rpc::StorageOperation& operation : apply->operations) {
      const bool is_read = operation.kind == rpc::OperationKind::Get;
      is_sent.push_back(is_read || first_.try_emplace({operation.id, operation.timestamp_us}, to).first->second == to);
      if (is_sent.back()) sent.push_back(std::move(operation));
    }
    apply->operations = std::move(sent);
    transport_.call(to, std::move(request), timeout, executor,
                    [is_sent = std::move(is_sent), done = std::move(done)](Result<rpc::Reply> reply) mutable {
                      auto* applied = reply ? std::get_if<rpc::ApplyReply>(&*reply) : nullptr;
                      if (applied != nullptr && applied->status) add_skipped(is_sent, applied->results);
                      done(std::move(reply));
                    });
  }

 private:
  /// Puts a success in the place of each operation that was not sent.
  static void add_skipped(const std::vector<bool>& is_sent, std::vector<rpc::OperationResult>& results) {
    std::vector<rpc::OperationResult> all;
    auto next = results.begin();
    for (const bool sent : is_sent) {
      if (sent && next == results.end()) return;  // The distributor sees that results are missing.
      all.push_back(sent ? std::move(*next++) : rpc::OperationResult{});
    }
    results = std::move(all);
  }

  rpc::Transport& transport_;
  // By document id and timestamp: the node that got the write first.
  std::map<std::pair<std::string, std::uint64_t>, rpc::Address> first_;
};

/// Bug::ReadOutOfSync: half of the messages that only read go to a replica that is catching up, if there is one.
/// Bug::GuardReadsAnywhere: replicas do not compare versions either, so conditional writes rely on such reads.
class ReadsOutOfSync final : public ChangedTransport {
 public:
  ReadsOutOfSync(rpc::Transport& transport, Random random, bool compares)
      : ChangedTransport(transport), random_(random), compares_(compares) {}

 protected:
  void before(rpc::Address& to, rpc::Request& request) override {
    if (const auto* sets = std::get_if<rpc::SetReplicaSets>(&request)) note(to, *sets);
    auto* apply = std::get_if<rpc::Apply>(&request);
    if (apply == nullptr || apply->operations.empty()) return;
    if (!compares_) {
      for (rpc::StorageOperation& operation : apply->operations) operation.compare = false;
    }
    const bool only_reads = std::all_of(apply->operations.begin(), apply->operations.end(), [](const auto& operation) {
      return operation.kind == rpc::OperationKind::Get;
    });
    if (!only_reads || !random_.chance(0.5)) return;
    for (const rpc::Address& node : catching_up_[apply->operations.front().bucket]) {
      const bool has_all = std::all_of(apply->operations.begin(), apply->operations.end(), [&](const auto& operation) {
        return catching_up_[operation.bucket].contains(node);
      });
      if (has_all) to = node;
    }
  }

 private:
  void note(const rpc::Address& node, const rpc::SetReplicaSets& sets) {
    for (const rpc::BucketReplicaSet& set : sets.buckets) {
      if (set.replica_set.epoch == 0) {
        catching_up_[set.bucket].insert(node);
      } else {
        catching_up_[set.bucket].erase(node);
      }
    }
  }

  Random random_;
  bool compares_;
  std::map<BucketId, std::set<rpc::Address>> catching_up_;
};

/// Bug::ForgetTokens: no operation is recognised by its idempotency key.
class ForgetsTokens final : public ChangedTransport {
 public:
  using ChangedTransport::ChangedTransport;

 protected:
  void after(const rpc::Address&, rpc::Reply& reply) override {
    auto* applied = std::get_if<rpc::ApplyReply>(&reply);
    if (applied == nullptr) return;
    for (rpc::OperationResult& result : applied->results) result.token_entry.clear();
  }
};

/// Bug::SkipRepair: damaged replicas are merged, but never marked as repaired.
class SkipsRepair final : public ChangedTransport {
 public:
  using ChangedTransport::ChangedTransport;

 protected:
  void before(rpc::Address&, rpc::Request& request) override {
    auto* sets = std::get_if<rpc::SetReplicaSets>(&request);
    if (sets == nullptr) return;
    for (rpc::BucketReplicaSet& set : sets->buckets) set.repaired = false;
  }
};

/// Bug::RepairUnmerged: a damaged replica is not merged. Comparisons find it equal to the intact ones, and it is marked
/// as repaired with what it holds.
class RepairsUnmerged final : public rpc::Transport {
 public:
  explicit RepairsUnmerged(rpc::Transport& transport) : transport_(transport) {}

  void call(const rpc::Address& to, rpc::Request request, Duration timeout, Executor& executor,
            rpc::ReplyFunction done) override {
    const auto* merge = std::get_if<rpc::MergeBucket>(&request);
    if (merge != nullptr && damaged_[merge->bucket].contains(to)) {
      executor.post([done = std::move(done)]() mutable { done(rpc::Reply(rpc::MergeBucketReply{})); });
      return;
    }
    if (auto* sets = std::get_if<rpc::SetReplicaSets>(&request)) {
      for (rpc::BucketReplicaSet& set : sets->buckets) {
        if (!set.repaired) continue;
        set.intact = content_[{to, set.bucket}];
        damaged_[set.bucket].erase(to);
      }
    }
    const auto* question = std::get_if<rpc::GetBucketInfo>(&request);
    const bool compares = question != nullptr && question->buckets.size() == 1;
    transport_.call(to, std::move(request), timeout, executor,
                    [this, to, compares, done = std::move(done)](Result<rpc::Reply> reply) mutable {
                      if (reply) change(to, compares, *reply);
                      done(std::move(reply));
                    });
  }

 private:
  void change(const rpc::Address& from, bool compares, rpc::Reply& reply) {
    if (auto* stored = std::get_if<rpc::SetReplicaSetsReply>(&reply)) stored->contents.clear();
    auto* info = std::get_if<rpc::GetBucketInfoReply>(&reply);
    if (info == nullptr) return;
    for (rpc::BucketReport& report : info->reports) {
      std::set<rpc::Address>& damaged = damaged_[report.bucket];
      content_[{from, report.bucket}] = report.info;
      if (report.damaged) damaged.insert(from);
      if (compares && !damaged.empty()) report.info.entries = report.info.checksum = 1;
    }
  }

  rpc::Transport& transport_;
  std::map<BucketId, std::set<rpc::Address>> damaged_;
  std::map<std::pair<rpc::Address, BucketId>, BucketInfo> content_;
};

/// Bug::SayInSync: no merge copies anything. The distributor's service hides that from polls (LyingService).
class MergesNothing final : public ChangedTransport {
 public:
  using ChangedTransport::ChangedTransport;

 protected:
  void after(const rpc::Address&, rpc::Reply& reply) override {
    auto* merged = std::get_if<rpc::MergeBucketReply>(&reply);
    if (merged != nullptr) merged->status = Status(StatusCode::IoError, "the merge came to nothing");
  }
  void before(rpc::Address&, rpc::Request& request) override {
    auto* merge = std::get_if<rpc::MergeBucket>(&request);
    if (merge != nullptr) merge->epoch = 1;  // The storage node refuses what belongs to such an old replica set.
  }
};

std::unique_ptr<rpc::Transport> make_transport(Bug bug, rpc::Transport& transport, Random random) {
  switch (bug) {
    case Bug::SkipReplica:
      return std::make_unique<SkipsReplicas>(transport);
    case Bug::ReadOutOfSync:
      return std::make_unique<ReadsOutOfSync>(transport, random, true);
    case Bug::GuardReadsAnywhere:
      return std::make_unique<ReadsOutOfSync>(transport, random, false);
    case Bug::ForgetTokens:
      return std::make_unique<ForgetsTokens>(transport);
    case Bug::SkipRepair:
      return std::make_unique<SkipsRepair>(transport);
    case Bug::RepairUnmerged:
      return std::make_unique<RepairsUnmerged>(transport);
    case Bug::SayInSync:
      return std::make_unique<MergesNothing>(transport);
    default:
      return std::make_unique<ChangedTransport>(transport);
  }
}

/// Changes the requests to a distributor.
class ChangedRequests final : public rpc::Service {
 public:
  ChangedRequests(Bug bug, rpc::Service& service) : bug_(bug), service_(service) {}

  bool handle(rpc::Request& request, rpc::Responder& respond) override {
    if (auto* poll = std::get_if<rpc::Poll>(&request); poll != nullptr && bug_ == Bug::IgnoreLease) {
      constexpr std::int64_t kForEverUs = 1'000'000'000'000'000;
      if (poll->info.lease_us != 0) poll->info.lease_us = kForEverUs;
    }
    // Acts as if no client named the cluster state in which it chose this distributor.
    if (bug_ == Bug::ServeOldRequests) {
      if (auto* batch = std::get_if<rpc::Execute>(&request)) batch->state_version = 0;
      if (auto* strict = std::get_if<rpc::ExecuteStrict>(&request)) strict->batch.state_version = 0;
    }
    return service_.handle(request, respond);
  }

 private:
  Bug bug_;
  rpc::Service& service_;
};

}  // namespace

DistributorFaults::DistributorFaults(Bug bug, rpc::Transport& transport, Random random)
    : bug_(bug), transport_(make_transport(bug, transport, random)) {}
DistributorFaults::~DistributorFaults() = default;

rpc::Service& DistributorFaults::wrap(rpc::Service& service) {
  if (bug_ == Bug::AllowStops || bug_ == Bug::ForbidStops || bug_ == Bug::HideMissing || bug_ == Bug::KeepOutage ||
      bug_ == Bug::SayInSync) {
    service_ = std::make_unique<LyingService>(bug_, service);
    return *service_;
  }
  if (bug_ != Bug::IgnoreLease && bug_ != Bug::ServeOldRequests) return service;
  service_ = std::make_unique<ChangedRequests>(bug_, service);
  return *service_;
}

}  // namespace fjord::sim
