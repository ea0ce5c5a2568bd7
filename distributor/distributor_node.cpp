#include "fjord/distributor/distributor_node.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "context.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/rpc/live_settings.h"
#include "maintenance/bucket_counts.h"
#include "maintenance/bucket_maintainer.h"
#include "maintenance/bucket_view.h"
#include "maintenance/check_without.h"
#include "maintenance/garbage_collector.h"
#include "maintenance/unhealthy_buckets.h"
#include "operations/node_latencies.h"
#include "operations/operation_engine.h"

namespace fjord::distributor {

class DistributorNode::Impl {
 public:
  Impl(const DistributorOptions& options, Runtime& runtime, rpc::Transport& transport)
      : options_(options),
        incarnation_(runtime.random.next() | 1),
        controllers_(options.fleet_controllers),
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
        buckets_(runtime.metrics.gauge("fjord_distributor_buckets", "Buckets owned")),
        out_of_sync_(runtime.metrics.gauge("fjord_distributor_buckets_out_of_sync", "Buckets that wait for a merge")),
        unavailable_(runtime.metrics.gauge("fjord_distributor_buckets_unavailable", "Buckets that cannot be served")),
        damaged_(runtime.metrics.gauge("fjord_distributor_buckets_damaged",
                                       "Buckets of which a replica has lost something and is not repaired")),
        failing_(runtime.metrics.gauge("fjord_distributor_buckets_failing",
                                       "Buckets whose merges have failed several times in a row")),
        unplaced_(runtime.metrics.gauge("fjord_distributor_buckets_unplaced",
                                        "Buckets for which the cluster state names no storage node")),
        under_replicated_(
            runtime.metrics.gauge("fjord_distributor_buckets_under_replicated",
                                  "Buckets that are served with fewer current replicas than they should have")) {
    if (controllers_.empty()) controllers_.push_back(options_.fleet_controller);
  }

  ~Impl() { end_executor(executor_); }

  const rpc::SnapshotHolder& snapshots() const { return snapshots_; }

  DistributorHealth health() const {
    std::lock_guard lock(health_mutex_);
    DistributorHealth health = health_;
    health.since_poll = context_.clock.now() - polled_at_;
    return health;
  }

  bool handle(rpc::Request& request, rpc::Responder& respond) {
    bool known =
        std::holds_alternative<rpc::Execute>(request) || std::holds_alternative<rpc::Poll>(request) ||
        std::holds_alternative<rpc::GetBucketNodes>(request) || std::holds_alternative<rpc::GetClusterInfo>(request) ||
        std::holds_alternative<rpc::DeploySchemas>(request) || std::holds_alternative<rpc::GetStatus>(request) ||
        std::holds_alternative<rpc::ChangeNodes>(request) || std::holds_alternative<rpc::GetConfig>(request) ||
        std::holds_alternative<rpc::ChangeConfig>(request) || std::holds_alternative<rpc::GetHistory>(request) ||
        std::holds_alternative<rpc::ListTroubles>(request) || std::holds_alternative<rpc::AcceptLoss>(request) ||
        std::holds_alternative<rpc::CheckWithout>(request) || std::holds_alternative<rpc::RecoverState>(request) ||
        std::holds_alternative<rpc::ExecuteStrict>(request) || std::holds_alternative<rpc::ShowBucket>(request);
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
  /// Refuses a batch that needs a feature which this version does not have, before any of it is done. From any thread.
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
      answer_bucket_nodes(*nodes, std::move(respond));
    } else if (auto* get = std::get_if<rpc::GetClusterInfo>(&request)) {
      respond(cluster_info(*get));
    } else if (auto* list = std::get_if<rpc::ListTroubles>(&request)) {
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
      forward(std::move(request), std::move(respond));
    }
  }

