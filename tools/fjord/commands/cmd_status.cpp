#include <fmt/format.h>

#include "commands/commands.h"
#include "fjord/client/connect.h"
#include "fjord/library/detail/cluster_health.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

constexpr const char* kWords[] = {"healthy", "degraded", "unavailable"};

std::string as_json(const rpc::GetStatusReply& status, const ClusterHealth& health) {
  JsonText json;
  json.begin_object().key("health").text(kWords[health.level]).key("reasons").begin_array();
  for (const std::string& reason : health.reasons) json.text(reason);
  json.end_array().key("state_version").number(status.info.state_version).key("state").text(status.info.state);
  json.key("schema_version").number(status.info.schema_version).key("distribution").text(status.info.distribution);
  json.key("buckets").begin_object().key("total").number(health.buckets).key("in_sync").number(health.buckets_in_sync);
  json.key("out_of_sync").number(health.buckets_out_of_sync).key("unavailable").number(health.buckets_unavailable);
  json.key("under_replicated").number(health.buckets_under_replicated);
  json.key("damaged")
      .number(health.buckets_damaged)
      .key("failing")
      .number(health.buckets_failing)
      .key("unplaced")
      .number(health.buckets_unplaced)
      .end_object()
      .key("nodes_without_space")
      .number(health.nodes_without_space)
      .key("document_copies")
      .number(health.document_copies)
      .key("bytes")
      .number(health.bytes);
  json.key("nodes").begin_array();
  for (const rpc::NodeStatus& node : status.nodes) {
    json.begin_object().key("node").text(node.node).key("address").text(node.address).key("state").text(node.state);
    json.key("reason")
        .text(node.reason)
        .key("slow")
        .text(node.slow)
        .key("state_version")
        .number(node.last.state_version);
    json.key("space_stage").number(node.last.space_stage).key("space").text(node.last.space);
    json.key("buckets").number(node.last.buckets).key("documents").number(node.last.documents);
    json.key("bytes").number(node.last.bytes).key("answered_us_ago").integer(node.answered_us_ago);
    json.key("maintenance_us").integer(node.maintenance_us);
    json.key("maintenance_left_us").integer(node.maintenance_left_us).end_object();
  }
  json.end_array().end_object();
  return json.str() + "\n";
}

std::string as_text(const rpc::GetStatusReply& status, const ClusterHealth& health) {
  std::string text = fmt::format("cluster {}: state version {}, schema version {}\n", kWords[health.level],
                                 status.info.state_version, status.info.schema_version);
  text += fmt::format("buckets {}: {} in sync, {} out of sync, {} unavailable, {} damaged\n", health.buckets,
                      health.buckets_in_sync, health.buckets_out_of_sync, health.buckets_unavailable,
                      health.buckets_damaged);
  text += fmt::format("\n{:<16} {:<22} {:<8} {:>8} {:>12} {:>14}\n", "NODE", "ADDRESS", "STATE", "BUCKETS", "DOCUMENTS",
                      "BYTES");
  for (const rpc::NodeStatus& node : status.nodes) {
    const bool stores = node.node.starts_with("storage.");
    text += fmt::format("{:<16} {:<22} {:<8} {:>8} {:>12} {:>14}  {}\n", node.node, node.address, node.state,
                        node.last.buckets, stores ? std::to_string(node.last.documents) : "-",
                        stores ? std::to_string(node.last.bytes) : "-",
                        node.reason.empty() && !node.slow.empty() ? "slow" : node.reason);
  }
  for (const std::string& reason : health.reasons) text += "! " + reason + "\n";
  return text;
}

}  // namespace

int run_status(const Common& common) {
  constexpr int kExitCodesOfLevels[] = {kOk, kPartial, kFailed};
  auto connection = connect_to(common);
  if (!connection) return report(connection.error());
  const auto status = (*connection)->sync().status();
  if (!status) return report(status.error());
  const ClusterHealth health = health_of(*status);
  print(common.json() ? as_json(*status, health) : as_text(*status, health));
  return kExitCodesOfLevels[health.level];
}

}  // namespace fjord::cli
