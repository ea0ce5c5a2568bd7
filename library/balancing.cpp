#include "fjord/library/balancing.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "files/feed_source.h"
#include "fjord/cluster/node.h"
#include "fjord/library/detail/admin_calls.h"

namespace fjord {
namespace {

std::string name_of(std::uint16_t node) { return NodeId::storage(node).to_string(); }

double ratio(std::uint32_t permille) { return permille / 1000.0; }

LoadUnit unit_of(const std::string& unit) {
  return unit == "operations" ? LoadUnit::OperationsPerSecond : LoadUnit::ProcessorShare;
}

double load_of(std::uint64_t load, LoadUnit unit) {
  return static_cast<double>(load) / (unit == LoadUnit::OperationsPerSecond ? 1e3 : 1e9);
}

BucketMove move_of(const rpc::BalanceMove& move, LoadUnit unit) {
  return {move.bucket, name_of(move.source),       name_of(move.target), move.bytes, load_of(move.load, unit),
          move.reason, move.read_permille / 1000.0};
}

BalancePlan plan_of(const rpc::BalanceReply& reply) {
  BalancePlan plan;
  plan.state_version = reply.plan.state_version;
  plan.algorithm = reply.plan.algorithm;
  for (const rpc::BalanceMove& move : reply.plan.moves) plan.moves.push_back(move_of(move, unit_of(reply.unit)));
  plan.bytes = reply.plan.bytes;
  plan.duration = seconds(reply.plan.duration_s);
  plan.imbalance_before = ratio(reply.plan.imbalance_before);
  plan.imbalance_after = ratio(reply.plan.imbalance_after);
  plan.rows = reply.plan.rows;
  plan.notes = reply.plan.notes;
  plan.refusals = reply.refusals;
  plan.is_initial = reply.plan.is_initial;
  return plan;
}

/// Adds up the bytes of the puts of a feed by the first 16 bits of their buckets.
Result<std::vector<rpc::SampledBucket>> read_sample(ClientCore& core, const std::string& path) {
  constexpr unsigned kBits = 16;
  FJORD_TRY_ASSIGN(std::unique_ptr<InputFile> file, InputFile::open(path));
  FeedSource feed(std::move(file), core.types(), JsonValues::Exact);
  std::map<std::uint64_t, std::uint64_t> bytes;
  while (true) {
    const Result<std::optional<FileRecord>> next = feed.next();
    if (!next) return next.error().with_context(feed.name());
    const std::optional<FileRecord>& record = *next;
    if (!record) break;
    const auto operation = feed.parse(*record);
    if (!operation) {
      return operation.error().with_context(fmt::format("{}:{}", feed.name(), record->line));
    }
    if (operation->kind != rpc::OperationKind::Put) continue;
    FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse(operation->id));
    bytes[id.bucket(kBits).bits()] += operation->header.size() + operation->body.size();
  }
  if (bytes.empty()) return Status(StatusCode::InvalidArgument, feed.name() + ": expected puts, found none");
  std::vector<rpc::SampledBucket> sample;
  for (const auto& [bucket, sum] : bytes) sample.push_back({.bucket = bucket, .bytes = sum});
  return sample;
}

Result<rpc::BalanceReply> ask(ClientCore& core, rpc::Balance request) {
  FJORD_TRY(core.wait_ready());
  request.who = who_am_i();
  return ask_cluster(core.connection(), request, core.timeout({}));
}

}  // namespace

