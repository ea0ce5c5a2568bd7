#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/sim/scenarios.h"
#include "fjord/sim/sim_cluster.h"
#include "operator.h"

namespace fjord::sim {

/// A fault that lasts for a while. All faults are drawn from the seed before the run begins, so that a run can be
/// repeated without some of them.
struct Fault {
  unsigned number = 0;  ///< Index of the fault within its run.
  FaultKind kind = FaultKind::StorageCrash;
  Duration at{0};  ///< Start of the fault, since the workloads began.
  Duration length{0};
  /// The processes that the fault hits. "leader" stands for the fleet controller that leads when the fault begins.
  /// Network faults: one side of the cut. NodeAdd: the role of the new node. Retention: the name of the setting.
  std::vector<std::string> nodes;
  std::vector<std::string> others;  ///< Bridge: the processes that both sides reach. NodeAdd: the rack of the new node.
  double rate = 0;                  ///< Probability that the fault hits a message.
  std::int64_t amount = 0;          ///< Microseconds or bytes; membership changes: percent, number of replicas, bits or
                                    ///< entries.
};
/// Returns text such as "#3 slow-disk of storage.1 from 2.500 s for 4.000 s, 3000".
std::string describe(const Fault& fault);

/// Limits within which draw_faults() draws a schedule.
struct FaultPlan {
  std::set<FaultKind> kinds;
  unsigned faults = 0;
  Duration span{0};
  unsigned clients = 0;
};

/// Draws faults for a cluster of that shape. The number of nodes that lose data stays within redundancy: if wiped
/// disks, flipped bits or (without sync) power losses are drawn, only redundancy - 1 nodes get faults that stop them.
/// Otherwise any number of nodes may be down at once.
std::vector<Fault> draw_faults(const FaultPlan& plan, const SimClusterOptions& shape, Random& random);

/// Counts, per invariant, the events that could break it. The counts only rise.
class Exposure {
 public:
  void note(unsigned invariant) { ++counts_[invariant]; }
  const std::array<std::uint64_t, kInvariants + 1>& counts() const { return counts_; }

 private:
  std::array<std::uint64_t, kInvariants + 1> counts_{};
};

/// Carries out a schedule of faults.
///
/// A fault counts as exercised if it had an effect: it lost messages, calls were in flight at a node that crashed, a
/// disk was used while it was slow. Lifetime: the cluster and `exposure` outlive the injector; the injector outlives
/// the run of the cluster.
class FaultInjector {
 public:
  FaultInjector(SimCluster& cluster, std::vector<Fault> faults, const Exposure& exposure);
  void start();
  /// Ends all active faults, begins no more, and starts all processes that are down. Nodes that are being removed may
  /// still have to become empty.
  void stop();
  /// True if all changes that the operator began have ended.
  bool is_idle() const { return operator_.is_idle() && operated_.empty() && !is_late_possible_; }
  /// Counts each kind that was exercised in this run as covering `invariant`, which is checked at the end of the run.
  void note_at_end(unsigned invariant);
  const Coverage& coverage() const { return coverage_; }
  unsigned exercised() const { return exercised_; }

 private:
  struct Active {
    bool begun = false;
    bool ended = false;
    std::uint64_t hits = 0;
    bool accepted = false;  ///< True if the fleet controller accepted the change.
    std::vector<std::string> nodes;
    std::vector<std::uint64_t> disturbances;
    std::array<std::uint64_t, kInvariants + 1> before{};
  };

  void begin(std::size_t index);
  void apply(std::size_t index);
  void end(std::size_t index);
  void stop_nodes(const Fault& fault, Active& active);
  /// Damages parts of a storage node's files.
  void damage(const Fault& fault, Active& active);
  void disturb(const Fault& fault, Active& active);
  void cut(const Fault& fault, Active& active);
  void clog_one_by_one(std::size_t index);
  void change_membership(std::size_t index);
  void end_membership(std::size_t index);
  void add_node(std::size_t index);
  void remove_node(std::size_t index);
  void try_to_remove(const std::string& name);
  void maintain(std::size_t index);
  void bring_back(const std::string& name);
  void change_setting(std::size_t index, const std::string& setting);
  void count(const Fault& fault, Active& active);
  bool is_under_way(const Fault& fault) const;

  SimCluster& cluster_;
  std::vector<Fault> faults_;
  const Exposure& exposure_;
  std::vector<Active> active_;
  Operator operator_;
  std::set<std::string> operated_;  ///< Storage nodes that are being removed or are in maintenance.
  /// Nodes that were ordered back up. An earlier request of the operator may be delayed and arrive after that order, so
  /// stop() repeats the order.
  std::set<std::string> brought_back_;
  bool is_late_possible_ = false;
  Coverage coverage_;
  std::set<FaultKind> exercised_kinds_;
  unsigned exercised_ = 0;
  bool stopped_ = false;
};

}  // namespace fjord::sim
