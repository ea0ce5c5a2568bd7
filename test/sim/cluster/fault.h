#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/sim/scenarios.h"
#include "fjord/sim/sim_cluster.h"
#include "operator.h"

namespace fjord::sim {

/// Something that goes wrong for a while. Drawn from the seed before the run begins, so that a run can be repeated with
/// some of its faults left out.
struct Fault {
  unsigned number = 0;  ///< Within its run.
  FaultKind kind = FaultKind::StorageCrash;
  Duration at{0};  ///< Since the workloads began.
  Duration length{0};
  /// The processes it befalls ("leader": the fleet controller that leads then); network: one side of what is cut; a
  /// node that is added: of which role; retention: the setting.
  std::vector<std::string> nodes;
  std::vector<std::string> others;  ///< Bridge: the processes that both sides reach. Of a node that is added: its rack.
  double rate = 0;                  ///< Probabilities of messages.
  std::int64_t amount = 0;          ///< Microseconds or bytes; changes of membership: percent, copies, bits, entries.
};
/// "#3 slow-disk of storage.1 from 2.500 s for 4.000 s, 3000".
std::string describe(const Fault& fault);

/// What a schedule is drawn for.
struct FaultPlan {
  std::set<FaultKind> kinds;
  unsigned faults = 0;
  Duration span{0};
  unsigned clients = 0;
};

/// Draws faults for a cluster of that shape. As few nodes lose what they hold as redundancy allows: with wiped disks,
/// flipped bits or (without sync) losses of power, only redundancy - 1 nodes have any faults that stop them. Otherwise
/// any number of nodes may be away.
std::vector<Fault> draw_faults(const FaultPlan& plan, const SimClusterOptions& shape, Random& random);

/// What happens by the way that could break an invariant, as numbers that rise.
class Exposure {
 public:
  void note(unsigned invariant) { ++counts_[invariant]; }
  const std::array<std::uint64_t, kInvariants + 1>& counts() const { return counts_; }

 private:
  std::array<std::uint64_t, kInvariants + 1> counts_{};
};

/// Makes the faults of a schedule happen.
///
/// A fault counts as exercised if it did something: messages were lost, calls were under way at a node that crashed, a
/// disk was used while it was slow. Lifetime: the cluster and `exposure` outlive it; it outlives their running.
class FaultInjector {
 public:
  FaultInjector(SimCluster& cluster, std::vector<Fault> faults, const Exposure& exposure);
  void start();
  /// Ends everything that goes on, begins nothing more, and starts what is down. Nodes that are being removed still
  /// have to become empty.
  void stop();
  /// Everything that the operator began has ended.
  bool is_idle() const { return operator_.is_idle() && operated_.empty() && !is_late_possible_; }
  /// Each kind that was exercised in this run, with an invariant that is looked at when all is over.
  void note_at_end(unsigned invariant);
  const Coverage& coverage() const { return coverage_; }
  unsigned exercised() const { return exercised_; }

 private:
  struct Active {
    bool begun = false;
    bool ended = false;
    std::uint64_t hits = 0;
    bool accepted = false;  ///< By the fleet controller.
    std::vector<std::string> nodes;
    std::vector<std::uint64_t> disturbances;
    std::array<std::uint64_t, kInvariants + 1> before{};
  };

  void begin(std::size_t index);
  void end(std::size_t index);
  void stop_nodes(const Fault& fault, Active& active);
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
  std::set<std::string> operated_;  ///< Storage nodes that are on their way out.
  /// What the operator asked for before may arrive after the request to bring them back, which is repeated in the end.
  std::set<std::string> brought_back_;
  bool is_late_possible_ = false;
  Coverage coverage_;
  std::set<FaultKind> exercised_kinds_;
  unsigned exercised_ = 0;
  bool stopped_ = false;
};

}  // namespace fjord::sim
