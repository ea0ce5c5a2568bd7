#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "balance_operator.h"
#include "chaos.h"
#include "drill.h"
#include "fault.h"
#include "fjord/common/hash.h"
#include "fjord/sim/scenarios.h"
#include "recorder.h"
#include "scenario_end.h"
#include "workload.h"

namespace fjord::sim {
namespace {

constexpr unsigned kClients = 3;

/// The parameters that a seed determines.
struct Plan {
  SimClusterOptions shape;
  unsigned workload = 1;
  bool visits = false;
  bool jobs = false;
  bool slices = false;
  bool subscribes = false;
  bool calm = false;  ///< Only operators change membership: no failures.
  Duration pause_max{0};
  FaultPlan faults;
  std::set<FaultKind> apart;  ///< Drills, and kinds that last for the whole run.
};

/// True if the fault takes no node down.
bool is_calm(FaultKind kind) {
  using enum FaultKind;
  return is_change_of_membership(kind) && kind != Maintenance && kind != MaintenanceLong && kind != ClusterDown;
}

/// Returns the kinds that the workload is about (docs/simulation.md).
std::set<FaultKind> kinds_of_workload(unsigned workload) {
  using enum FaultKind;
  switch (workload) {
    case 2:
      return {ClockSkew, StorageCrash, DistributorCrash};
    case 3:
      return {Pause};
    case 4:
      return {StorageCrash, Wipe, NodeAdd, NodeRemove, Capacity, Redundancy, Bits};
    case 5:
      return {Partition, OneWay, Bridge, StorageCrash, NodeAdd, NodeRemove, Maintenance, Redundancy};
    case 6:
      return {ControllerCrash, StoreCut, Partition, Swizzle};
    case 7:
      return {Partition, Pause, StorageCrash, DistributorCrash};
    case 8:
      return {ClockJump, ClockSkew};
    case 9:
      return {StorageCrash, DistributorCrash, Delay, Bits, Limits, NodeAdd, NodeRemove, Wipe};
    default:
      return {};
  }
}

/// Returns a distribution over racks with as many nodes each.
std::string racks_of(const SimClusterOptions& shape, unsigned racks) {
  std::string text = fmt::format("redundancy:{} (root", shape.redundancy);
  for (unsigned rack = 0; rack < racks; ++rack) {
    text += fmt::format(" (rack_{}", rack);
    for (unsigned node = rack; node < shape.storage_nodes; node += racks) text += fmt::format(" {}", node);
    text += ")";
  }
  return text + ")";
}

/// Returns racks if there are enough nodes, else one group.
std::string draw_distribution(const SimClusterOptions& shape, Random& random) {
  const unsigned racks = 2 + static_cast<unsigned>(random.below(2));
  const bool wanted = random.chance(0.4);
  if (!wanted || shape.storage_nodes < 2 * racks || shape.redundancy > racks) return {};
  return racks_of(shape, racks);
}

SimClusterOptions draw_shape(const ScenarioOptions& options, Random& random) {
  SimClusterOptions shape;
  shape.seed = options.seed;
  shape.bug = options.bug;
  shape.clock_skew = options.clock_skew;
  const std::uint64_t dice = random.below(20);
  shape.redundancy = dice < 2 ? 1 : dice < 13 ? 2 : 3;
  shape.storage_nodes = 3 + static_cast<unsigned>(std::min(random.below(7), random.below(7)));
  shape.distributors = 1 + static_cast<unsigned>(random.below(3));
  shape.controllers = random.chance(0.4) ? 3 : 1;
  shape.bits = 1 + static_cast<unsigned>(random.below(4));
  shape.stripes = std::min(1U << random.below(3), 1U << shape.bits);
  shape.distribution = draw_distribution(shape, random);
  shape.schemas = workload_schemas();
  shape.sync = random.chance(0.3);
  shape.watch_space = random.chance(0.5);
  shape.storage_timeout = milliseconds(400 + static_cast<std::int64_t>(random.below(1200)));
  shape.merge_timeout = milliseconds(2000 + static_cast<std::int64_t>(random.below(4000)));
  shape.down_after = milliseconds(1800 + static_cast<std::int64_t>(random.below(2000)));
  if (options.strict_reads) shape.reads = rpc::Consistency::Session;
  shape.attempt_timeout = milliseconds(1000 + static_cast<std::int64_t>(random.below(2000)));
  return shape;
}

/// True for kinds whose draws leave the other draws of a seed as they were before these kinds existed.
bool is_drawn_apart(FaultKind kind) { return is_drill(kind) || kind == FaultKind::WrongClock; }

/// Draws each kind with a generator of its own, so that the other draws of a seed stay the same.
std::set<FaultKind> draw_kinds_apart(const ScenarioOptions& options, bool calm) {
  std::set<FaultKind> kinds;
  for (const FaultKind kind : options.faults.empty() ? all_fault_kinds() : options.faults) {
    if (!is_drawn_apart(kind)) continue;
    Random own(mix64(options.seed, hash64(to_string(kind))));
    const bool is_drawn = is_drawn_by_default(kind) && !calm && own.chance(0.05);
    if (is_drawn || !options.faults.empty()) kinds.insert(kind);
  }
  return kinds;
}

/// Changes the shape of the cluster where a drill needs it.
void fit_shape(Plan& plan) {
  SimClusterOptions& shape = plan.shape;
  if (plan.apart.contains(FaultKind::FullReturn)) shape.watch_space = true;
  if (plan.apart.contains(FaultKind::ManyBuckets)) {
    shape.bits = 10 + static_cast<unsigned>(mix64(shape.seed, 0x62697473) % 3);
    plan.faults.kinds.erase(FaultKind::Bits);  // Each step moves all of them.
  }
  if (!plan.apart.contains(FaultKind::GroupMaintenance) || !shape.distribution.empty()) return;
  shape.redundancy = std::min(shape.redundancy, 2U);
  shape.storage_nodes = std::max(shape.storage_nodes, 4U);
  shape.distribution = racks_of(shape, 2);
}

Plan draw_plan(const ScenarioOptions& options, Random& random) {
  Plan plan;
  plan.shape = draw_shape(options, random);
  plan.workload = 1 + static_cast<unsigned>(random.below(8));
  if (options.workload != 0) plan.workload = options.workload;
  plan.visits = random.chance(0.4);
  plan.jobs = random.chance(0.25);
  plan.pause_max = milliseconds(50 + static_cast<std::int64_t>(random.below(350)));
  FaultPlan& faults = plan.faults;
  faults.clients = kClients + 1;
  faults.faults = static_cast<unsigned>(random.below(12));
  faults.span = milliseconds(4000 + static_cast<std::int64_t>(random.below(11'000)));
  if (plan.workload == 3) faults.span *= 3;
  plan.calm = random.chance(0.08) && options.faults.empty();
  const std::set<FaultKind> allowed = options.faults.empty() ? all_fault_kinds() : options.faults;
  const std::set<FaultKind> wanted = kinds_of_workload(plan.workload);
  Random later(
      mix64(options.seed, 0x6c61746572));  // For kinds added later, so that draws of earlier kinds stay the same.
  for (const FaultKind kind : allowed) {
    if (kind == FaultKind::Retention || is_drawn_apart(kind)) continue;  // Others draw these kinds.
    const bool drawn = (kind < FaultKind::MaintenanceLong ? random : later).chance(0.25);
    const bool fits = !plan.calm || is_calm(kind);
    if (fits && (drawn || plan.calm || !options.faults.empty() || wanted.contains(kind))) faults.kinds.insert(kind);
  }
  // A generator of its own, so that the other draws of a seed stay the same.
  Random feeds(mix64(options.seed, 0x6665656473));
  plan.slices = plan.workload == 9 || feeds.chance(0.2);
  plan.subscribes = plan.workload == 9 || feeds.chance(0.2);
  plan.apart = draw_kinds_apart(options, plan.calm);
  fit_shape(plan);
  if (options.bits != 0) plan.shape.bits = options.bits;
  plan.shape.stripes = std::min(plan.shape.stripes, 1U << plan.shape.bits);
  plan.shape.watch_space = plan.shape.watch_space || faults.kinds.contains(FaultKind::FullNode);
  plan.shape.power_loss = faults.kinds.contains(FaultKind::PowerLoss);
  return plan;
}

/// Adds short retentions for the whole run, shorter than nodes are down: in a quarter of the runs, or in all if
/// --faults names the kind.
void draw_retention(const ScenarioOptions& options, const Plan& plan, std::vector<Fault>& faults) {
  Random random(mix64(options.seed, 0x726574656e74));
  const bool is_drawn = options.faults.empty() ? random.chance(0.25) : options.faults.contains(FaultKind::Retention);
  if (!is_drawn) return;
  std::vector<std::string> settings = {"documents.remove_retention"};
  // Other workloads retry their operations for longer than that and rely on their idempotency keys.
  if (plan.workload == 9) settings.emplace_back("documents.token_retention");
  for (std::string& setting : settings) {
    Fault fault;
    fault.kind = FaultKind::Retention;
    fault.number = static_cast<unsigned>(faults.size());
    fault.at = Duration(random.below(500'000));
    fault.length = seconds(3600);
    fault.nodes = {std::move(setting)};
    fault.amount = 1000 + static_cast<std::int64_t>(random.below(random.chance(0.5) ? 500 : 4000));
    faults.push_back(std::move(fault));
  }
}

/// Draws a clock that is wrong by a second to a day.
Fault draw_wrong_clock(const ScenarioOptions& options, const Plan& plan, std::size_t number) {
  Random random(mix64(options.seed, 0x636c6f636b));
  Fault fault;
  fault.kind = FaultKind::WrongClock;
  fault.number = static_cast<unsigned>(number);
  fault.length = seconds(3600);
  fault.nodes = {fmt::format("storage.{}", random.below(plan.shape.storage_nodes))};
  fault.amount = static_cast<std::int64_t>(1e6 * std::pow(86400.0, random.uniform())) * (random.chance(0.5) ? 1 : -1);
  return fault;
}

/// Puts one document for each bucket, so that most buckets have one.
bool fill_buckets(const WorkloadContext& context, unsigned bits) {
  std::vector<rpc::Operation> puts;
  for (unsigned i = 0; i < (1U << bits); ++i) {
    puts.push_back(put_json_operation(fmt::format("id:sim:item::many{}", i), R"({"value": "many"})"));
  }
  return feed_operations(context, puts);
}

std::vector<std::unique_ptr<Workload>> make_workloads(const Plan& plan, const WorkloadContext& context) {
  std::vector<std::unique_ptr<Workload>> workloads;
  const bool registers =
      plan.workload == 2 || plan.workload == 3 || plan.workload == 5 || plan.workload == 7 || plan.workload == 8;
  if (registers || plan.workload == 6) workloads.push_back(make_register_workload(context, plan.workload != 3));
  if (plan.workload == 1 || plan.workload == 3 || plan.workload == 4 || plan.workload == 6 || plan.workload == 8) {
    workloads.push_back(make_update_workload(context, plan.workload == 1 || plan.workload == 3));
  }
  if (plan.workload == 7) workloads.push_back(make_insert_workload(context));
  if (plan.slices) workloads.push_back(make_slice_workload(context, plan.shape.bug));
  if (plan.subscribes) workloads.push_back(make_subscribe_workload(context));
  if (plan.visits) workloads.push_back(make_visit_workload(context));
  if (plan.jobs) workloads.push_back(make_job_workload(context));
  return workloads;
}

void keep(std::string& failure, const std::string& problem) {
  if (failure.empty()) failure = problem;
}

std::string wait_until_well(SimCluster& cluster, bool damaged) {
  if (damaged) return wait_until_whole(cluster);
  return cluster.run_until_steady(seconds(60)) ? "" : "I3: replicas did not converge: " + cluster.check_replicas();
}

/// Checks that the cluster becomes steady and all operations end.
std::string check_liveness(SimCluster& cluster, bool damaged, const FaultInjector& injector,
                           std::vector<std::unique_ptr<Workload>>& workloads, TransferChecker& transfers) {
  if (!cluster.run_until([&] { return injector.is_idle(); }, seconds(60))) {
    return "T5.2: a change of the nodes never ended: " + cluster.check_replicas();
  }
  if (std::string problem = wait_until_well(cluster, damaged); !problem.empty()) return problem;
  for (const auto& workload : workloads) {
    if (!cluster.run_until([&] { return workload->is_idle(); }, seconds(60))) {
      return "I16: something of workload " + workload->name() + " never ended";
    }
  }
  // A setting of the operator may have led to another state meanwhile, whose transfers must end, too.
  cluster.run_until([&] { return transfers.check_transfers_end().empty(); }, seconds(60));
  if (std::string transfer = transfers.check_transfers_end(); !transfer.empty()) return transfer;
  return wait_until_well(cluster, damaged);
}

/// Puts the claims of the cluster, which is in order now, to the test, and notes which of them.
void test_claims(Recorder& recorder, FaultInjector& injector, ScenarioResult& result) {
  if (result.failure.empty()) recorder.claims().at_end();
  keep(result.failure, recorder.claims().failure());
  for (const unsigned tested : recorder.claims().tested()) injector.note_at_end(tested);
}

std::string summary_of(const Plan& plan, const ScenarioResult& result, SimCluster& cluster, Recorder& recorder,
                       unsigned exercised) {
  std::string text = fmt::format(
      "W{}, {:.1f} s, {} storage nodes, {} distributors, {} controllers ({} terms), redundancy {}, {} bits, {}{}{}; {} "
      "faults, {} exercised; {} messages ({} lost)",
      plan.workload, static_cast<double>(result.span.count()) / 1e6, plan.shape.storage_nodes, plan.shape.distributors,
      plan.shape.controllers, recorder.terms(), plan.shape.redundancy, plan.shape.bits,
      plan.shape.sync ? "sync" : "process", plan.shape.distribution.empty() ? "" : ", racks", plan.calm ? ", calm" : "",
      result.faults.size(), exercised, cluster.network().messages_sent(), cluster.network().messages_lost());
  if (recorder.balance().is_watching()) {
    text +=
        fmt::format("; {} steps of the balancer with {} moves", recorder.balance().steps(), recorder.balance().moves());
  }
  text += "; " + recorder.claims().summary();
  if (cluster.replicas_that_forgot() > 0)
    text += fmt::format("; {} replicas dropped removes", cluster.replicas_that_forgot());
  return text;
}

/// Draws the faults of the plan, or those of them that --only-faults names.
std::vector<Fault> draw_chosen_faults(const ScenarioOptions& options, const Plan& plan, Random& random) {
  std::vector<Fault> faults = draw_faults(plan.faults, plan.shape, random);
  draw_retention(options, plan, faults);
  if (plan.apart.contains(FaultKind::WrongClock)) faults.push_back(draw_wrong_clock(options, plan, faults.size()));
  for (Fault& drill : draw_drills(plan.apart, faults.size(), options.seed)) faults.push_back(std::move(drill));
  if (options.only_faults) {
    std::erase_if(faults, [&](const Fault& fault) { return !options.only_faults->contains(fault.number); });
  }
  return faults;
}

bool has(const std::vector<Fault>& faults, FaultKind kind) {
  return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) { return fault.kind == kind; });
}

/// Takes the drills out of the faults.
std::vector<Fault> take_drills(std::vector<Fault>& faults) {
  const auto first =
      std::stable_partition(faults.begin(), faults.end(), [](const Fault& fault) { return !is_drill(fault.kind); });
  std::vector<Fault> drills(std::make_move_iterator(first), std::make_move_iterator(faults.end()));
  faults.erase(first, faults.end());
  return drills;
}

/// Carries out the drills when everything that the operator began has ended. Damage of earlier faults that no read has
/// met yet is repaired before.
std::string run_drills(SimCluster& cluster, bool damaged, const FaultInjector& injector, Drills& drills) {
  if (drills.is_empty()) return {};
  if (!cluster.run_until([&] { return injector.is_idle(); }, seconds(60))) {
    return "T5.2: a change of the nodes never ended: " + cluster.check_replicas();
  }
  if (damaged) {
    for (const std::string& name : cluster.running_storage_names()) cluster.read_everything(name);
  }
  return drills.run();
}

/// True if a storage node may lose what it had acknowledged without a restart.
bool loses_bytes(const std::vector<Fault>& faults) {
  return std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == FaultKind::Corruption || fault.kind == FaultKind::DamageRestart ||
           fault.kind == FaultKind::LostFiles || fault.kind == FaultKind::ScrubStep;
  });
}

/// Starts the cluster, with the clocks that are wrong from the beginning, and lets the recorder look into it.
void start(SimCluster& cluster, Recorder& recorder, const std::vector<Fault>& faults) {
  recorder.causal_order().watch(cluster);
  for (const Fault& fault : faults) {
    if (fault.kind == FaultKind::WrongClock) cluster.set_clock_skew(fault.nodes.front(), Duration(fault.amount));
  }
  cluster.start();
  recorder.transfers().watch(cluster, loses_bytes(faults));
  recorder.maintenance().watch(cluster);
}

/// Puts the documents that are there before any fault. Returns an empty string, or which could not be put.
std::string prepare(const Plan& plan, const WorkloadContext& context,
                    std::vector<std::unique_ptr<Workload>>& workloads) {
  if (plan.apart.contains(FaultKind::ManyBuckets) && !fill_buckets(context, plan.shape.bits)) {
    return "I16: the documents of many buckets could not be put";
  }
  std::string problem;
  for (const auto& workload : workloads) {
    if (!workload->prepare()) keep(problem, "I16: the documents of " + workload->name() + " could not be put");
  }
  return problem;
}

Coverage coverage_of(FaultInjector& injector, Drills& drills) {
  for (const unsigned invariant : {3U, 12U, 16U}) {
    injector.note_at_end(invariant);
    drills.note_at_end(invariant);
  }
  Coverage coverage = injector.coverage();
  coverage.add(drills.coverage());
  return coverage;
}

}  // namespace

ScenarioResult run_chaos(const ScenarioOptions& options) {
  Random random(mix64(options.seed, 0x6368616f73));
  const Plan plan = draw_plan(options, random);
  std::vector<Fault> faults = draw_chosen_faults(options, plan, random);
  ScenarioResult result;
  const Duration span = options.span.count() > 0 ? options.span : plan.faults.span;
  result.span = span;
  for (const Fault& fault : faults) {
    result.faults.push_back(describe(fault));
    result.fault_numbers.insert(fault.number);
  }
  const bool damaged = loses_bytes(faults);
  const bool balances = has(faults, FaultKind::Balance);

  Exposure exposure;
  Recorder recorder(exposure, options.seed, options.claims);
  SimCluster cluster(plan.shape);
  cluster.scheduler().keep_trace(options.keep_trace);
  recorder.watch_claims(cluster, loses_bytes(faults) ? Duration(0) : span);
  start(cluster, recorder, faults);
  if (balances) recorder.balance().watch(cluster, 1.0);
  WorkloadContext context{cluster, exposure, {}, plan.pause_max, options.strict_reads};
  if (plan.calm) context.transfers = &recorder.transfers();
  context.forgets = has(faults, FaultKind::Retention);
  for (unsigned i = 0; i < kClients; ++i) context.clients.push_back(&cluster.add_client());
  std::vector<std::unique_ptr<Workload>> workloads = make_workloads(plan, context);
  std::vector<Fault> chosen_drills = take_drills(faults);
  FaultInjector injector(cluster, std::move(faults), exposure);
  Drills drills(cluster, recorder, std::move(chosen_drills), exposure, options.seed);
  keep(result.failure, prepare(plan, context, workloads));

  // The safety part: faults and workloads.
  for (const auto& workload : workloads) workload->start();
  injector.start();
  BalanceOperator balance_operator(cluster);
  if (balances) balance_operator.start();
  cluster.scheduler().run_for(span);
  // Liveness: the workloads go on briefly without faults, and then have to end.
  injector.stop();
  balance_operator.stop();
  cluster.scheduler().run_for(milliseconds(500));
  keep(result.failure, run_drills(cluster, damaged, injector, drills));
  for (const auto& workload : workloads) workload->stop();
  const std::string not_live = check_liveness(cluster, damaged, injector, workloads, recorder.transfers());
  keep(result.failure, recorder.failure());  // It may be the reason why something never ended.
  keep(result.failure, not_live);
  for (const auto& workload : workloads) {
    if (result.failure.empty()) keep(result.failure, workload->check());
  }
  keep(result.failure, recorder.failure());
  keep(result.failure, recorder.balance().end());
  test_claims(recorder, injector, result);
  result.coverage = coverage_of(injector, drills);
  result.summary = summary_of(plan, result, cluster, recorder, injector.exercised() + drills.exercised());
  for (const auto& workload : workloads) result.summary += "; " + workload->summary();
  add_trace(cluster, result, recorder.claims().trace());
  return result;
}

}  // namespace fjord::sim
