#include "fjord/library/admin.h"

#include <fmt/format.h>

#include "fjord/library/detail/admin_calls.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/library/detail/cluster_health.h"

namespace fjord {

namespace {

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
  info.buckets = node.last.buckets;
  info.documents = node.last.documents;
  info.bytes = node.last.bytes;
  info.state_version = node.last.state_version;
  info.answered_ago = Duration(node.answered_us_ago);
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
  }
  return rpc::NodeAction::Unknown;
}

ReplicaInfo replica_of(const rpc::BucketReplica& replica) {
  ReplicaInfo info;
  info.node = fmt::format("storage.{}", replica.node);
  info.is_member = replica.role == rpc::ReplicaRole::Member;
  info.is_damaged = replica.damaged;
  info.status = replica.status;
  info.documents = replica.info.documents;
  info.entries = replica.info.entries;
  info.bytes = replica.info.bytes;
  info.checksum = replica.info.checksum;
  if (replica.status && replica.document) info.document_version_us = replica.timestamp_us;
  return info;
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
  status.state_version = reply.info.state_version;
  status.schema_version = reply.info.schema_version;
  status.config_version = reply.info.config_version;
  status.state = reply.info.state;
  status.distribution = reply.info.distribution;
  status.buckets = health.buckets;
  status.buckets_out_of_sync = health.buckets_out_of_sync;
  status.buckets_unavailable = health.buckets_unavailable;
  status.buckets_damaged = health.buckets_damaged;
  status.buckets_under_replicated = health.buckets_under_replicated;
  status.document_replicas = health.document_copies;
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
  return plan;
}

Result<std::vector<HistoryEntry>> Admin::history(std::uint32_t max) {
  FJORD_TRY(core_->wait_ready());
  FJORD_TRY_ASSIGN(const rpc::GetHistoryReply reply,
                   ask_cluster(core_->connection(), rpc::GetHistory{.max = max}, core_->timeout({})));
  std::vector<HistoryEntry> entries;
  for (const rpc::StateChange& change : reply.changes) {
    entries.push_back({change.version, change.unix_us, change.what, change.why, change.who});
  }
  return entries;
}

Result<std::vector<SettingInfo>> Admin::settings() {
  FJORD_TRY(core_->wait_ready());
  FJORD_TRY_ASSIGN(const rpc::GetConfigReply reply,
                   ask_cluster(core_->connection(), rpc::GetConfig{}, core_->timeout({})));
  std::vector<SettingInfo> infos;
  for (const rpc::Setting& setting : reply.settings) {
    const std::string& value = setting.in_force.empty() ? setting.value : setting.in_force;
    infos.push_back({setting.name, setting.type, setting.default_value, setting.min, setting.max, value, setting.source,
                     setting.used_by, setting.meaning});
  }
  return infos;
}

Result<std::vector<std::string>> Admin::set(const std::map<std::string, std::string>& values, bool dry_run) {
  FJORD_TRY(core_->wait_ready());
  constexpr int kAttemptsMax = 10;
  rpc::ChangeConfig request;
  for (const auto& [name, value] : values) {
    if (value.empty()) {
      request.unset.push_back(name);
    } else {
      request.set.push_back(name + "=" + value);
    }
  }
  request.who = who_am_i();
  request.dry_run = dry_run;
  request.if_version = true;
  for (int attempt = 1;; ++attempt) {
    FJORD_TRY_ASSIGN(const rpc::GetConfigReply seen,
                     ask_cluster(core_->connection(), rpc::GetConfig{}, core_->timeout({})));
    request.version = seen.config_version;
    auto reply = ask_cluster(core_->connection(), request, core_->timeout({}));
    if (reply) return std::move(reply->changes);
    if (reply.error().code() != StatusCode::TestAndSetFailed || attempt == kAttemptsMax) return reply.error();
  }
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

Result<std::vector<BucketReplicas>> Admin::bucket_of(const std::string& document_id) {
  FJORD_TRY(core_->wait_ready());
  FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse(document_id));
  rpc::ShowBucket request;
  request.id = id.str();
  FJORD_TRY_ASSIGN(const rpc::ShowBucketReply reply, show_bucket(core_->connection(), request, core_->timeout({})));
  std::vector<BucketReplicas> buckets;
  for (const rpc::BucketView& view : reply.buckets) {
    BucketReplicas& bucket = buckets.emplace_back();
    bucket.bucket = fmt::format("{:#x}", view.bucket.raw());
    bucket.distributor = fmt::format("distributor.{}", reply.distributor);
    bucket.is_in_sync = view.trouble == rpc::BucketTroubleKind::Unknown;
    bucket.reason = view.reason;
    for (const rpc::BucketReplica& replica : view.replicas) bucket.replicas.push_back(replica_of(replica));
  }
  return buckets;
}

}  // namespace fjord