Result<BalanceStatus> Balancing::status(std::uint32_t buckets) {
  rpc::Balance request;
  request.action = buckets == 0 ? rpc::BalanceAction::Slices : rpc::BalanceAction::Status;
  request.max = buckets;
  FJORD_TRY_ASSIGN(const rpc::BalanceReply reply, ask(*core_, request));
  BalanceStatus status;
  status.mode = reply.mode;
  status.algorithm = reply.algorithm;
  status.unit = unit_of(reply.unit);
  status.imbalance = ratio(reply.imbalance);
  status.doing = reply.doing;
  status.waits_for = reply.waits_for;
  status.state_version = reply.state_version;
  status.distribution_bits = reply.bits;
  status.rows = reply.rows;
  status.rows_max = reply.rows_max;
  status.round = reply.round;
  status.round_time = Duration(reply.round_us);
  status.round_age = Duration(reply.round_age_us);
  status.moves_left = seconds(reply.seconds_left);
  for (const rpc::BalanceNode& node : reply.nodes) {
    status.nodes.push_back({name_of(node.node), load_of(node.load, status.unit), ratio(node.over_mean), node.reads,
                            node.writes, node.bytes, node.note});
  }
  for (const rpc::BalanceSlice& slice : reply.slices) {
    BucketLoadInfo bucket{slice.bucket, load_of(slice.load, status.unit), slice.reads, slice.writes, slice.bytes, {},
                          slice.why_not};
    for (const std::uint16_t node : slice.nodes) bucket.nodes.push_back(name_of(node));
    status.buckets.push_back(std::move(bucket));
  }
  return status;
}

Result<BalancePlan> Balancing::plan(const std::string& algorithm) {
  rpc::Balance request;
  request.action = rpc::BalanceAction::Plan;
  request.algorithm = algorithm;
  FJORD_TRY_ASSIGN(const rpc::BalanceReply reply, ask(*core_, request));
  return plan_of(reply);
}

Result<BalancePlan> Balancing::plan_initial(const std::string& feed_file, const std::string& algorithm) {
  FJORD_TRY(core_->wait_ready());
  rpc::Balance request;
  request.action = rpc::BalanceAction::Plan;
  request.algorithm = algorithm;
  FJORD_TRY_ASSIGN(request.sample, read_sample(*core_, feed_file));
  FJORD_TRY_ASSIGN(const rpc::BalanceReply reply, ask(*core_, request));
  return plan_of(reply);
}

Result<std::vector<std::string>> Balancing::apply(const BalancePlan& plan, const std::string& reason) {
  rpc::Balance request;
  request.action = rpc::BalanceAction::Apply;
  request.state_version = plan.state_version;
  request.reason = reason;
  request.is_initial = plan.is_initial;
  for (const BucketMove& move : plan.moves) {
    FJORD_TRY_ASSIGN(const NodeId from, NodeId::parse(move.from));
    FJORD_TRY_ASSIGN(const NodeId to, NodeId::parse(move.to));
    rpc::BalanceMove wire;
    wire.bucket = move.bucket;
    wire.source = from.index;
    wire.target = to.index;
    wire.read_permille = static_cast<std::uint32_t>(std::lround(std::clamp(move.read_part, 0.0, 1.0) * 1000));
    request.moves.push_back(wire);
  }
  FJORD_TRY_ASSIGN(rpc::BalanceReply reply, ask(*core_, request));
  return std::move(reply.refusals);
}

Result<std::vector<BalanceStepInfo>> Balancing::history() {
  rpc::Balance request;
  request.action = rpc::BalanceAction::History;
  FJORD_TRY_ASSIGN(const rpc::BalanceReply reply, ask(*core_, request));
  std::vector<BalanceStepInfo> steps;
  for (const rpc::BalanceStep& step : reply.steps) {
    BalanceStepInfo info;
    info.step = step.step;
    info.kind = step.kind;
    info.unix_us = step.unix_us;
    info.state_version = step.state_version;
    for (const rpc::BalanceMove& move : step.moves) info.moves.push_back(move_of(move, unit_of(reply.unit)));
    info.bytes = step.bytes;
    info.rows_removed = static_cast<std::uint32_t>(step.removed.size());
    info.rows_added = static_cast<std::uint32_t>(step.added.size());
    info.imbalance_before = ratio(step.imbalance_before);
    info.imbalance_after = ratio(step.imbalance_after);
    info.who = step.who;
    info.why = step.why;
    info.reverts = step.reverts;
    steps.push_back(std::move(info));
  }
  return steps;
}

Result<BalancePlan> Balancing::revert(std::uint64_t step, bool dry_run, const std::string& reason) {
  rpc::Balance request;
  request.action = rpc::BalanceAction::Revert;
  request.step = step;
  request.dry_run = dry_run;
  request.reason = reason;
  FJORD_TRY_ASSIGN(const rpc::BalanceReply reply, ask(*core_, request));
  return plan_of(reply);
}

}  // namespace fjord
