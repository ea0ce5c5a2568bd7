// /cluster/v1/balancer: loads, plans and steps of the balancer.

#include <charconv>
#include <fmt/format.h>
#include <list>
#include <utility>

#include "fjord/library/admin.h"
#include "http/json_shape.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

std::string bucket_text(std::uint64_t bucket) { return fmt::format("0x{:x}", bucket); }

Result<std::uint64_t> bucket_of(std::size_t move, const std::string& text) {
  std::uint64_t bucket = 0;
  const char* last = text.data() + text.size();
  if (text.starts_with("0x")) {
    const auto [end, error] = std::from_chars(text.data() + 2, last, bucket, 16);
    if (error == std::errc() && end == last) return bucket;
  }
  return Status(StatusCode::InvalidArgument,
                fmt::format("the body: \"moves.{}.bucket\": expected a bucket as in a plan, 0x1f", move));
}

std::string_view unit_text(LoadUnit unit) {
  return unit == LoadUnit::ProcessorShare ? "processor_share" : "operations_per_second";
}

/// 0 stands for a number that is not known.
void write_known(std::string_view name, double number, JsonText& json) {
  if (number == 0) {
    json.key(name).null();
  } else {
    json.member(name, number);
  }
}

void write_moves(const std::vector<BucketMove>& moves, JsonText& json) {
  json.key("moves").begin_array();
  for (const BucketMove& move : moves) {
    json.begin_object().member("bucket", bucket_text(move.bucket)).member("from", move.from).member("to", move.to);
    json.member("bytes", move.bytes).member("load", move.load).member("reason", move.reason);
    json.member("read_part", move.read_part).end_object();
  }
  json.end_array();
}

void write_plan(const BalancePlan& plan, JsonText& json) {
  json.begin_object().member("state_version", plan.state_version).member("algorithm", plan.algorithm);
  write_moves(plan.moves, json);
  json.member("bytes", plan.bytes).seconds("duration_seconds", plan.duration);
  json.member("imbalance_before", plan.imbalance_before).member("imbalance_after", plan.imbalance_after);
  json.member("rows", plan.rows).member("notes", plan.notes).member("refusals", plan.refusals).end_object();
}

Status balancer_status(Client& client, JsonText& json) {
  FJORD_TRY_ASSIGN(const BalanceStatus status, client.admin().balancing().status(1));
  json.begin_object().member("mode", status.mode).member("algorithm", status.algorithm);
  json.member("unit", unit_text(status.unit));
  write_known("imbalance", status.imbalance, json);
  json.member("doing", status.doing).member("waits_for", status.waits_for);
  json.member("state_version", status.state_version).member("distribution_bits", status.distribution_bits);
  json.member("rows", status.rows).member("rows_max", status.rows_max).member("round", status.round);
  json.seconds("round_seconds", status.round_time).known_seconds("round_age_seconds", status.round_age);
  json.seconds("moves_seconds_left", status.moves_left).key("nodes").begin_array();
  for (const NodeLoad& node : status.nodes) {
    json.begin_object().member("node", node.node).member("load", node.load);
    write_known("over_mean", node.over_mean, json);
    json.member("reads_per_s", node.reads_per_s).member("writes_per_s", node.writes_per_s);
    json.member("bytes", node.bytes).member("note", node.note).end_object();
  }
  json.end_array().end_object();
  return Status::ok();
}

Status list_slices(Client& client, const ApiCall& call, JsonText& json) {
  constexpr std::uint64_t kSlicesMax = 100'000;
  FJORD_TRY_ASSIGN(const std::uint64_t max, call.count("max", 100, 0, kSlicesMax));
  FJORD_TRY_ASSIGN(const BalanceStatus status, client.admin().balancing().status(static_cast<std::uint32_t>(max)));
  json.begin_object().member("unit", unit_text(status.unit)).key("slices").begin_array();
  for (const BucketLoadInfo& slice : status.buckets) {
    json.begin_object().member("bucket", bucket_text(slice.bucket)).member("load", slice.load);
    json.member("reads_per_s", slice.reads_per_s).member("writes_per_s", slice.writes_per_s);
    json.member("bytes", slice.bytes).member("nodes", slice.nodes).member("why_not", slice.why_not).end_object();
  }
  json.end_array().end_object();
  return Status::ok();
}

