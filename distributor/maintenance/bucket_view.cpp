#include "maintenance/bucket_view.h"

#include <fmt/format.h>
#include <map>

#include "fjord/common/hash.h"
#include "maintenance/unhealthy_buckets.h"
#include "operations/replica_read.h"

namespace fjord::distributor {
namespace {

rpc::ReplicaRole role_of(const BucketEntry& entry, std::uint16_t node) {
  if (entry.set.contains(node)) return rpc::ReplicaRole::Member;
  if (entry.is_catching_up(node)) return rpc::ReplicaRole::CatchingUp;
  return entry.lists(node) ? rpc::ReplicaRole::Obsolete : rpc::ReplicaRole::Unlisted;
}

/// One request rpc::ShowBucket, kept until all storage nodes that it asks have answered.
class BucketViewing : public std::enable_shared_from_this<BucketViewing> {
 public:
  BucketViewing(Context& context, rpc::ShowBucket request, rpc::Responder respond)
      : context_(context), request_(std::move(request)), respond_(std::move(respond)) {
    reply_.distributor = context.options.index;
  }

  void start() {
    const Result<BucketId> bucket = wanted();
    if (!bucket) return fail(bucket.error());
    parts_ = context_.buckets.overlapping(*bucket);
    if (parts_.empty()) return fail(Status(StatusCode::NotFound, "nothing is known of " + bucket->to_string()));
    reply_.state_version = context_.snapshot->state_version();
    rpc::GetBucketInfo question;
    question.state_version = reply_.state_version;
    question.distributor = context_.options.index;
    question.buckets = parts_;
    left_ = 1;
    for (const DistributionGroup::Node& node : context_.snapshot->distribution().flat_nodes()) {
      if (!context_.snapshot->storage_serves(node.index)) {
        answers_.insert_or_assign(node.index, Status(StatusCode::Unavailable, "the node is not up"));
        continue;
      }
      ++left_;
      rpc::call(context_.transport, context_.storage_address(node.index), question, context_.options.storage_timeout,
                context_.executor,
                [self = shared_from_this(), index = node.index](Result<rpc::GetBucketInfoReply> reply) {
                  self->on_reports(index, std::move(reply));
                });
    }
    one_less(&BucketViewing::make_views);
  }

 private:
  Result<BucketId> wanted() {
    if (context_.snapshot == nullptr) return Status(StatusCode::NotReady, "the distributor has no cluster state yet");
    BucketId bucket = request_.bucket;
    if (!request_.id.empty()) {
      FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse(request_.id));
      gid_ = id.gid();
      const BucketEntry* entry = context_.buckets.find_for(gid_);
      bucket = entry != nullptr ? entry->bucket : context_.snapshot->bucket_of(gid_);
    }
    if (bucket.used_bits() < context_.snapshot->distribution_bits()) {
      return Status(StatusCode::InvalidArgument,
                    fmt::format("{} uses fewer bits than the buckets of this cluster, {}", bucket.to_string(),
                                context_.snapshot->distribution_bits()));
    }
    if (context_.snapshot->distributor_of(bucket) != context_.options.index) {
      return Status(StatusCode::WrongDistribution, "another distributor owns " + bucket.to_string());
    }
    if (!context_.ready) return Status(StatusCode::NotReady, "the distributor is collecting bucket information");
    return bucket;
  }

  void fail(Status status) {
    reply_.status = std::move(status);
    respond_(std::move(reply_));
  }

  void one_less(void (BucketViewing::*next)()) {
    if (--left_ == 0) (this->*next)();
  }

  void on_reports(std::uint16_t node, Result<rpc::GetBucketInfoReply> reply) {
    Result<std::vector<rpc::BucketReport>> reports =
        Status(StatusCode::Unavailable, reply ? "" : "the node does not answer: " + reply.error().to_string());
    if (reply && reply->status) {
      reports = std::move(reply->reports);
    } else if (reply) {
      reports = reply->status;
    }
    answers_.insert_or_assign(node, std::move(reports));
    one_less(&BucketViewing::make_views);
  }

