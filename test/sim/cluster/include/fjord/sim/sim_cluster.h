#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fjord/client/client.h"
#include "fjord/distributor/distributor_node.h"
#include "fjord/sim/sim_env.h"
#include "fjord/sim/sim_scheduler.h"
#include "fjord/sim/sim_transport.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::sim {

/// Bugs put in on purpose, to see that the checkers notice them.
enum class Bug {
  None,
  SkipReplica,
  ForgetTuple,
  ReadOutOfSync,
  ForgetTokens,
  GuardReadsAnywhere,
  SkipRepair,
  RepairUnmerged
};
std::string to_string(Bug bug);
Result<Bug> bug_from_string(const std::string& name);

struct SimClusterOptions {
  std::uint64_t seed = 1;
  unsigned storage_nodes = 4;
  unsigned distributors = 2;
  unsigned redundancy = 2;
  unsigned bits = 4;
  unsigned stripes = 2;
  std::vector<std::string> schemas;
  Bug bug = Bug::None;
  bool clock_skew = false;  ///< Wall clocks that are wrong by up to ten minutes.
};

/// A whole cluster on one thread and one virtual clock: fleet controller, distributors, storage nodes with the slotfile
/// engine on simulated disks, and clients. The second composition root beside tools/fjordd.
class SimCluster {
 public:
  explicit SimCluster(const SimClusterOptions& options);
  ~SimCluster();

  SimScheduler& scheduler() { return scheduler_; }
  SimNetwork& network() { return network_; }
  Random& random() { return random_; }
  const SimClusterOptions& options() const { return options_; }

  /// SIGKILL; files stay as they are. Fine if it is down.
  void crash_storage(unsigned index);
  /// Starts the process again. Fine if it is up.
  void restart_storage(unsigned index);
  bool storage_alive(unsigned index) const;
  /// A bit flips in a slotfile or in the journal of the node, which may be down. False if there is none.
  bool flip_bit_of_storage(unsigned index);
  /// Damaged buckets that were made whole again, over all nodes and their lives.
  std::uint64_t repaired_buckets();
  void crash_distributor(unsigned index);
  void restart_distributor(unsigned index);
  bool distributor_alive(unsigned index) const;
  void crash_controller();
  void restart_controller();
  void restart_everything();

  /// A client process of its own; lives as long as the cluster.
  Client& add_client();

  /// Deploys the schemas and waits until every distributor serves. Ends the process if that does not happen.
  void start();

  /// All nodes up in the same state, nothing out of sync, nothing known to be damaged: false if that does not come
  /// about within `limit`.
  bool run_until_steady(Duration limit);

  /// Every replica of every bucket on its ideal nodes, all equal. Call when steady. Empty if so, else what is wrong.
  std::string check_replicas();

  /// Reads all that every replica holds, and something that none does. Empty if there is no damage, else what is wrong;
  /// the nodes have met it then.
  std::string check_documents();

  /// Runs until `done` or `limit`.
  bool run_until(const std::function<bool()>& done, Duration limit) { return scheduler_.run_until(done, limit); }

 private:
  class Process;
  class StorageProcess;
  class DistributorProcess;
  class ControllerProcess;
  class ClientProcess;

  std::vector<rpc::Address> distributor_addresses() const;
  std::vector<rpc::Address> storage_addresses() const;

  SimClusterOptions options_;
  SimScheduler scheduler_;
  Random random_;
  SimNetwork network_;
  std::unique_ptr<BulkExecutor> bulk_;
  std::vector<std::unique_ptr<StorageProcess>> storage_;
  std::vector<std::unique_ptr<DistributorProcess>> distributors_;
  std::unique_ptr<ControllerProcess> controller_;
  std::vector<std::unique_ptr<ClientProcess>> clients_;
};

}  // namespace fjord::sim