  rpc::ListTroublesReply unhealthy_buckets(const rpc::ListTroubles& request) {
    if (context_.ready) return list_unhealthy(context_.buckets, request);
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
    if (request.renews_lease && request.heard_incarnation == incarnation_ && context_.snapshot != nullptr) {
      const MonotonicTime until{request.heard_us + context_.snapshot->info().lease_us};
      context_.lease_until = std::max(context_.lease_until, until);
    }
    context_.time_ceiling_us = std::max(context_.time_ceiling_us, request.time_ceiling_us);
    latencies_.set_marked(request.slow_storage);
    reply.latencies = latencies_.report(context_.clock.now());
    reply.node_state = "s:u";
    reply.incarnation = incarnation_;
    reply.clock_us = context_.clock.now().us;
    if (const auto known = snapshots_.get()) {
      reply.state_version = known->state_version();
      reply.schema_version = known->schema_version();
      reply.pending_version = known->pending_version();
      reply.term = known->term();
      reply.config_errors = settings_.apply(known->info());
      reply.config_version = known->config_version();
    }
    reply.buckets = context_.ready ? context_.buckets.size() : std::max(context_.buckets.size(), owned_buckets());
    const BucketCounts counts = count_buckets(context_.buckets, context_.snapshot.get());
    reply.buckets_out_of_sync = counts.out_of_sync;
    reply.buckets_unavailable = counts.unavailable + (reply.buckets - context_.buckets.size());
    reply.buckets_damaged = counts.damaged;
    reply.buckets_unplaced = unplaced_buckets();
    if (context_.ready) {  // Until then these count as unreported.
      reply.buckets += reply.buckets_unplaced;
      reply.buckets_unavailable += reply.buckets_unplaced;
    }
    MergeFailures::Summary failing = maintainer_.failing();
    reply.buckets_failing = failing.buckets;
    reply.failing = std::move(failing.newest);
    failing_.set(static_cast<double>(reply.buckets_failing));
    unplaced_.set(static_cast<double>(reply.buckets_unplaced));
    reply.buckets_under_replicated = counts.under_replicated;
    under_replicated_.set(static_cast<double>(reply.buckets_under_replicated));
    damaged_.set(static_cast<double>(reply.buckets_damaged));
    buckets_.set(static_cast<double>(reply.buckets));
    out_of_sync_.set(static_cast<double>(reply.buckets_out_of_sync));
    unavailable_.set(static_cast<double>(reply.buckets_unavailable));
    note_health(reply);
    return reply;
  }

  void note_health(const rpc::PollReply& reply) {
    DistributorHealth health;
    if (const auto known = snapshots_.get(); known != nullptr && known->state_version() != 0) {
      health.state_version = known->state_version();
      health.state = std::string(to_string(known->state().node(NodeId::distributor(options_.index)).state));
      if (!known->state().is_cluster_up()) {
        health.cluster_down = "the cluster is down: too few of its nodes are available";
      }
    }
    health.misnamed = misnamed_;
    health.buckets = reply.buckets;
    health.unavailable = reply.buckets_unavailable;
    health.unplaced = reply.buckets_unplaced;
    health.failing = reply.buckets_failing;
    health.failure = reply.failing;
    std::lock_guard lock(health_mutex_);
    health_ = std::move(health);
    polled_at_ = context_.clock.now();
  }