  void make_views() {
    for (const BucketId part : parts_) {
      const BucketEntry* entry = context_.buckets.find(part);
      if (entry == nullptr || entry->is<activity::Collecting>()) {
        return fail(Status(StatusCode::NotReady, "the cluster state or the bucket changed meanwhile"));
      }
      rpc::BucketView view;
      view.bucket = part;
      view.replica_set = entry->set;
      const unsigned redundancy = context_.snapshot->distribution().redundancy();
      if (std::optional<rpc::UnhealthyBucket> unhealthy = problem_of(*entry, redundancy)) {
        view.problem = unhealthy->kind;
        view.reason = std::move(unhealthy->reason);
      }
      for (const std::uint16_t node : entry->set.nodes) add_replicas(*entry, node, view);
      for (const auto& [node, answer] : answers_) {
        if (!entry->set.contains(node)) add_replicas(*entry, node, view);
      }
      reply_.buckets.push_back(std::move(view));
    }
    read_documents();
  }

  /// Adds the node's replicas of the bucket: usually one, but perhaps several parts while the bucket is split.
  void add_replicas(const BucketEntry& entry, std::uint16_t node, rpc::BucketView& view) {
    rpc::BucketReplica replica;
    replica.node = node;
    replica.bucket = entry.bucket;
    replica.role = role_of(entry, node);
    replica.damaged = entry.is_damaged(node);
    const auto answer = answers_.find(node);
    if (answer == answers_.end()) {
      replica.status = Status(StatusCode::Unavailable, "the node is not part of the cluster any more");
    } else if (!answer->second) {
      replica.status = answer->second.error();
    } else {
      bool is_there = false;
      for (const rpc::BucketReport& report : *answer->second) {
        if (!report.bucket.contains(entry.bucket) && !entry.bucket.contains(report.bucket)) continue;
        is_there = true;
        replica.bucket = report.bucket;
        replica.damaged = report.damaged;
        replica.info = report.info;
        replica.replica_set = report.replica_set;
        view.replicas.push_back(replica);
      }
      if (is_there) return;
      replica.status = Status(StatusCode::NotFound, "the node does not have it");
    }
    if (entry.lists(node)) view.replicas.push_back(std::move(replica));
  }

  void read_documents() {
    left_ = 1;
    if (!request_.id.empty()) {
      for (rpc::BucketView& view : reply_.buckets) {
        for (rpc::BucketReplica& replica : view.replicas) read_document(replica);
      }
    }
    one_less(&BucketViewing::finish);
  }

  /// Asks the replica for the document. `replica` must keep its address until the answer.
  void read_document(rpc::BucketReplica& replica) {
    if (!replica.status || !replica.bucket.contains(bucket_of(gid_, BucketId::kUsedBitsMax))) {
      replica.document =
          replica.status ? Status(StatusCode::NotFound, "the document is in another part") : replica.status;
      return;
    }
    ++left_;
    const ReplicaQuestion question{.node = replica.node,
                                   .bucket = replica.bucket,
                                   .gid = gid_,
                                   .id = request_.id,
                                   .timeout = context_.options.storage_timeout};
    read_replica(context_, question, [self = shared_from_this(), &replica](rpc::OperationResult result) {
      if (result.status) replica.checksum = hash64(result.body, hash64(result.header));
      replica.document = std::move(result.status);
      replica.timestamp_us = result.timestamp_us;
      self->one_less(&BucketViewing::finish);
    });
  }

  void finish() { respond_(std::move(reply_)); }

  Context& context_;
  rpc::ShowBucket request_;
  rpc::Responder respond_;
  GlobalId gid_;
  std::vector<BucketId> parts_;
  std::map<std::uint16_t, Result<std::vector<rpc::BucketReport>>> answers_;
  std::size_t left_ = 0;
  rpc::ShowBucketReply reply_;
};

}  // namespace

void show_bucket(Context& context, const rpc::ShowBucket& request, rpc::Responder respond) {
  std::make_shared<BucketViewing>(context, request, std::move(respond))->start();
}

}  // namespace fjord::distributor
