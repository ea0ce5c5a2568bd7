#include <fmt/format.h>
#include <set>
#include <string>
#include <vector>

#include "balance_checker.h"
#include "balance_operator.h"
#include "chaos.h"
#include "fjord/common/hash.h"
#include "fjord/sim/scenarios.h"
#include "operations_workload.h"
#include "recorder.h"
#include "scenario_end.h"

namespace fjord::sim {
namespace {

constexpr int kBytesPercent[] = {10, 30, 100};

/// Adds distributors and storage nodes, and removes storage nodes or changes their capacity.
///
/// Lifetime: the cluster outlives it; it outlives the run of the cluster.
class MembershipDrawer {
 public:
  explicit MembershipDrawer(SimCluster& cluster) : cluster_(cluster), operator_(cluster) {}
  void start() { schedule(); }
  void stop() { stopped_ = true; }
  bool is_idle() const { return operator_.is_idle() && leaving_.empty(); }
  unsigned distributors_added() const { return distributors_added_; }
  unsigned storage_nodes_added() const { return storage_nodes_added_; }
  unsigned removed() const { return removed_; }

 private:
  void schedule() {
    const Duration pause(1'000'000 + cluster_.random().below(5'000'000));
    cluster_.scheduler().outside().post_after(pause, [this] {
      if (stopped_) return;
      step();
      schedule();
    });
  }

  void step() {
    const std::uint64_t dice = cluster_.random().below(10);
    if (dice < 3 && distributors_added_ < 2) return add("distributor", cluster_.add_distributor());
    if (dice < 6 && storage_nodes_added_ < 3) return add("storage", cluster_.add_storage_node());
    if (dice < 8 && !may_leave_.empty()) return retire();
    rpc::ChangeNodes request;
    request.action = rpc::NodeAction::Capacity;
    request.nodes = {fmt::format("storage.{}", cluster_.random().below(cluster_.options().storage_nodes))};
    request.capacity = fmt::format("{}", 0.5 + 0.5 * static_cast<double>(cluster_.random().below(4)));
    operator_.change_nodes(std::move(request), {});
  }

  void add(const std::string& role, const std::string& name) {
    ++(role == "storage" ? storage_nodes_added_ : distributors_added_);
    rpc::ChangeNodes request;
    request.action = rpc::NodeAction::Add;
    request.nodes = {role};
    request.address = name + ":1";
    request.force = true;  // The address is not tried first, because the network may lose that request.
    operator_.change_nodes(std::move(request), [this, role, name](const rpc::ChangeNodesReply& reply) {
      // AlreadyExists: the answer to an earlier attempt was lost.
      FJORD_CHECK_MSG(reply.status || reply.status.code() == StatusCode::AlreadyExists, reply.status.to_string());
      if (role == "storage") may_leave_.push_back(name);
    });
  }

  /// Retires only nodes that joined during the run, so that the nodes of the start always stay.
  void retire() {
    const std::string name = may_leave_.back();
    may_leave_.pop_back();
    leaving_.insert(name);
    operator_.change_nodes(rpc::NodeAction::Retire, name, [this, name](const rpc::ChangeNodesReply& reply) {
      if (reply.status && reply.refusals.empty()) return remove(name);
      leaving_.erase(name);  // It was refused, so the node stays.
    });
  }

  /// Repeats the request, which is refused until the node is empty.
  void remove(const std::string& name) {
    cluster_.scheduler().outside().post_after(milliseconds(400), [this, name] {
      operator_.change_nodes(rpc::NodeAction::Remove, name, [this, name](const rpc::ChangeNodesReply& reply) {
        // NotFound: the answer to an earlier attempt was lost.
        const bool is_gone = reply.status ? reply.refusals.empty() : reply.status.code() == StatusCode::NotFound;
        if (!is_gone) return remove(name);
        cluster_.retire(name);
        leaving_.erase(name);
        ++removed_;
      });
    });
  }

