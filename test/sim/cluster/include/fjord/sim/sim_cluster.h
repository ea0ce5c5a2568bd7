#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fjord/client/client.h"
#include "fjord/distributor/distributor_node.h"
#include "fjord/sim/sim_env.h"
#include "fjord/sim/sim_scheduler.h"
#include "fjord/sim/sim_transport.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::fleetcontroller {
class MemoryStateEnsemble;
}

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
  RepairUnmerged,
  ServeOldRequests,
  ForkState,
  ForgetVisited,
  SkipSync,
  IgnoreLease,
  CountRepeatedTwice,
  LoseSpill,
  AverageOfAverages,
  ForgetNullGroup,
  TokenSkipsBucket,
  SliceHole,
  UnstableBound,
  HideRemoves,
  IgnoreOwners,
  CountAgainAfterTakeover,
  LoseDeadLetters,
  StalePartials,
  KeepRetracted
};
std::string to_string(Bug bug);
Result<Bug> bug_from_string(const std::string& name);
/// All of them, for people.
std::string bug_names();

struct SimClusterOptions {
  std::uint64_t seed = 1;
  unsigned storage_nodes = 4;
  unsigned distributors = 2;
  unsigned controllers = 1;
  unsigned redundancy = 2;
  unsigned bits = 4;
  unsigned stripes = 2;
  std::vector<std::string> schemas;
  Bug bug = Bug::None;
  bool clock_skew = false;  ///< Wall clocks that are wrong by up to ten minutes.

  std::string distribution;            ///< Empty: one group of all storage nodes.
  bool sync = false;                   ///< Writes and changes of buckets are on the disk before they are acknowledged.
  bool power_loss = false;             ///< Disks remember what was not synced, which lose_power() needs.
  std::int64_t task_memory_bytes = 0;  ///< mapreduce.task_memory_bytes; 0: the default.
  std::int64_t job_memory_bytes = 0;   ///< mapreduce.job_memory_bytes; 0: the default.
  bool watch_space = false;            ///< Storage nodes look at the space that is left.
  Duration storage_timeout = milliseconds(800);
  Duration merge_timeout = seconds(5);
  Duration down_after = milliseconds(1800);
  Duration attempt_timeout = seconds(2);  ///< Of clients.
  rpc::Consistency reads = rpc::Consistency::Default;
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
  /// A bit flips in a slotfile or in the journal of the node, which may be down, or a slotfile is cut off. False: no
  /// file.
  bool damage_storage(unsigned index);
  /// Damaged buckets that were made whole again, over all nodes and their lives.
  std::uint64_t repaired_buckets();
  void crash_distributor(unsigned index);
  void restart_distributor(unsigned index);
  bool distributor_alive(unsigned index) const;
  void crash_controller(unsigned index = 0);
  void restart_controller(unsigned index = 0);
  bool controller_alive(unsigned index) const;
  /// What the fleet controllers remember, and their election: sessions can be ended and cut off.
  fleetcontroller::MemoryStateEnsemble& controller_records() { return *controller_records_; }
  void restart_everything();

  // --- The same and more for any process by its name: "storage.0", "distributor.1", "fleetcontroller.0".

  void crash(const std::string& name);
  void restart(const std::string& name);
  bool alive(const std::string& name);
  /// As by SIGSTOP: nothing of it runs and its time goes on. A process that crashes is no longer paused.
  void pause(const std::string& name);
  void resume(const std::string& name);
  /// Crashes, and loses what was not synced.
  void lose_power(const std::string& name);
  /// Crashes, and its disk is empty.
  void wipe(const std::string& name);
  /// How far its wall clock is ahead of the true time, from now on and after restarts too.
  void set_clock_skew(const std::string& name, Duration skew);
  /// Each operation on its disk takes so long, a sync ten times as long. `hits` counts them; null and zero end it.
  void slow_disk(const std::string& name, Duration each, std::uint64_t* hits);
  /// So much is left on its disk, whatever it holds.
  void limit_disk(const std::string& name, std::uint64_t free_bytes);
  /// The disk is so small that what is on it takes so many percent; 1 to 100.
  void shrink_disk(const std::string& name, unsigned used_percent);
  void free_disk(const std::string& name);
  /// Writes that its disk had no space for, since it exists.
  std::uint64_t refused_for_space(const std::string& name);

  // --- Changes of membership

  /// A process that no fleet controller knows yet, with the next index; it runs. Returns its name.
  std::string add_storage_node();
  std::string add_distributor();
  /// Its process ends and never starts again.
  void retire(const std::string& name);
  /// The name of the fleet controller that leads; the first one if none does.
  std::string leader() const;
  /// How often the process has been started.
  std::uint64_t life_of(const std::string& name);
  /// Of a storage node. Errors: NotFound if it is down or has no such bucket.
  Result<std::vector<spi::EntryMeta>> entries_of(const std::string& name, BucketId bucket);
  Result<spi::Forgotten> forgotten_of(const std::string& name, BucketId bucket);
  /// Replicas on processes that run which have dropped removed entries.
  std::size_t replicas_that_forgot();
  /// All buckets of a storage node, none if it is down.
  std::vector<std::pair<BucketId, ReplicaSet>> sets_of(const std::string& name);
  /// The client that start() uses, for an operator.
  AsyncClient& admin();

  /// A client process of its own; lives as long as the cluster.
  AsyncClient& add_client();

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

  Process& process(const std::string& name);
  StorageProcess* storage_process(const std::string& name);
  std::vector<rpc::Address> distributor_addresses() const;
  std::vector<rpc::Address> storage_addresses() const;
  std::vector<rpc::Address> controller_addresses() const;

  SimClusterOptions options_;
  bool started_ = false;  ///< start() came to its end.
  std::string unsteady_;  ///< Why run_until_steady() went on waiting the last time; empty: it did not.
  SimScheduler scheduler_;
  Random random_;
  SimNetwork network_;
  std::unique_ptr<BulkExecutor> bulk_;
  std::vector<std::unique_ptr<StorageProcess>> storage_;
  std::vector<std::unique_ptr<DistributorProcess>> distributors_;
  std::unique_ptr<fleetcontroller::MemoryStateEnsemble> controller_records_;
  std::vector<std::unique_ptr<ControllerProcess>> controllers_;
  std::vector<std::unique_ptr<ClientProcess>> clients_;
};

}  // namespace fjord::sim