  /// All buckets of this distributor, empty or not. Until the storage nodes have reported under a new cluster state
  /// none is served, and "no buckets" would look like an empty cluster that is healthy.
  std::size_t owned_buckets() const {
    if (context_.snapshot == nullptr) return 0;
    const unsigned bits = context_.snapshot->distribution_bits();
    std::size_t owned = 0;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
      owned += context_.snapshot->distributor_of(BucketId(bits, i)) == options_.index ? 1 : 0;
    }
    return owned;
  }

  /// Buckets of this distributor for which the cluster state names no storage node and that no node holds. They can
  /// neither be read nor written.
  std::size_t unplaced_buckets() {
    if (context_.snapshot == nullptr || context_.snapshot->state_version() == 0 || !none_is_placed_) return 0;
    const unsigned bits = context_.snapshot->distribution_bits();
    std::size_t unplaced = 0;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
      const BucketId bucket(bits, i);
      if (context_.snapshot->distributor_of(bucket) != options_.index) continue;
      unplaced +=
          context_.snapshot->ideal_nodes(bucket).empty() && context_.buckets.overlapping(bucket).empty() ? 1 : 0;
    }
    return unplaced;
  }

  /// True if the cluster state places no bucket, because no node is up and has a capacity. Placement names no node for
  /// one bucket only if it names none for any.
  bool is_nothing_placed() const {
    const unsigned bits = context_.snapshot->distribution_bits();
    return context_.snapshot->ideal_nodes(BucketId(bits, 0)).empty();
  }

  void apply_state(std::shared_ptr<const rpc::ClusterSnapshot> snapshot) {
    if (snapshot->state_version() == 0) return;  // The fleet controller has no state yet; it only introduces itself.
    // While the state describes an earlier process of this distributor, messages of that process may be in flight, and
    // no storage node could tell them from those of this one.
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
    none_is_placed_ = is_nothing_placed();
    ++context_.generation;
    maintainer_.forget_outdated(before.get());
    operations_.state_changed(before.get());
    operations_.buckets_forgotten();
    maintainer_.collect();
  }

  rpc::GetClusterInfoReply cluster_info(const rpc::GetClusterInfo& request) {
    rpc::GetClusterInfoReply reply;
    // The distributor may not act under it yet; then operations of the client wait.
    const auto known = snapshots_.get();
    if (known == nullptr || known->state_version() == 0) {
      reply.status = not_ready();
    } else if (request.everything) {
      reply.info = known->info();
      reply.time_ceiling_us = context_.time_ceiling_us;
    } else {
      reply.info = known->info_newer_than(request.known_state_version, request.known_schema_version);
    }
    return reply;
  }

  Status not_ready() const {
    return {StatusCode::NotReady, "distributor." + std::to_string(options_.index) + " has no cluster state yet"};
  }

  static Status still_collecting() {
    return {StatusCode::NotReady, "the distributor is collecting bucket information"};
  }

  /// Names a node for each bucket, from which a client reads alone. Without a lease, all members have to confirm the
  /// cluster state first.
  void answer_bucket_nodes(const rpc::GetBucketNodes& request, rpc::Responder respond) {
    rpc::GetBucketNodesReply reply = bucket_nodes(request);
    const bool is_trusted = std::all_of(reply.buckets.begin(), reply.buckets.end(), [&](const rpc::BucketNode& one) {
      return !one.status || context_.may_trust_one(one.bucket);
    });
    if (is_trusted) {
      respond(std::move(reply));
      return;
    }
    std::set<std::uint16_t> members;
    for (const rpc::BucketNode& one : reply.buckets) {
      if (!one.status) continue;
      for (BucketId part : context_.buckets.overlapping(one.bucket)) {
        const std::vector<std::uint16_t>& nodes = context_.buckets.find(part)->set.nodes;
        members.insert(nodes.begin(), nodes.end());
      }
    }
    confirm_state(members, [reply = std::move(reply), respond = std::move(respond)](bool confirmed) mutable {
      if (!confirmed) {
        reply.buckets.clear();
        reply.status = Status(StatusCode::NotReady,
                              "the fleet controller has not been heard, and not all replicas confirm "
                              "that the cluster state is still in force");
      }
      respond(std::move(reply));
    });
  }

  /// Calls `done` with true if all these storage nodes are still in this distributor's cluster state.
  void confirm_state(const std::set<std::uint16_t>& nodes, UniqueFunction<void(bool)> done) {
    struct Answers {
      std::size_t left;
      UniqueFunction<void(bool)> done;
      bool confirmed = true;
    };
    auto answers = std::make_shared<Answers>(Answers{nodes.size(), std::move(done)});
    for (std::uint16_t node : nodes) {
      rpc::GetBucketInfo question;
      question.state_version = context_.snapshot->state_version();
      question.distributor = options_.index;
      rpc::call(context_.transport, context_.storage_address(node), std::move(question), options_.storage_timeout,
                *executor_, [answers](Result<rpc::GetBucketInfoReply> reply) {
                  answers->confirmed = answers->confirmed && reply && reply->status;
                  if (--answers->left == 0) answers->done(answers->confirmed);
                });
    }
  }

  rpc::GetBucketNodesReply bucket_nodes(const rpc::GetBucketNodes& request) {
    rpc::GetBucketNodesReply reply;
    if (context_.snapshot == nullptr) {
      reply.status = not_ready();
      return reply;
    }
    reply.newer_info = context_.snapshot->info_newer_than(request.state_version, 0);
    if (!operations_.reads_go_on()) {
      reply.status = Status(StatusCode::Unavailable, context_.closed_text());
      return reply;
    }
    const bool all = request.all || request.for_changes;
    if (all && request.state_version != context_.snapshot->state_version()) {
      reply.status = Status(StatusCode::WrongDistribution, "the cluster state changed");
      return reply;
    }
    if (all && !context_.ready) {
      reply.status = still_collecting();
      return reply;
    }
    if (all && context_.unreported_buckets_may_exist()) {
      reply.status = Status(StatusCode::Unavailable,
                            "some buckets may be only on storage nodes that are not up: " + context_.absent_text());
      return reply;
    }
    if (request.for_changes) {
      const auto oldest = operations_.oldest_under_way();
      for (auto& [key, entry] : context_.buckets) reply.buckets.push_back(node_for_changes(entry, oldest));
    } else if (request.all) {
      const unsigned bits = context_.snapshot->distribution_bits();
      for (auto& [key, entry] : context_.buckets) {
        const BucketId whole = entry.bucket.with_used_bits(bits);
        if (reply.buckets.empty() || reply.buckets.back().bucket != whole)
          reply.buckets.push_back(node_of(whole, request));
      }
    } else {
      for (BucketId bucket : request.buckets) reply.buckets.push_back(node_of(bucket, request));
    }
    return reply;
  }

  rpc::BucketNode node_of(BucketId bucket, const rpc::GetBucketNodes& request) {
    if (context_.snapshot->distributor_of(bucket) != options_.index) {
      return {bucket, Status(StatusCode::WrongDistribution, "another distributor owns the bucket")};
    }
    const std::vector<BucketId> parts = context_.buckets.overlapping(bucket);
    const bool is_mine =
        bucket.used_bits() >= context_.snapshot->distribution_bits();  // With fewer it has several owners.
    const bool knows_all = is_mine && context_.ready && !context_.unreported_buckets_may_exist();
    if (!parts.empty() && knows_all && create_missing(bucket)) return {bucket, not_in_sync()};
    if (!parts.empty()) return node_of(bucket, parts, request);
    if (!context_.ready) return {bucket, still_collecting()};
    if (context_.unreported_buckets_may_exist()) {
      return {bucket, Status(StatusCode::Unavailable,
                             "it may be on one of the storage nodes that are not up: " + context_.absent_text())};
    }
    return {bucket, Status(StatusCode::NotFound, "there is no such bucket")};
  }

  /// Creates the parts of `bucket` that do not exist: they were never written to since there are more distribution
  /// bits, and a node that has only some parts could not tell. True if a part was missing.
  bool create_missing(BucketId bucket) {
    const std::vector<BucketId> parts = context_.buckets.overlapping(bucket);
    if (parts.empty()) {
      maintainer_.create(bucket);
      return true;
    }
    if (parts.front().contains(bucket)) return false;
    const auto [low, high] = halves_of(bucket);
    const bool low_missed = create_missing(low);
    return create_missing(high) || low_missed;
  }

  /// A node from which all of `parts`, which make up `bucket`, can be read.
  rpc::BucketNode node_of(BucketId bucket, const std::vector<BucketId>& parts, const rpc::GetBucketNodes& request) {
    std::vector<std::uint16_t> readable;
    bool even_damaged = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const BucketEntry& entry = *context_.buckets.find(parts[i]);
      if (const std::string* why = entry.unavailable_because()) return {bucket, Status(StatusCode::Unavailable, *why)};
      if (!entry.has_set_in_force() || entry.dirty) return {bucket, not_in_sync()};
      const std::vector<std::uint16_t> nodes = readable_nodes(entry);
      even_damaged = even_damaged || entry.intact().empty();
      if (i == 0) {
        readable = nodes;
      } else {
        std::erase_if(readable, [&](auto node) { return std::find(nodes.begin(), nodes.end(), node) == nodes.end(); });
      }
    }
    if (readable.empty()) return {bucket, not_in_sync()};
    std::vector<std::uint16_t> others;
    std::copy_if(readable.begin(), readable.end(), std::back_inserter(others), [&](auto node) {
      return std::find(request.avoid.begin(), request.avoid.end(), node) == request.avoid.end();
    });
    if (!others.empty()) readable = std::move(others);
    readable = latencies_.without_slow(std::move(readable), context_.clock.now());
    rpc::BucketNode found{.bucket = bucket, .status = Status::ok(), .even_damaged = even_damaged};
    if (!request.all) {
      found.node = readable[context_.random.below(readable.size())];
      return found;
    }
    // The same node each time all buckets are listed, so that the state that a visitor has left there is found again
    // (docs/design/0011-incremental-refresh.md).
    found.node = *std::min_element(readable.begin(), readable.end(), [&](std::uint16_t a, std::uint16_t b) {
      return mix64(bucket.raw(), a) < mix64(bucket.raw(), b);
    });
    return found;
  }

  /// The node from which changes of a bucket can be read, and the timestamp up to which they can: before its oldest
  /// write in flight, and not while a merge may bring an older one (docs/design/0008).
  rpc::BucketNode node_for_changes(const BucketEntry& entry, const std::map<std::uint64_t, std::uint64_t>& oldest) {
    if (const std::string* why = entry.unavailable_because()) {
      return {.bucket = entry.bucket, .status = Status(StatusCode::Unavailable, *why)};
    }
    if (!entry.serves() || entry.may_differ() || !entry.damaged.empty()) {
      return {.bucket = entry.bucket, .status = not_in_sync()};
    }
    const std::vector<std::uint16_t> nodes = latencies_.without_slow(readable_nodes(entry), context_.clock.now());
    rpc::BucketNode found{.bucket = entry.bucket, .status = Status::ok()};
    found.node = nodes[context_.random.below(nodes.size())];
    found.epoch = entry.set.epoch;
    found.stable_us = stable_us(entry, oldest);
    return found;
  }

  /// Timestamp up to which no write to the bucket is in flight or ever will be.
  static std::uint64_t stable_us(const BucketEntry& entry, const std::map<std::uint64_t, std::uint64_t>& oldest) {
    std::uint64_t stable = entry.last_timestamp_us;
    const std::uint64_t first = entry.bucket.position();
    const std::uint64_t last = first + (entry.bucket.span() - 1);
    for (auto at = oldest.lower_bound(first); at != oldest.end() && at->first <= last; ++at) {
      stable = std::min(stable, at->second - 1);
    }
    return stable;
  }

  std::vector<std::uint16_t> readable_nodes(const BucketEntry& entry) const {
    std::vector<std::uint16_t> readable = entry.intact();
    if (readable.empty()) readable = entry.set.nodes;
    return readable;
  }

  static Status not_in_sync() { return {StatusCode::NotReady, "its replicas are being brought in sync"}; }

  /// Forwards a request to the fleet controllers, which clients reach through any distributor. The next controller is
  /// asked if one does not lead, or if a question that changes nothing gets no answer.
  void forward(rpc::Request request, rpc::Responder respond) {
    ask_controller(std::make_shared<rpc::Request>(std::move(request)),
                   std::make_shared<rpc::Responder>(std::move(respond)), 0);
  }
  void ask_controller(std::shared_ptr<rpc::Request> request, std::shared_ptr<rpc::Responder> respond,
                      std::size_t asked) {
    const rpc::Address address = controllers_[controller_ % controllers_.size()];
    context_.transport.call(
        address, rpc::Request(*request), options_.storage_timeout, *executor_,
        [this, request, respond, address, asked](Result<rpc::Reply> reply) {
          const Status status = reply ? rpc::status_of(*reply) : reply.error();
          const bool only_asks = !std::holds_alternative<rpc::DeploySchemas>(*request) &&
                                 !std::holds_alternative<rpc::ChangeNodes>(*request) &&
                                 !std::holds_alternative<rpc::ChangeConfig>(*request) &&
                                 !std::holds_alternative<rpc::RecoverState>(*request);
          const bool not_done = status.code() == StatusCode::NotReady || (!reply && only_asks);
          if ((!reply || not_done) && address == controllers_[controller_ % controllers_.size()]) ++controller_;
          if (not_done && asked + 1 < controllers_.size()) {
            ask_controller(request, respond, asked + 1);
          } else if (reply) {
            (*respond)(std::move(*reply));
          } else {
            (*respond)(rpc::error_reply(*request, reply.error().with_context("fleet controller at " + address)));
          }
        });
  }

  DistributorOptions options_;
  std::uint64_t incarnation_;
  /// Version of the newest state before the fleet controller had heard of this process.
  std::uint64_t version_before_ = 0;
  std::string misnamed_;  ///< Why polls of the fleet controller are refused; empty: they are not.
  std::vector<rpc::Address> controllers_;
  rpc::LiveSettings settings_;
  std::size_t controller_ = 0;  ///< Index of the one that answered last.
  rpc::SnapshotHolder snapshots_;
  std::unique_ptr<Executor> executor_;  // Destroyed first, by the destructor.
  Context context_;
  BucketMaintainer maintainer_;
  NodeLatencies latencies_;
  OperationEngine operations_;
  GarbageCollector garbage_;
  Gauge& buckets_;
  Gauge& out_of_sync_;
  Gauge& unavailable_;
  Gauge& damaged_;
  Gauge& failing_;
  Gauge& unplaced_;
  mutable std::mutex health_mutex_;
  DistributorHealth health_ FJORD_GUARDED_BY(health_mutex_);
  MonotonicTime polled_at_ FJORD_GUARDED_BY(health_mutex_);
  bool none_is_placed_ = false;  ///< Result of is_nothing_placed() for the cluster state in use.
  Gauge& under_replicated_;
};

DistributorNode::DistributorNode(const DistributorOptions& options, Runtime& runtime, rpc::Transport& transport)
    : impl_(std::make_unique<Impl>(options, runtime, transport)) {}
DistributorNode::~DistributorNode() = default;
DistributorHealth DistributorNode::health() const { return impl_->health(); }

bool DistributorNode::handle(rpc::Request& request, rpc::Responder& respond) { return impl_->handle(request, respond); }
const rpc::SnapshotHolder& DistributorNode::snapshots() const { return impl_->snapshots(); }

}  // namespace fjord::distributor
