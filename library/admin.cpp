#include "fjord/library/admin.h"

#include <chrono>
#include <fmt/format.h>
#include <thread>

#include "fjord/library/detail/admin_calls.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/library/detail/cluster_health.h"
#include "fjord/library/detail/node_progress.h"

namespace fjord {

namespace {

using SteadyClock = std::chrono::steady_clock;

NodeInfo node_of(const rpc::NodeStatus& node) {
  NodeInfo info;
  info.name = node.node;
  info.address = node.address;
  info.state = node.state;
  info.reason = node.reason;
  info.wanted = node.wanted;
  info.group = node.group;
  info.capacity = node.capacity;
  info.slow = node.slow;
  info.space = node.last.space;
  info.space_stage = static_cast<std::uint16_t>(node.last.space_stage);
  info.buckets = node.last.buckets;
  info.documents = node.last.documents;
  info.bytes = node.last.bytes;
  info.state_version = node.last.state_version;
  info.config_version = node.last.config_version;
  info.answered_ago = Duration(node.answered_us_ago);
  info.maintenance = Duration(node.maintenance_us);
  info.maintenance_left = Duration(node.maintenance_left_us);
  return info;
}

rpc::NodeAction wire(NodeAction action) {
  switch (action) {
    case NodeAction::Up:
      return rpc::NodeAction::Up;
    case NodeAction::Maintenance:
      return rpc::NodeAction::Maintenance;
    case NodeAction::Retire:
      return rpc::NodeAction::Retire;
    case NodeAction::Down:
      return rpc::NodeAction::Down;
    case NodeAction::Add:
      return rpc::NodeAction::Add;
    case NodeAction::Remove:
      return rpc::NodeAction::Remove;
    case NodeAction::Replace:
      return rpc::NodeAction::Replace;
    case NodeAction::SetCapacity:
      return rpc::NodeAction::Capacity;
    case NodeAction::StopCheck:
      return rpc::NodeAction::Stop;
    case NodeAction::Balance:
      return rpc::NodeAction::Balance;
    case NodeAction::AcceptLoss:
      return rpc::NodeAction::AcceptLoss;
  }
  return rpc::NodeAction::Unknown;
}

}  // namespace

std::string_view to_string(Health health) {
  switch (health) {
    case Health::Healthy:
      return "healthy";
    case Health::Degraded:
      return "degraded";
    case Health::Unavailable:
      return "unavailable";
  }
  return "unknown";
}

Result<ClusterStatus> Admin::status() {
  FJORD_TRY(core_->wait_ready());
  FJORD_TRY_ASSIGN(const rpc::GetStatusReply reply,
                   ask_cluster(core_->connection(), rpc::GetStatus{}, core_->timeout({})));
  ClusterHealth health = health_of(reply);
  ClusterStatus status;
  status.health = static_cast<Health>(health.level);
  status.reasons = std::move(health.reasons);
  status.notes = std::move(health.notes);
  status.state_version = reply.info.state_version;
  status.schema_version = reply.info.schema_version;
  status.config_version = reply.info.config_version;
  status.state = reply.info.state;
  status.distribution = reply.info.distribution;
  status.buckets = health.buckets;
  status.buckets_in_sync = health.buckets_in_sync;
  status.buckets_out_of_sync = health.buckets_out_of_sync;
  status.buckets_collecting = health.buckets_collecting;
  status.buckets_unavailable = health.buckets_unavailable;
  status.buckets_damaged = health.buckets_damaged;
  status.buckets_failing = health.buckets_failing;
  status.buckets_unplaced = health.buckets_unplaced;
  status.buckets_under_replicated = health.buckets_under_replicated;
  status.nodes_without_space = health.nodes_without_space;
  status.document_replicas = health.document_replicas;
  status.bytes = health.bytes;
  for (const rpc::NodeStatus& node : reply.nodes) status.nodes.push_back(node_of(node));
  return status;
}

Result<NodePlan> Admin::change_nodes(const NodeChange& change) {
  FJORD_TRY(core_->wait_ready());
  rpc::ChangeNodes request;
  request.action = wire(change.action);
  request.nodes = change.nodes;
  request.address = change.address;
  request.group = change.group;
  request.capacity = change.capacity;
  request.balance_to = change.balance_to;
  request.reason = change.reason;
  request.who = who_am_i();
  request.dry_run = change.dry_run;
  request.force = change.force;
  FJORD_TRY_ASSIGN(rpc::ChangeNodesReply reply,
                   fjord::change_nodes(core_->connection(), std::move(request), core_->timeout({})));
  NodePlan plan;
  plan.done = reply.refusals.empty() && !change.dry_run && change.action != NodeAction::StopCheck;
  plan.refusals = std::move(reply.refusals);
  plan.warnings = std::move(reply.warnings);
  plan.nodes = std::move(reply.nodes);
  plan.state_version = reply.state_version;
  plan.buckets_total = reply.plan.buckets_total;
  plan.buckets_moved = reply.plan.buckets_moved;
  plan.replicas_moved = reply.plan.replicas_moved;
  plan.bytes_moved = reply.plan.bytes;
  plan.duration_seconds = reply.plan.duration_s;
  plan.notes = std::move(reply.plan.notes);
  return plan;
}

Result<std::vector<HistoryEntry>> Admin::history(std::uint32_t max) {
  FJORD_TRY(core_->wait_ready());
  FJORD_TRY_ASSIGN(const rpc::GetHistoryReply reply,
                   ask_cluster(core_->connection(), rpc::GetHistory{.max = max}, core_->timeout({})));
  std::vector<HistoryEntry> entries;
  for (const rpc::StateChange& change : reply.changes) {
    // The reason of a change of settings comes behind its author.
    Author author = change.why.empty() ? author_of(change.who) : Author{change.who, change.why};
    entries.push_back({change.version, change.term, change.unix_us, change.active_unix_us, change.what,
                       std::move(author.why), std::move(author.who)});
  }
  return entries;
}

Result<ClusterStateInfo> Admin::state() {
  FJORD_TRY(core_->wait_ready());
  FJORD_TRY_ASSIGN(const rpc::GetHistoryReply reply,
                   ask_cluster(core_->connection(), rpc::GetHistory{.max = 1}, core_->timeout({})));
  return ClusterStateInfo{.state = reply.info.state,
                          .distribution = reply.info.distribution,
                          .pending_state = reply.info.pending_state,
                          .pending_distribution = reply.info.pending_distribution,
                          .waits_for = reply.waits_for,
                          .leader = reply.leader,
                          .term = reply.term,
                          .schema_version = reply.info.schema_version,
                          .config_version = reply.info.config_version};
}

Status Admin::wait_for(const NodeChange& change, const NodePlan& plan, Duration timeout,
                       const std::function<void(const NodeChangeProgress&)>& on_progress, const std::stop_token& stop) {
  constexpr auto kPause = std::chrono::milliseconds(200);
  constexpr auto kProgressInterval = std::chrono::milliseconds(500);
  constexpr double kEstimateFrom = 0.02;
  FJORD_TRY(core_->wait_ready());
  const auto begin = SteadyClock::now();
  const auto deadline = begin + timeout;
  std::uint64_t most = 0;
  auto next_progress = begin;
  for (;;) {
    const auto status = ask_cluster(core_->connection(), rpc::GetStatus{}, core_->timeout({}));
    NodeChangeProgress left;
    if (status) left = progress_of(*status, change, plan, most);
    if (left.is_in_force && left.buckets_left == 0) return Status::ok();
    const auto now = SteadyClock::now();
    const double spent = std::chrono::duration<double>(now - begin).count();
    if (left.fraction_done > kEstimateFrom) {
      left.left = Duration(static_cast<std::int64_t>(1e6 * (spent / left.fraction_done - spent)));
    }
    if (on_progress && now >= next_progress) {
      on_progress(left);
      next_progress = now + kProgressInterval;
    }
    if (now >= deadline) return {StatusCode::Timeout, fmt::format("after {:g} s: {}", spent, to_string(left))};
    if (stop.stop_requested()) return {StatusCode::Cancelled, "the caller does not wait for the change any more"};
    std::this_thread::sleep_for(kPause);
  }
}

Result<RecoveredState> Admin::recover_state(const RecoverOptions& options) {
  FJORD_TRY(core_->wait_ready());
  const rpc::RecoverState request{.dry_run = options.dry_run, .force = options.force, .who = who_am_i()};
  Connection& connection = core_->connection();
  auto reply = options.controller.empty() ? ask_cluster(connection, request, core_->timeout({}))
                                          : ask_node(connection, options.controller, request, core_->timeout({}));
  if (!reply) return reply.error();
  RecoveredState recovered;
  recovered.done = reply->refusals.empty() && !options.dry_run;
  recovered.refusals = std::move(reply->refusals);
  recovered.warnings = std::move(reply->warnings);
  recovered.found = std::move(reply->found);
  recovered.state = std::move(reply->state);
  recovered.distribution = std::move(reply->distribution);
  recovered.state_version = reply->state_version;
  recovered.next_version = reply->next_version;
  recovered.term = reply->term;
  recovered.schema_version = reply->schema_version;
  recovered.schemas = reply->schemas;
  recovered.config_version = reply->config_version;
  recovered.settings = reply->settings;
  return recovered;
}

Result<DeployedSchemas> Admin::deploy_schemas(std::vector<std::string> schemas, std::vector<std::string> may_drop) {
  FJORD_TRY(core_->wait_ready());
  FJORD_TRY_ASSIGN(rpc::DeploySchemasReply reply,
                   core_->connection().sync().deploy_schemas(std::move(schemas), std::move(may_drop)));
  return DeployedSchemas{reply.schema_version, std::move(reply.warnings)};
}

Result<std::vector<std::string>> Admin::schemas() {
  FJORD_TRY(core_->refresh());
  return core_->types()->schemas();
}

}  // namespace fjord
