#include "fjord/distributor/distributor_node.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "bucket_health_counter.h"
#include "bucket_readers.h"
#include "context.h"
#include "controller_link.h"
#include "fjord/cluster/feature.h"
#include "fjord/common/log.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/rpc/live_settings.h"
#include "maintenance/bucket_maintainer.h"
#include "maintenance/bucket_view.h"
#include "maintenance/check_without.h"
#include "maintenance/garbage_collector.h"
#include "maintenance/unhealthy_buckets.h"
#include "operations/node_latencies.h"
#include "operations/operation_engine.h"
#include "unreported_buckets.h"

namespace fjord::distributor {

class DistributorNode::Impl {
 public:
  Impl(const DistributorOptions& options, Runtime& runtime, rpc::Transport& transport)
      : options_(options),
        incarnation_(runtime.random.next() | 1),
        settings_(runtime.tunables, options.settings_from_file),
        executor_(runtime.scheduler.make_executor("distributor")),
        context_{options_, runtime.clock, transport, runtime.metrics, *executor_, runtime.random.fork(), {}, nullptr},
        maintainer_(context_, runtime.tunables,
                    {[this](BucketId bucket) { operations_.bucket_ready(bucket); },
                     [this] { operations_.state_ready(); }, [this] { operations_.buckets_forgotten(); },
                     [this](const BucketEntry& entry) { return stable_us(entry, operations_.oldest_under_way()); }}),
        latencies_(runtime.metrics),
        operations_(context_, maintainer_, latencies_, runtime.tunables),
        garbage_(context_, maintainer_, runtime.tunables,
                 [this](rpc::Execute batch, rpc::Responder respond) {
                   operations_.arrive(std::move(batch), std::move(respond));
                 }),
        health_counter_(context_),
        readers_(context_, maintainer_, latencies_, operations_),
        controllers_(context_, options_.fleet_controllers.empty() ? std::vector{options_.fleet_controller}
                                                                  : options_.fleet_controllers) {}

  ~Impl() { end_executor(executor_); }

  const rpc::SnapshotHolder& snapshots() const { return snapshots_; }
  void announce_stop() { stop_.announce(context_.clock.now()); }
  const rpc::ControlledStop& stop() const { return stop_; }

  DistributorHealth health() const {
    std::lock_guard lock(health_mutex_);
    DistributorHealth health = health_;
    health.since_poll = context_.clock.now() - polled_at_;
    health.is_stopping = stop_.is_announced();
    return health;
  }

  Status state_in_force() const {
    const auto known = snapshots_.get();
    if (known == nullptr) return {StatusCode::NotReady, "there is no cluster state yet"};
    if (known->info().lease_us == 0 || context_.clock.now().us <= lease_until_us_) return Status::ok();
    return {StatusCode::NotReady, "the fleet controller has not been heard, so that the cluster state may be outdated"};
  }

  bool handle(rpc::Request& request, rpc::Responder& respond) {
    bool known =
        std::holds_alternative<rpc::Execute>(request) || std::holds_alternative<rpc::Poll>(request) ||
        std::holds_alternative<rpc::GetBucketNodes>(request) || std::holds_alternative<rpc::GetClusterInfo>(request) ||
        std::holds_alternative<rpc::DeploySchemas>(request) || std::holds_alternative<rpc::GetStatus>(request) ||
        std::holds_alternative<rpc::ChangeNodes>(request) || std::holds_alternative<rpc::GetConfig>(request) ||
        std::holds_alternative<rpc::ChangeConfig>(request) || std::holds_alternative<rpc::GetHistory>(request) ||
        std::holds_alternative<rpc::ListUnhealthyBuckets>(request) ||
        std::holds_alternative<rpc::AcceptLoss>(request) || std::holds_alternative<rpc::CheckWithout>(request) ||
        std::holds_alternative<rpc::RecoverState>(request) || std::holds_alternative<rpc::ExecuteStrict>(request) ||
        std::holds_alternative<rpc::ShowBucket>(request) || std::holds_alternative<rpc::Balance>(request);
    if (!known) return false;
    if (auto* strict = std::get_if<rpc::ExecuteStrict>(&request)) {
      execute_strict(std::move(*strict), std::move(respond));
      return true;
    }
    if (auto* batch = std::get_if<rpc::Execute>(&request)) {
      operations_.arrive(std::move(*batch), std::move(respond));
      return true;
    }
    executor_->post([this, request = std::move(request), respond = std::move(respond)]() mutable {
      run(std::move(request), std::move(respond));
    });
    return true;
  }

