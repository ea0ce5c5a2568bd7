#include <atomic>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <thread>

#include "commands/balance_trace.h"
#include "commands/commands.h"
#include "commands/end_signal.h"
#include "fjord/balancer/algorithm.h"
#include "fjord/balancer/simulator.h"
#include "fjord/library/admin.h"
#include "output/json_text.h"
#include "output/time_text.h"

namespace fjord::cli {
namespace {

std::string load_text(double load, LoadUnit unit) {
  return unit == LoadUnit::ProcessorShare ? fmt::format("{:.2f} %", load * 100) : fmt::format("{:.1f}/s", load);
}

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

void add_list(JsonText& json, const char* name, const std::vector<std::string>& list) {
  json.key(name).begin_array();
  for (const std::string& text : list) json.text(text);
  json.end_array();
}

void add_moves(JsonText& json, const std::vector<BucketMove>& moves) {
  json.key("moves").begin_array();
  for (const BucketMove& move : moves) {
    json.begin_object().key("bucket").number(move.bucket).key("from").text(move.from).key("to").text(move.to);
    json.key("read_part").real(move.read_part, 3);
    json.key("bytes").number(move.bytes).key("load").real(move.load, 6).key("reason").text(move.reason).end_object();
  }
  json.end_array();
}

std::string plan_json(const BalancePlan& plan, bool done) {
  JsonText json;
  json.begin_object().key("done").boolean(done).key("state_version").number(plan.state_version);
  json.key("algorithm").text(plan.algorithm);
  add_moves(json, plan.moves);
  json.key("bytes").number(plan.bytes).key("duration_s").real(in_seconds(plan.duration), 0);
  json.key("imbalance_before").real(plan.imbalance_before, 3).key("imbalance_after").real(plan.imbalance_after, 3);
  json.key("rows").number(plan.rows);
  add_list(json, "notes", plan.notes);
  add_list(json, "refusals", plan.refusals);
  json.end_object();
  return json.str() + "\n";
}

std::string plan_text(const BalancePlan& plan) {
  std::string text;
  for (const BucketMove& move : plan.moves) {
    const std::string what = move.read_part > 0 ? fmt::format("{:.1f} % of its reads", move.read_part * 100)
                                                : fmt::format("{:.1f} MiB", mib(move.bytes));
    text += fmt::format("bucket {:>6x}  {} -> {}  {}{}\n", move.bucket, move.from, move.to, what,
                        move.reason.empty() ? "" : "  " + move.reason);
  }
  text +=
      fmt::format("{} moves, {:.1f} MiB, about {:.0f} s; imbalance {:.2f}, then {:.2f}; {} rows; on cluster state {}\n",
                  plan.moves.size(), mib(plan.bytes), in_seconds(plan.duration), plan.imbalance_before,
                  plan.imbalance_after, plan.rows, plan.state_version);
  for (const std::string& note : plan.notes) text += "  left out: " + note + "\n";
  return text;
}

/// Prints a plan or the refusals. Returns the exit code.
int show(const BalanceArgs& args, const BalancePlan& plan, bool done) {
  if (args.common.json()) {
    print(plan_json(plan, done));
  } else if (!plan.refusals.empty()) {
    for (const std::string& refusal : plan.refusals) print_line("no: " + refusal);
  } else {
    print(plan_text(plan));
  }
  return plan.refusals.empty() ? kOk : kRefused;
}

std::string why_text(const BucketLoadInfo& bucket) { return bucket.why_not.empty() ? "about to move" : bucket.why_not; }

std::string buckets_text(const BalanceStatus& status) {
  std::string text = fmt::format("{:>8} {:>10} {:>10} {:>10} {:>10}  {:<24} {}\n", "BUCKET", "LOAD", "READS/S",
                                 "WRITES/S", "MIB", "NODES", "MOVES");
  for (const BucketLoadInfo& bucket : status.buckets) {
    text += fmt::format("{:>8} {:>10} {:>10} {:>10} {:>10.1f}  {:<24} {}\n", fmt::format("{:#x}", bucket.bucket),
                        load_text(bucket.load, status.unit), bucket.reads_per_s, bucket.writes_per_s, mib(bucket.bytes),
                        fmt::format("{}", fmt::join(bucket.nodes, " ")), why_text(bucket));
  }
  return text;
}

std::string status_text(const BalanceStatus& status) {
  std::string text = fmt::format("mode {}, algorithm {}, {}\n", status.mode, status.algorithm, status.doing);
  for (const std::string& reason : status.waits_for) text += "  waits: " + reason + "\n";
  if (status.round_age >= Duration(0)) {
    text += fmt::format("imbalance {}, round {} ended {:.0f} s ago, cluster state {}, {} of {} rows\n",
                        status.imbalance == 0 ? "not known" : fmt::format("{:.2f}", status.imbalance), status.round,
                        in_seconds(status.round_age), status.state_version, status.rows, status.rows_max);
  }
  if (status.moves_left > Duration(0)) {
    text += fmt::format("buckets are being moved, about {:.0f} s left\n", in_seconds(status.moves_left));
  }
  text += fmt::format("\n{:<12} {:>10} {:>8} {:>10} {:>10} {:>10}  {}\n", "NODE", "LOAD", "OF MEAN", "READS/S",
                      "WRITES/S", "MIB", "");
  for (const NodeLoad& node : status.nodes) {
    text +=
        fmt::format("{:<12} {:>10} {:>8} {:>10} {:>10} {:>10.1f}  {}\n", node.node, load_text(node.load, status.unit),
                    node.over_mean == 0 ? "-" : fmt::format("{:.2f}", node.over_mean), node.reads_per_s,
                    node.writes_per_s, mib(node.bytes), node.note);
  }
  return text + "\n" + buckets_text(status);
}

void add_buckets_json(JsonText& json, const BalanceStatus& status) {
  json.key("buckets").begin_array();
  for (const BucketLoadInfo& bucket : status.buckets) {
    json.begin_object().key("bucket").number(bucket.bucket).key("load").real(bucket.load, 6);
    json.key("reads_per_s").number(bucket.reads_per_s).key("writes_per_s").number(bucket.writes_per_s);
    json.key("bytes").number(bucket.bytes);
    add_list(json, "nodes", bucket.nodes);
    json.key("why_not").text(bucket.why_not).end_object();
  }
  json.end_array();
}

std::string status_json(const BalanceStatus& status) {
  JsonText json;
  json.begin_object().key("mode").text(status.mode).key("algorithm").text(status.algorithm);
  json.key("unit").text(status.unit == LoadUnit::ProcessorShare ? "time" : "operations");
  json.key("imbalance").real(status.imbalance, 3).key("doing").text(status.doing);
  add_list(json, "waits_for", status.waits_for);
  json.key("state_version").number(status.state_version).key("round").number(status.round);
  json.key("round_age_s").real(in_seconds(status.round_age), 1).key("rows").number(status.rows);
  json.key("rows_max").number(status.rows_max).key("seconds_left").real(in_seconds(status.moves_left), 0);
  json.key("nodes").begin_array();
  for (const NodeLoad& node : status.nodes) {
    json.begin_object().key("node").text(node.node).key("load").real(node.load, 6);
    json.key("over_mean").real(node.over_mean, 3).key("reads_per_s").number(node.reads_per_s);
    json.key("writes_per_s").number(node.writes_per_s).key("bytes").number(node.bytes);
    json.key("note").text(node.note).end_object();
  }
  json.end_array();
  add_buckets_json(json, status);
  json.end_object();
  return json.str() + "\n";
}

std::string steps_text(const std::vector<BalanceStepInfo>& steps) {
  std::string text = fmt::format("{:>6}  {:<20} {:<7} {:>6} {:>10} {:>7} {:>7} {:>8}  {}\n", "STEP", "TIME", "KIND",
                                 "MOVES", "MIB", "BEFORE", "AFTER", "STATE", "WHO, WHY");
  const auto ratio = [](double value) { return value == 0 ? std::string("-") : fmt::format("{:.2f}", value); };
  for (const BalanceStepInfo& step : steps) {
    const std::string kind = step.reverts == 0 ? step.kind : fmt::format("{} {}", step.kind, step.reverts);
    text += fmt::format("{:>6}  {:<20} {:<7} {:>6} {:>10.1f} {:>7} {:>7} {:>8}  {}: {}\n", step.step,
                        time_text(step.unix_us), kind, step.moves.size(), mib(step.bytes), ratio(step.imbalance_before),
                        ratio(step.imbalance_after), step.state_version, step.who, step.why);
  }
  return text;
}

std::string steps_json(const std::vector<BalanceStepInfo>& steps) {
  JsonText json;
  json.begin_array();
  for (const BalanceStepInfo& step : steps) {
    json.begin_object().key("step").number(step.step).key("kind").text(step.kind).key("unix_us").integer(step.unix_us);
    json.key("state_version").number(step.state_version);
    add_moves(json, step.moves);
    json.key("bytes").number(step.bytes).key("rows_removed").number(step.rows_removed);
    json.key("rows_added").number(step.rows_added).key("imbalance_before").real(step.imbalance_before, 3);
    json.key("imbalance_after").real(step.imbalance_after, 3).key("who").text(step.who).key("why").text(step.why);
    json.key("reverts").number(step.reverts).end_object();
  }
  json.end_array();
  return json.str() + "\n";
}

Result<BalancePlan> plan_of(Balancing balancing, const BalanceArgs& args) {
  return args.sample.empty() ? balancing.plan(args.algorithm) : balancing.plan_initial(args.sample, args.algorithm);
}

int apply(Balancing balancing, const BalanceArgs& args) {
  auto plan = plan_of(balancing, args);
  if (!plan) return report(plan.error());
  if (!args.yes || !plan->refusals.empty() || plan->moves.empty()) {
    if (!args.yes && plan->refusals.empty()) complain("nothing is moved without --yes");
    return show(args, *plan, false);
  }
  auto refusals = balancing.apply(*plan, args.reason);
  if (!refusals) return report(refusals.error());
  plan->refusals = std::move(*refusals);
  return show(args, *plan, plan->refusals.empty());
}

/// Writes the loads of `args.rounds` rounds to a file, until a signal ends it.
int record(Balancing balancing, const BalanceArgs& args, const std::atomic<bool>& ended) {
  std::ofstream file(args.file, std::ios::trunc);
  if (!file) {
    complain(args.file + " cannot be written");
    return kFailed;
  }
  std::uint64_t last = 0;
  std::uint64_t written = 0;
  while (written < args.rounds && !ended) {
    const auto status = balancing.status(0);
    if (!status) return report(status.error());
    if (status->mode == "off") {
      complain("balancer.mode is off, so no loads are collected: fjord config set balancer.mode=advise");
      return kRefused;
    }
    if (status->round != last && !status->buckets.empty()) {
      if (written == 0) file << record_heading(*status);
      file << record_round(*status) << std::flush;
      last = status->round;
      ++written;
    }
    std::this_thread::sleep_for(std::min<Duration>(status->round_time / 4 + milliseconds(1), seconds(1)));
  }
  complain(fmt::format("{} rounds written to {}", written, args.file));
  return file ? kOk : kFailed;
}

struct SimulatedTrace {
  RecordedLoads recorded;
  balancer::SimulationOptions options;

