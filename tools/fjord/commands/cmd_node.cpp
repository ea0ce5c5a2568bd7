#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "output/json_text.h"
#include "output/text_table.h"

namespace fjord::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

void add_list(JsonText& json, const char* name, const std::vector<std::string>& list) {
  json.key(name).begin_array();
  for (const std::string& text : list) json.text(text);
  json.end_array();
}

std::string as_json(const NodePlan& plan, bool dry_run) {
  JsonText json;
  json.begin_object().key("done").boolean(plan.refusals.empty() && !dry_run);
  add_list(json, "nodes", plan.nodes);
  add_list(json, "refusals", plan.refusals);
  add_list(json, "warnings", plan.warnings);
  json.key("state_version").number(plan.state_version).key("plan").begin_object();
  json.key("buckets_total").number(plan.buckets_total).key("buckets_moved").number(plan.buckets_moved);
  json.key("replicas_moved").number(plan.replicas_moved).key("bytes").number(plan.bytes_moved);
  json.key("duration_s").number(plan.duration_seconds).end_object().end_object();
  return json.str() + "\n";
}

std::string plan_text(const NodePlan& plan) {
  std::string text = fmt::format("moves {} replicas of {} of {} buckets, about {:.1f} MiB, about {} s\n",
                                 plan.replicas_moved, plan.buckets_moved, plan.buckets_total,
                                 static_cast<double>(plan.bytes_moved) / (1 << 20), plan.duration_seconds);
  for (const std::string& note : plan.notes) text += "  " + note + "\n";
  return text;
}

std::string left_text(const NodeChangeProgress& left) {
  std::string text = to_string(left);
  if (left.left > Duration(0)) {
    text += fmt::format(", {:.0f} %, about {:.0f} s left", left.fraction_done * 100,
                        std::chrono::duration<double>(left.left).count());
  }
  return text;
}

/// Waits until the change is in force and no bucket is left to move. Shows progress on standard error.
int wait_for(Admin& admin, const NodeArgs& args, const NodeChange& change, const NodePlan& plan) {
  constexpr auto kShowInterval = std::chrono::seconds(2);
  auto shown_at = SteadyClock::now();
  const Duration timeout(static_cast<std::int64_t>(args.wait_s * 1e6));
  const Status done = admin.wait_for(change, plan, timeout, [&](const NodeChangeProgress& left) {
    if (SteadyClock::now() - shown_at < kShowInterval) return;
    complain(left_text(left));
    shown_at = SteadyClock::now();
  });
  return done ? static_cast<int>(kOk) : report(done);
}

std::string list_text(const ClusterStatus& status) {
  std::vector<std::vector<std::string>> rows;
  for (const NodeInfo& node : status.nodes) {
    std::string notes = node.wanted;
    const auto note = [&](const std::string& more) { notes += (notes.empty() || more.empty() ? "" : "; ") + more; };
    note(node.reason);
    note(node.slow.empty() ? "" : "slow: " + node.slow);
    note(node.space.empty() ? "" : "disk: " + node.space);
    rows.push_back({node.name, node.address, node.state, node.group, node.capacity, std::to_string(node.buckets),
                    std::to_string(node.documents), std::to_string(node.bytes), notes});
  }
  return table_text({{"NODE"},
                     {"ADDRESS"},
                     {"STATE"},
                     {.heading = "GROUP", .may_be_absent = true},
                     {.heading = "CAPACITY", .is_right = true, .may_be_absent = true},
                     {"BUCKETS", true},
                     {"DOCUMENTS", true},
                     {"BYTES", true},
                     {"WANTED"}},
                    std::move(rows));
}

std::string list_json(const ClusterStatus& status) {
  JsonText json;
  json.begin_array();
  for (const NodeInfo& node : status.nodes) {
    json.begin_object().key("node").text(node.name).key("address").text(node.address).key("state").text(node.state);
    json.key("group").text(node.group).key("capacity").text(node.capacity).key("wanted").text(node.wanted);
    json.key("reason").text(node.reason).key("slow").text(node.slow).key("space").text(node.space);
    json.key("space_stage").number(node.space_stage).key("buckets").number(node.buckets);
    json.key("documents").number(node.documents).key("bytes").number(node.bytes);
    json.key("config_version").number(node.config_version).end_object();
  }
  json.end_array();
  return json.str() + "\n";
}

int change(Admin& admin, const NodeArgs& args) {
  const NodeChange change{.action = args.action,
                          .nodes = args.nodes,
                          .address = args.address,
                          .group = args.group,
                          .capacity = args.capacity,
                          .balance_to = args.balance_to,
                          .reason = args.reason,
                          .dry_run = args.dry_run,
                          .force = args.force};
  const auto plan = admin.change_nodes(change);
  if (!plan) return report(plan.error());
  for (const std::string& warning : plan->warnings) complain("warning: " + warning);
  if (args.common.json()) {
    print(as_json(*plan, args.dry_run));
  } else if (!plan->refusals.empty()) {
    for (const std::string& refusal : plan->refusals) print_line("no: " + refusal);
  } else if (args.action == NodeAction::StopCheck) {
    print_line("yes: nothing is lost or unavailable without " + fmt::format("{}", fmt::join(plan->nodes, ", ")));
  } else {
    print_line(fmt::format("{}{}", args.dry_run ? "would change " : "", fmt::join(plan->nodes, ", ")));
    print(plan_text(*plan));
  }
  if (!plan->refusals.empty()) return kRefused;
  return plan->done && args.wait_s > 0 ? wait_for(admin, args, change, *plan) : static_cast<int>(kOk);
}

}  // namespace

int run_node(const NodeArgs& args) {
  return with_admin(args.common, [&](Admin admin) { return change(admin, args); });
}

int run_node_list(const Common& common) {
  return with_admin(common, [&](Admin admin) {
    const auto status = admin.status();
    if (!status) return report(status.error());
    print(common.json() ? list_json(*status) : list_text(*status));
    for (const std::string& note : status->notes) complain(note);
    return static_cast<int>(kOk);
  });
}

}  // namespace fjord::cli