 private:
  /// Refuses the whole batch, before it executes any operation, if the batch needs a feature that this version does not
  /// have. From any thread.
  void execute_strict(rpc::ExecuteStrict request, rpc::Responder respond) {
    for (const std::string& feature : request.features) {
      if (std::find(std::begin(rpc::kStrictFeatures), std::end(rpc::kStrictFeatures), feature) !=
          std::end(rpc::kStrictFeatures)) {
        continue;
      }
      respond(rpc::ExecuteStrictReply{
          .status = Status(StatusCode::NotImplemented, "distributor." + std::to_string(options_.index) +
                                                           " does not know operations with \"" + feature + "\""),
          .batch = {}});
      return;
    }
    operations_.arrive(std::move(request.batch), [respond = std::move(respond)](rpc::Reply reply) mutable {
      respond(rpc::ExecuteStrictReply{.status = Status::ok(), .batch = std::move(std::get<rpc::ExecuteReply>(reply))});
    });
  }

  void run(rpc::Request request, rpc::Responder respond) {
    if (auto* asked = std::get_if<rpc::Poll>(&request)) {
      respond(poll(*asked));
    } else if (auto* nodes = std::get_if<rpc::GetBucketNodes>(&request)) {
      readers_.answer(*nodes, std::move(respond));
    } else if (auto* get = std::get_if<rpc::GetClusterInfo>(&request)) {
      respond(cluster_info(*get));
    } else if (auto* list = std::get_if<rpc::ListUnhealthyBuckets>(&request)) {
      respond(unhealthy_buckets(*list));
    } else if (auto* without = std::get_if<rpc::CheckWithout>(&request)) {
      check_without(context_, *without, std::move(respond));
    } else if (auto* view = std::get_if<rpc::ShowBucket>(&request)) {
      show_bucket(context_, *view, std::move(respond));
    } else if (auto* loss = std::get_if<rpc::AcceptLoss>(&request)) {
      rpc::AcceptLossReply reply;
      for (BucketId bucket : loss->buckets) reply.statuses.push_back(maintainer_.recover_unsafely(bucket));
      respond(std::move(reply));
    } else {
      controllers_.forward(std::move(request), std::move(respond));
    }
  }

  rpc::ListUnhealthyBucketsReply unhealthy_buckets(const rpc::ListUnhealthyBuckets& request) {
    if (context_.ready) {
      return list_unhealthy(context_.buckets, unreported_buckets(context_), unreported(context_).message(),
                            context_.snapshot->distribution().redundancy(), request);
    }
    return {.status = Status(StatusCode::NotReady, "this distributor does not know its buckets yet")};
  }

  rpc::PollReply poll(const rpc::Poll& request) {
    rpc::PollReply reply;
    reply.node = NodeId::distributor(options_.index).to_string();
    if (!request.node.empty() && request.node != reply.node) {
      std::string why = rpc::misnamed_text(reply.node, request.node);
      if (why != misnamed_) log::error("distributor", "{}", why);
      misnamed_ = why;
      note_health({});
      reply.status = {StatusCode::InvalidArgument, std::move(why)};
      if (const auto known = snapshots_.get()) reply.term = known->term();
      return reply;
    }
    misnamed_.clear();
    if (request.wants_settings) reply.settings = settings_.base();
    if (request.heard_incarnation != incarnation_)
      version_before_ = std::max(version_before_, request.info.state_version);
    Result<bool> updated = snapshots_.update(request.info);
    if (!updated) {
      reply.status = updated.error();
      if (const auto known = snapshots_.get()) reply.term = known->term();
      return reply;
    }
    if (*updated) apply_state(snapshots_.get());
    note_stop(request);
    if (request.renews_lease && request.heard_incarnation == incarnation_ && context_.snapshot != nullptr) {
      const MonotonicTime until{request.heard_us + context_.snapshot->info().lease_us};
      context_.lease_until = std::max(context_.lease_until, until);
      lease_until_us_ = context_.lease_until.us;
    }
    context_.time_ceiling_us = std::max(context_.time_ceiling_us, request.time_ceiling_us);
    latencies_.set_marked(request.slow_storage);
    reply.latencies = latencies_.report(context_.clock.now());
    stop_.stamp(reply, context_.clock.now());
    reply.features = known_features();
    reply.incarnation = incarnation_;
    if (const auto known = snapshots_.get()) {
      reply.state_version = known->state_version();
      reply.schema_version = known->schema_version();
      reply.pending_version = known->pending_version();
      reply.term = known->term();
      reply.config_errors = settings_.apply(known->info());
      reply.config_version = known->config_version();
    }
    health_counter_.count(reply, maintainer_.failing());
    note_health(reply);
    return reply;
  }

  /// Notes the part of a poll that is about a controlled stop.
  void note_stop(const rpc::Poll& request) {
    const auto known = snapshots_.get();
    const bool is_up = known != nullptr && known->state_version() != 0 &&
                       known->state().node(NodeId::distributor(options_.index)).state == NodeState::Up;
    stop_.note_poll(request, incarnation_, is_up, context_.clock.now());
  }