  std::unique_ptr<balancer::Trace> make(const BalanceArgs& args) const {
    return args.file.empty() ? balancer::make_trace(args.trace, options.trace) : recorded_trace(recorded);
  }
};

Result<SimulatedTrace> trace_of(const BalanceArgs& args) {
  SimulatedTrace trace;
  trace.options.rounds = args.rounds;
  trace.options.warm_up = std::min<std::uint64_t>(trace.options.warm_up, args.rounds / 2);
  trace.options.trace.buckets = static_cast<std::uint32_t>(args.buckets);
  trace.options.trace.nodes = args.nodes;
  trace.options.trace.seed = args.seed;
  if (!args.file.empty()) {
    FJORD_TRY_ASSIGN(trace.recorded, read_record(args.file));
    trace.options.trace.buckets = trace.recorded.buckets;
    trace.options.trace.nodes = trace.recorded.nodes;
    trace.options.trace.operations = trace.recorded.operations();
  }
  return trace;
}

struct SimulatedRow {
  std::string name;
  balancer::SimulationResult result;
};

std::string rows_json(const std::vector<SimulatedRow>& rows) {
  JsonText json;
  json.begin_array();
  for (const SimulatedRow& row : rows) {
    const balancer::SimulationResult& result = row.result;
    json.begin_object().key("algorithm").text(row.name).key("mean").real(result.mean, 3).key("p50").real(result.p50, 3);
    json.key("p95").real(result.p95, 3).key("max").real(result.max, 3);
    json.key("rounds_to_balance");
    result.rounds_to_balance ? json.number(*result.rounds_to_balance) : json.raw("null");
    json.key("moves_per_round").real(result.moves_per_round, 2).key("bytes_part_mean").real(result.bytes_part_mean, 5);
    json.key("rows").number(result.rows).key("planning_max_us").integer(result.planning_max.count()).end_object();
  }
  json.end_array();
  return json.str() + "\n";
}

void print_rows(const std::vector<SimulatedRow>& rows) {
  print_line(fmt::format("{:<22} {:>6} {:>6} {:>6} {:>6} {:>9} {:>9} {:>8} {:>7} {:>9}", "algorithm", "mean", "p50",
                         "p95", "max", "balanced", "moves", "bytes %", "rows", "plan ms"));
  for (const SimulatedRow& row : rows) {
    const balancer::SimulationResult& result = row.result;
    print_line(fmt::format("{:<22} {:>6.3f} {:>6.3f} {:>6.3f} {:>6.3f} {:>9} {:>9.2f} {:>8.3f} {:>7} {:>9.1f}",
                           row.name, result.mean, result.p50, result.p95, result.max,
                           result.rounds_to_balance ? std::to_string(*result.rounds_to_balance) : "never",
                           result.moves_per_round, result.bytes_part_mean * 100, result.rows,
                           static_cast<double>(result.planning_max.count()) / 1000));
  }
}

int simulate_all(const BalanceArgs& args, const std::vector<const balancer::BalancingAlgorithm*>& algorithms) {
  const auto trace = trace_of(args);
  if (!trace) return report(trace.error());
  if (const std::uint64_t event = trace->make(args)->event_round(); args.rounds <= event) {
    complain(fmt::format("--rounds {}: the event of the trace {} is in round {}; expected more than {} rounds",
                         args.rounds, args.trace, event, event));
    return kUsage;
  }
  const SystemClock clock;
  std::vector<SimulatedRow> rows;
  for (const balancer::BalancingAlgorithm* algorithm : algorithms) {
    const auto loads = trace->make(args);
    rows.push_back({algorithm == nullptr ? std::string("none") : std::string(algorithm->name()),
                    balancer::simulate(algorithm, *loads, trace->options, clock)});
  }
  if (args.common.json()) {
    print(rows_json(rows));
  } else {
    print_rows(rows);
  }
  return kOk;
}

}  // namespace

int run_balance_status(const BalanceArgs& args) {
  return with_admin(args.common, [&](Admin admin) {
    const auto status = admin.balancing().status(static_cast<std::uint32_t>(args.lines));
    if (!status) return report(status.error());
    print(args.common.json() ? status_json(*status) : status_text(*status));
    return static_cast<int>(kOk);
  });
}

int run_balance_slices(const BalanceArgs& args) {
  return with_admin(args.common, [&](Admin admin) {
    const auto status = admin.balancing().status(static_cast<std::uint32_t>(args.limit));
    if (!status) return report(status.error());
    print(args.common.json() ? status_json(*status) : buckets_text(*status));
    return static_cast<int>(kOk);
  });
}

int run_balance_plan(const BalanceArgs& args) {
  return with_admin(args.common, [&](Admin admin) {
    const auto plan = plan_of(admin.balancing(), args);
    return plan ? show(args, *plan, false) : report(plan.error());
  });
}

int run_balance_apply(const BalanceArgs& args) {
  return with_admin(args.common, [&](Admin admin) { return apply(admin.balancing(), args); });
}

int run_balance_history(const BalanceArgs& args) {
  return with_admin(args.common, [&](Admin admin) {
    const auto steps = admin.balancing().history();
    if (!steps) return report(steps.error());
    print(args.common.json() ? steps_json(*steps) : steps_text(*steps));
    return static_cast<int>(kOk);
  });
}

int run_balance_revert(const BalanceArgs& args) {
  return with_admin(args.common, [&](Admin admin) {
    const auto plan = admin.balancing().revert(args.step, !args.yes, args.reason);
    if (!plan) return report(plan.error());
    if (!args.yes) complain("nothing is moved without --yes");
    return show(args, *plan, args.yes);
  });
}

int run_balance_record(const BalanceArgs& args) {
  EndSignal signal;
  std::atomic<bool> ended{false};
  signal.call([&ended] { ended = true; });
  return with_admin(args.common, [&](Admin admin) { return record(admin.balancing(), args, ended); });
}

int run_balance_simulate(const BalanceArgs& args) {
  const auto* algorithm = balancer::find_algorithm(args.algorithm.empty() ? "descent" : args.algorithm);
  if (algorithm == nullptr) {
    complain(fmt::format("there is no algorithm \"{}\"; `fjord balance compare` shows all", args.algorithm));
    return kUsage;
  }
  return simulate_all(args, {nullptr, algorithm});
}

int run_balance_compare(const BalanceArgs& args) {
  std::vector<const balancer::BalancingAlgorithm*> all{nullptr};
  all.insert(all.end(), balancer::algorithms().begin(), balancer::algorithms().end());
  return simulate_all(args, all);
}

}  // namespace fjord::cli
