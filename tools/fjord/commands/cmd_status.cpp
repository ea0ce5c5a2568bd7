#include <fmt/format.h>

#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "output/json_text.h"
#include "output/text_table.h"

namespace fjord::cli {
namespace {

std::string as_json(const ClusterStatus& status) {
  JsonText json;
  json.begin_object().key("health").text(to_string(status.health)).key("reasons").begin_array();
  for (const std::string& reason : status.reasons) json.text(reason);
  json.end_array().key("notes").begin_array();
  for (const std::string& note : status.notes) json.text(note);
  json.end_array().key("state_version").number(status.state_version).key("state").text(status.state);
  json.key("schema_version").number(status.schema_version).key("distribution").text(status.distribution);
  json.key("buckets").begin_object().key("total").number(status.buckets).key("in_sync").number(status.buckets_in_sync);
  json.key("out_of_sync").number(status.buckets_out_of_sync).key("unavailable").number(status.buckets_unavailable);
  json.key("collecting").number(status.buckets_collecting);
  json.key("under_replicated").number(status.buckets_under_replicated);
  json.key("damaged").number(status.buckets_damaged).key("failing").number(status.buckets_failing);
  json.key("unplaced").number(status.buckets_unplaced).end_object();
  json.key("nodes_without_space").number(status.nodes_without_space);
  json.key("document_replicas").number(status.document_replicas).key("bytes").number(status.bytes);
  json.key("nodes").begin_array();
  for (const NodeInfo& node : status.nodes) {
    json.begin_object().key("node").text(node.name).key("address").text(node.address).key("state").text(node.state);
    json.key("reason").text(node.reason).key("slow").text(node.slow).key("state_version").number(node.state_version);
    json.key("space_stage").number(node.space_stage).key("space").text(node.space);
    json.key("buckets").number(node.buckets).key("documents").number(node.documents);
    json.key("bytes").number(node.bytes).key("answered_us_ago").integer(node.answered_ago.count());
    json.key("maintenance_us").integer(node.maintenance.count());
    json.key("maintenance_left_us").integer(node.maintenance_left.count()).end_object();
  }
  json.end_array().end_object();
  return json.str() + "\n";
}

/// Returns what the line of a node says behind its figures. The reasons below the table have the details.
std::string remark_on(const NodeInfo& node) {
  std::string remark = node.reason;
  if (remark.empty() && !node.slow.empty()) remark = "slow";
  if (!node.space.empty()) remark += (remark.empty() ? "" : "; ") + std::string("disk nearly full");
  return remark;
}

std::string as_text(const ClusterStatus& status) {
  std::string text = fmt::format("cluster {}: state version {}, schema version {}\n", to_string(status.health),
                                 status.state_version, status.schema_version);
  text +=
      fmt::format("buckets {}: {} in sync, {} out of sync{}, {} with too few replicas, {} unavailable, {} damaged\n",
                  status.buckets, status.buckets_in_sync, status.buckets_out_of_sync,
                  status.buckets_collecting == 0 ? "" : fmt::format(" ({} being collected)", status.buckets_collecting),
                  status.buckets_under_replicated, status.buckets_unavailable, status.buckets_damaged);
  std::vector<std::vector<std::string>> rows;
  for (const NodeInfo& node : status.nodes) {
    rows.push_back({node.name, node.address, node.state, std::to_string(node.buckets),
                    node.is_storage() ? std::to_string(node.documents) : "-",
                    node.is_storage() ? std::to_string(node.bytes) : "-", remark_on(node)});
  }
  text += "\n" +
          table_text({{"NODE"}, {"ADDRESS"}, {"STATE"}, {"BUCKETS", true}, {"DOCUMENTS", true}, {"BYTES", true}, {""}},
                     std::move(rows));
  for (const std::string& reason : status.reasons) text += "! " + reason + "\n";
  for (const std::string& note : status.notes) text += "  " + note + "\n";
  return text;
}

}  // namespace

int run_status(const Common& common) {
  return with_admin(common, [&](Admin admin) {
    const auto status = admin.status();
    if (!status) return report(status.error());
    print(common.json() ? as_json(*status) : as_text(*status));
    switch (status->health) {
      case Health::Healthy:
        return static_cast<int>(kOk);
      case Health::Degraded:
        return static_cast<int>(kPartial);
      case Health::Unavailable:
        break;
    }
    return static_cast<int>(kFailed);
  });
}

}  // namespace fjord::cli