  void note_health(const rpc::PollReply& reply) {
    DistributorHealth health;
    if (const auto known = snapshots_.get(); known != nullptr && known->state_version() != 0) {
      health.state_version = known->state_version();
      health.config_version = known->config_version();
      health.state = std::string(to_string(known->state().node(NodeId::distributor(options_.index)).state));
      if (!known->state().is_cluster_up()) {
        health.cluster_down = "the cluster is down: too few of its nodes are available";
      }
    }
    health.misnamed = misnamed_;
    health.buckets = reply.buckets;
    health.unavailable = reply.buckets_unavailable;
    health.unplaced = reply.buckets_unplaced;
    health.too_few_replicas = reply.buckets_under_replicated;
    health.failing = reply.buckets_failing;
    health.failure = reply.failing;
    std::lock_guard lock(health_mutex_);
    health_ = std::move(health);
    polled_at_ = context_.clock.now();
  }

  void apply_state(std::shared_ptr<const rpc::ClusterSnapshot> snapshot) {
    // The fleet controller has no cluster state yet; this message only introduces the controller.
    if (snapshot->state_version() == 0) return;
    // While the cluster state describes an earlier process of this distributor, messages of that process may be in
    // flight, and no storage node could distinguish them from messages of this process.
    const std::uint64_t up_since = snapshot->state().node(NodeId::distributor(options_.index)).up_since_version;
    if (context_.snapshot == nullptr && up_since != 0 && up_since <= version_before_) return;
    const std::shared_ptr<const rpc::ClusterSnapshot> before = std::exchange(context_.snapshot, std::move(snapshot));
    if (before != nullptr && before->state_version() == context_.snapshot->state_version()) return;
    log::info("distributor", "cluster state {}", context_.snapshot->info().state);
    for (const DistributionGroup::Node& node : context_.snapshot->distribution().flat_nodes()) {
      if (context_.snapshot->storage_serves(node.index)) continue;
      latencies_.forget(node.index);
      context_.space.forget(node.index);
    }
    health_counter_.state_changed();
    ++context_.generation;
    maintainer_.forget_outdated(before.get());
    operations_.state_changed(before.get());
    operations_.buckets_forgotten();
    maintainer_.collect();
  }

  rpc::GetClusterInfoReply cluster_info(const rpc::GetClusterInfo& request) {
    rpc::GetClusterInfoReply reply;
    // The distributor may have received the client's state and not act on it yet; then operations of the client wait.
    const auto known = snapshots_.get();
    if (known == nullptr || known->state_version() == 0) {
      reply.status = context_.no_state();
    } else if (request.everything) {
      reply.info = known->info();
      reply.time_ceiling_us = context_.time_ceiling_us;
    } else if (known->is_of_another_cluster(request.known_cluster_id)) {
      reply.info = known->info_newer_than(0, 0);
    } else {
      reply.info = known->info_newer_than(request.known_state_version, request.known_schema_version);
    }
    return reply;
  }

  DistributorOptions options_;
  std::uint64_t incarnation_;
  /// Version of the newest state made before the fleet controller knew of this process.
  std::uint64_t version_before_ = 0;
  std::string misnamed_;  ///< Why this process refuses polls of the fleet controller; empty: it accepts them.
  rpc::LiveSettings settings_;
  rpc::SnapshotHolder snapshots_;
  rpc::ControlledStop stop_;
  std::unique_ptr<Executor> executor_;  // The destructor destroys the executor before all other members.
  Context context_;
  BucketMaintainer maintainer_;
  NodeLatencies latencies_;
  OperationEngine operations_;
  GarbageCollector garbage_;
  BucketHealthCounter health_counter_;
  BucketReaders readers_;
  ControllerLink controllers_;
  std::atomic<std::int64_t> lease_until_us_ = 0;  // A copy of Context::lease_until for other threads.
  mutable std::mutex health_mutex_;
  DistributorHealth health_ FJORD_GUARDED_BY(health_mutex_);
  MonotonicTime polled_at_ FJORD_GUARDED_BY(health_mutex_);
};

DistributorNode::DistributorNode(const DistributorOptions& options, Runtime& runtime, rpc::Transport& transport)
    : impl_(std::make_unique<Impl>(options, runtime, transport)) {}
DistributorNode::~DistributorNode() = default;
void DistributorNode::announce_stop() { impl_->announce_stop(); }
const rpc::ControlledStop& DistributorNode::stop() const { return impl_->stop(); }
DistributorHealth DistributorNode::health() const { return impl_->health(); }

Status DistributorNode::state_in_force() const { return impl_->state_in_force(); }

bool DistributorNode::handle(rpc::Request& request, rpc::Responder& respond) { return impl_->handle(request, respond); }
const rpc::SnapshotHolder& DistributorNode::snapshots() const { return impl_->snapshots(); }

}  // namespace fjord::distributor