  SimCluster& cluster_;
  Operator operator_;
  bool stopped_ = false;
  unsigned distributors_added_ = 0;
  unsigned storage_nodes_added_ = 0;
  unsigned removed_ = 0;
  std::vector<std::string> may_leave_;
  std::set<std::string> leaving_;
};

SimClusterOptions shape_of(const ScenarioOptions& options, Random& random) {
  SimClusterOptions shape = random_shape(options, random);
  shape.schemas = {kOperationsSchema};
  shape.storage_nodes = shape.redundancy + 1 + static_cast<unsigned>(random.below(3));
  shape.distributors = 2 + static_cast<unsigned>(random.below(2));
  shape.bits = 3 + static_cast<unsigned>(random.below(3));
  shape.controllers = random.chance(0.3) ? 3 : 1;
  return shape;
}

void turn_on(SimCluster& cluster, Operator& operator_, Random& random, int bytes_percent) {
  // The load is counted in operations, because an execution takes no simulated time.
  for (const std::string& setting :
       {std::string("balancer.mode=on"), std::string("balancer.load=operations"),
        fmt::format("balancer.round={}ms", 300 + random.below(700)), std::string("balancer.operations_min=1"),
        fmt::format("balancer.bytes_part={:.2f}", bytes_percent / 100.0)}) {
    operator_.change_config(setting, {});
  }
  cluster.run_until([&] { return operator_.is_idle(); }, seconds(60));
}

/// Draws delays that differ by link: a state reaches one distributor long before the other.
LinkFault slow_links(Random& random) {
  LinkFault slow;
  slow.applies = [skip = random.below(3)](const std::string& from, const std::string& to) {
    return (hash64(from + to) + skip) % 3 == 0;
  };
  slow.delay = 0.3;
  slow.delay_max = milliseconds(20 + static_cast<std::int64_t>(random.below(600)));
  return slow;
}

std::string summary_of(const SimClusterOptions& shape, const Chaos& chaos, Recorder& recorder,
                       const BalanceOperator& balances, const MembershipDrawer& members) {
  return fmt::format(
      "{} storage nodes, {} distributors, {} controllers, redundancy {}, {} bits, {} crashes; {} distributors and {} "
      "storage nodes came, {} went; {} steps with {} moves, {} applied and {} reverted by hand, {} outdated; {} "
      "writes, "
      "{} times a distributor acted under other rows than it had written under",
      shape.storage_nodes, shape.distributors, shape.controllers, shape.redundancy, shape.bits, chaos.crashes(),
      members.distributors_added(), members.storage_nodes_added(), members.removed(), recorder.balance().steps(),
      recorder.balance().moves(), balances.applied(), balances.reverted(), balances.outdated(),
      recorder.causal_order().writes(), recorder.causal_order().rows_acted_on());
}

}  // namespace

ScenarioResult run_quantum(const ScenarioOptions& options) {
  Random random(mix64(options.seed, 0x7175616e));
  const SimClusterOptions shape = shape_of(options, random);
  const int bytes_percent = kBytesPercent[random.below(std::size(kBytesPercent))];
  const bool is_calm = random.chance(0.3);
  Exposure exposure;
  Recorder recorder(exposure);
  SimCluster cluster(shape);
  cluster.scheduler().keep_trace(options.keep_trace);
  cluster.network().set_observer(&recorder);
  recorder.causal_order().watch(cluster);
  cluster.start();
  recorder.transfers().watch(cluster, false);
  recorder.balance().watch(cluster, bytes_percent / 100.0);

  Operator operator_(cluster);
  turn_on(cluster, operator_, random, bytes_percent);
  if (!is_calm) cluster.network().set_faults(random_faults(random));
  const std::uint64_t disturbance = cluster.network().disturb(slow_links(random));
  OperationsWorkload workload(cluster, 3, 8 + static_cast<unsigned>(random.below(40)));
  Chaos chaos(cluster);
  BalanceOperator balances(cluster);
  MembershipDrawer members(cluster);
  workload.start();
  if (!is_calm) chaos.start();
  balances.start();
  members.start();
  cluster.scheduler().run_for(seconds(20));
  chaos.stop();
  balances.stop();
  members.stop();
  workload.stop();
  cluster.network().end_disturbance(disturbance);
  cluster.network().set_faults({});
  cluster.restart_everything();
  bool all_ended = cluster.run_until([&] { return workload.idle(); }, seconds(60));
  operator_.change_config("balancer.mode=off", {});
  all_ended =
      cluster.run_until([&] { return operator_.is_idle() && balances.is_idle() && members.is_idle(); }, seconds(60)) &&
      all_ended;
  recorder.balance().stop();
  const bool steady = cluster.run_until_steady(seconds(60));
  const bool readable = steady && workload.read_all();

  ScenarioResult result;
  const History& history = workload.history();
  result.failure = history.check();
  if (result.failure.empty()) result.failure = recorder.failure();
  if (result.failure.empty()) result.failure = recorder.balance().end();
  if (result.failure.empty()) result.failure = check_end(cluster, history, {all_ended, steady, readable});
  result.summary = summary_of(shape, chaos, recorder, balances, members);
  add_trace(cluster, result);
  return result;
}

}  // namespace fjord::sim