Status balancer_plan(Client& client, const ApiCall& call, JsonText& json) {
  FJORD_TRY_ASSIGN(const BalancePlan plan, client.admin().balancing().plan(call.text("algorithm")));
  write_plan(plan, json);
  return Status::ok();
}

/// A move of a plan as it is sent back. What explains it is read and has no effect.
struct MoveBody {
  BucketMove move;
  std::string bucket;
  std::uint64_t bytes = 0;
};

JsonShape shape_of(MoveBody& body) {
  JsonShape shape;
  shape.text("bucket", body.bucket).text("from", body.move.from).text("to", body.move.to);
  shape.number("read_part", body.move.read_part).count("bytes", body.bytes).number("load", body.move.load);
  shape.text("reason", body.move.reason);
  return shape.required("bucket").required("from").required("to");
}

Status apply_plan(Client& client, const std::string& body, JsonText& json) {
  BalancePlan plan;
  std::list<MoveBody> moves;  // A list, so that its members keep their addresses while they are read.
  std::string reason;
  FJORD_TRY(read_json(body, JsonShape()
                                .count("state_version", plan.state_version)
                                .objects("moves", [&moves] { return shape_of(moves.emplace_back()); })
                                .text("reason", reason)
                                .required("state_version")
                                .required("moves")));
  if (moves.empty()) return {StatusCode::InvalidArgument, "the body: \"moves\": expected at least one move"};
  for (MoveBody& one : moves) {
    FJORD_TRY_ASSIGN(one.move.bucket, bucket_of(plan.moves.size(), one.bucket));
    if (!(one.move.read_part >= 0 && one.move.read_part <= 1)) {
      return {StatusCode::InvalidArgument,
              fmt::format("the body: \"moves.{}.read_part\": expected 0 to 1", plan.moves.size())};
    }
    plan.moves.push_back(std::move(one.move));
  }
  FJORD_TRY_ASSIGN(const std::vector<std::string> refusals, client.admin().balancing().apply(plan, reason));
  json.begin_object().member("done", refusals.empty()).member("refusals", refusals).end_object();
  return Status::ok();
}

Status balancer_history(Client& client, JsonText& json) {
  FJORD_TRY_ASSIGN(const std::vector<BalanceStepInfo> steps, client.admin().balancing().history());
  json.begin_object().key("steps").begin_array();
  for (const BalanceStepInfo& step : steps) {
    json.begin_object().member("step", step.step).member("kind", step.kind).member("unix_us", step.unix_us);
    json.member("state_version", step.state_version);
    write_moves(step.moves, json);
    json.member("bytes", step.bytes).member("rows_removed", step.rows_removed).member("rows_added", step.rows_added);
    write_known("imbalance_before", step.imbalance_before, json);
    write_known("imbalance_after", step.imbalance_after, json);
    json.member("who", step.who).member("why", step.why).member("reverts", step.reverts).end_object();
  }
  json.end_array().end_object();
  return Status::ok();
}

Status revert_step(Client& client, const std::string& body, JsonText& json) {
  std::uint64_t step = 0;
  bool dry_run = true;
  std::string reason;
  FJORD_TRY(read_json(
      body, JsonShape().count("step", step).flag("dry_run", dry_run).text("reason", reason).required("step")));
  FJORD_TRY_ASSIGN(const BalancePlan plan, client.admin().balancing().revert(step, dry_run, reason));
  write_plan(plan, json);
  return Status::ok();
}

}  // namespace

void add_balancer_routes(RouteTable& routes, Client& client) {
  const std::string path = "/cluster/v1/balancer/";
  routes.add_waiting("GET", path + "status", {},
                     [&client](const ApiCall&, JsonText& json) { return balancer_status(client, json); });
  routes.add_waiting("GET", path + "slices", {"max"},
                     [&client](const ApiCall& call, JsonText& json) { return list_slices(client, call, json); });
  routes.add_waiting("GET", path + "plan", {"algorithm"},
                     [&client](const ApiCall& call, JsonText& json) { return balancer_plan(client, call, json); });
  routes.add_waiting("POST", path + "apply", {}, [&client](const ApiCall& call, JsonText& json) {
    return apply_plan(client, call.request.body, json);
  });
  routes.add_waiting("GET", path + "history", {},
                     [&client](const ApiCall&, JsonText& json) { return balancer_history(client, json); });
  routes.add_waiting("POST", path + "revert", {}, [&client](const ApiCall& call, JsonText& json) {
    return revert_step(client, call.request.body, json);
  });
}

}  // namespace fjord::gateway
