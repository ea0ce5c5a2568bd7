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

/// Bugs planted on purpose, to show that the checkers notice them.
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
  TokenSkipsBucket,
  SliceHole,
  UnstableBound,
  HideRemoves,
  IgnoreOwners,
  CountAgainAfterTakeover,
  LoseDeadLetters,
  AllowStops,
  ForbidStops,
  HideMissing,
  KeepOutage,
  SayInSync
};
std::string to_string(Bug bug);
Result<Bug> bug_from_string(const std::string& name);
/// Returns the names of all bugs, for a help text.
std::string bug_names();

/// What destroys bytes on a disk.
enum class Destruction { ZeroPage, FlipBits, InvertHead, CutTail };
/// The files of a storage node that vanish.
enum class LostPart { Everything, Slotfiles, Journal, SomeFiles };

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
  bool clock_skew = false;  ///< Wall clocks are wrong by up to ten minutes.

  std::string distribution;            ///< Text of the distribution; empty: one group of all storage nodes.
  bool sync = false;                   ///< Writes and changes of buckets are synced to the disk before they are
                                       ///< acknowledged.
  bool power_loss = false;             ///< Disks keep track of unsynced data, which lose_power() needs.
  std::int64_t task_memory_bytes = 0;  ///< mapreduce.task_memory_bytes; 0: the default.
  std::int64_t job_memory_bytes = 0;   ///< mapreduce.job_memory_bytes; 0: the default.
  bool search = false;                 ///< Storage nodes index keywords, and distributors search.
  bool watch_space = false;            ///< Storage nodes watch their free disk space.
  Duration storage_timeout = milliseconds(800);
  Duration merge_timeout = seconds(5);
  Duration down_after = milliseconds(1800);
  Duration attempt_timeout = seconds(2);  ///< Timeout of one attempt of a client's operation.
  rpc::Consistency reads = rpc::Consistency::Default;
};

/// A whole cluster on one thread and one virtual clock: fleet controllers, distributors, storage nodes with the
/// slotfile engine on simulated disks, and clients. The second composition root beside tools/fjordd.
class SimCluster {
 public:
  /// Pause between two passes of the scrub of a storage node.
  static constexpr Duration kScrubInterval = seconds(30);

  explicit SimCluster(const SimClusterOptions& options);
  ~SimCluster();

  /// Returns a cluster of its own in which every process has ended by SIGKILL at this moment: the disks, the records of
  /// the fleet controllers, the errors of the clocks and the virtual time are copies, and no process is up. Its
  /// processes may be started, ended and damaged without any effect on this cluster, which does not change and may go
  /// on afterwards. `seed` decides all that is drawn in the copy. It has one client, admin().
  std::unique_ptr<SimCluster> copy(std::uint64_t seed) const;

  SimScheduler& scheduler() { return scheduler_; }
  SimNetwork& network() { return network_; }
  Random& random() { return random_; }
  const SimClusterOptions& options() const { return options_; }

  /// SIGKILL; the files stay as they are. No effect if the process is down.
  void crash_storage(unsigned index);
  /// Starts the process again. No effect if it is up.
  void restart_storage(unsigned index);
  bool storage_alive(unsigned index) const;
  /// Flips a bit in a slotfile or in the journal of the node, or truncates a slotfile. The node may be down. Returns
  /// false if there is no such file.
  bool damage_storage(unsigned index);
  /// Returns how often damage_storage() has damaged a file.
  std::uint64_t damages() const { return damages_; }
  /// Destroys a part of a slotfile of the process, as `kind` says. The process may be down. Returns false if there is
  /// no slotfile that is long enough.
  bool destroy_part(const std::string& name, Destruction kind, Random& random);
  /// Returns the number of damaged buckets that were repaired, over all nodes and incarnations.
  std::uint64_t repaired_buckets();
  void crash_distributor(unsigned index);
  void restart_distributor(unsigned index);
  bool distributor_alive(unsigned index) const;
  void crash_controller(unsigned index = 0);
  void restart_controller(unsigned index = 0);
  bool controller_alive(unsigned index) const;
  /// The simulated store of the fleet controllers: cluster states and election. Its sessions can be ended and cut off.
  fleetcontroller::MemoryStateEnsemble& controller_records() { return *controller_records_; }
  void restart_everything();

  // --- Calls for any process by its name: "storage.0", "distributor.1", "fleetcontroller.0"

  void crash(const std::string& name);
  /// Ends the process as SIGTERM does (Node::announce_stop()): it says so for up to a second, and ends. It is not taken
  /// for crashed.
  void stop(const std::string& name);
  void restart(const std::string& name);
  bool alive(const std::string& name);
  /// Suspends the process as SIGSTOP does: it runs no task while time goes on. A crash ends the pause.
  void pause(const std::string& name);
  void resume(const std::string& name);
  /// Crashes the process and loses its unsynced data.
  void lose_power(const std::string& name);
  /// Crashes the process and empties its disk.
  void wipe(const std::string& name);
  /// Removes all files of the process, which may be running: it then goes on with those that it has open.
  void remove_files(const std::string& name);
  /// Sets how far the process's wall clock is ahead of the true time, also after restarts.
  void set_clock_skew(const std::string& name, Duration skew);
  /// Lets each operation on the process's disk take `each`, a sync ten times as long. `hits` counts the operations;
  /// null and zero end the slowness.
  void slow_disk(const std::string& name, Duration each, std::uint64_t* hits);
  /// Leaves `free_bytes` of free space on the process's disk, however much the disk holds.
  void limit_disk(const std::string& name, std::uint64_t free_bytes);
  /// Shrinks the process's disk so that its files fill `used_percent` of it; 1 to 100.
  void shrink_disk(const std::string& name, unsigned used_percent);
  /// Lets files of other programs fill the process's disk so that `used_percent` of it are used.
  void fill_disk(const std::string& name, unsigned used_percent);
  /// Ends limit_disk(), shrink_disk() and fill_disk().
  void free_disk(const std::string& name);
  /// Removes files of a storage node, which may be running: it then goes on with the files that it has open.
  void lose_files(const std::string& name, LostPart part, Random& random);
  /// Crashes the storage node `name` and gives it a copy of the folder of `other`, which may run, instead of its own.
  void mix_up(const std::string& name, const std::string& other);
  /// Returns the number of writes that failed for lack of disk space since the disk was made.
  std::uint64_t refused_for_space(const std::string& name);

  // --- Changes of membership

  /// Starts a process that no fleet controller knows yet, with the next index. Returns its name.
  std::string add_storage_node();
  std::string add_distributor();
  /// Ends the process for good.
  void retire(const std::string& name);
  /// Returns the names of all processes of a kind that have not ended for good, those included that are down.
  std::vector<std::string> storage_names() const;
  std::vector<std::string> distributor_names() const;
  std::vector<std::string> controller_names() const;
  /// True if the process was started, has not crashed and is not suspended.
  bool is_running(const std::string& name);
  /// Returns when the process last crashed, started, was suspended or resumed, or when its disk was damaged or emptied.
  MonotonicTime disturbed_at(const std::string& name);
  /// Returns the name of the leading fleet controller; the first one if none leads.
  std::string leader() const;
  /// Returns the number of starts of the process.
  std::uint64_t incarnation_of(const std::string& name);
  /// Returns the entries of a storage node's bucket. Errors: NotFound if the node is down or has no such bucket.
  Result<std::vector<spi::EntryMeta>> entries_of(const std::string& name, BucketId bucket);
  Result<spi::Forgotten> forgotten_of(const std::string& name, BucketId bucket);
  /// Returns the number of replicas on running processes that have dropped remove entries.
  std::size_t replicas_that_forgot();
  /// Returns all buckets of a storage node with their replica sets; empty if the node is down.
  std::vector<std::pair<BucketId, ReplicaSet>> sets_of(const std::string& name);
  /// Returns the names of the storage processes that run.
  std::vector<std::string> running_storage_names() const;
  /// Returns the redundancy that the distributors know; 0 if none does.
  unsigned redundancy() const;
  /// Returns the snapshot of a running distributor; null if none has one.
  std::shared_ptr<const rpc::ClusterSnapshot> known_snapshot() const;
  /// Returns the storage nodes of each group that has nodes; nothing if no distributor knows the distribution.
  std::vector<std::vector<std::string>> storage_groups() const;
  /// Moves all that the storage node holds in its journal to slotfiles. Returns false if the node is down or its disk
  /// does not allow it.
  bool checkpoint(const std::string& name);
  /// Lets the storage node do background work that would wait for a quiet time: checkpoints, rewrites and scrubs.
  void work_in_background(const std::string& name, unsigned steps);
  /// Reads everything that the storage node holds, so that it finds damage. What it answers does not matter.
  void read_everything(const std::string& name);
  /// True if the scrub of the node has read everything since the node started.
  bool has_scrubbed(const std::string& name);
  /// Returns the number of buckets in which the node has found damage since it started.
  std::uint64_t damaged_buckets(const std::string& name);
  /// Returns the client that start() uses; operators may use it, too.
  AsyncClient& admin();

  /// Adds a client process, which lives as long as the cluster.
  AsyncClient& add_client();

  /// Deploys the schemas and waits until every distributor serves. Aborts if that does not happen.
  void start();

  /// Runs until all nodes are up in the same state, no replica is out of sync and no damage is known. Returns false if
  /// that does not happen within `limit`.
  bool run_until_steady(Duration limit);

  /// Checks that every bucket has equal replicas on all its ideal nodes. Call when steady. Returns an empty string if
  /// so, else the first difference.
  std::string check_replicas();

  /// Reads all that every replica holds, and a document that none holds, so that the nodes detect any damage. Returns
  /// an empty string if there is none, else the damage.
  std::string check_documents();
  /// As check_documents(), for one storage node. It must be up.
  std::string check_documents_of(const std::string& name);
  /// Changes every eighth byte of a part of one slotfile of the node, as a failing medium does. `random` chooses the
  /// file and a part of 64 bytes up to all of it. Returns a text that names both; empty if the node has no slotfile.
  std::string damage_slotfile(const std::string& name, Random& random);

  /// Runs until `done` returns true or `limit` has passed.
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
  bool started_ = false;  ///< True once start() has succeeded.
  std::string unsteady_;  ///< Why run_until_steady() kept waiting the last time; empty: it did not.
  SimScheduler scheduler_;
  Random random_;
  std::uint64_t damages_ = 0;
  SimNetwork network_;
  std::unique_ptr<BulkExecutor> bulk_;
  std::vector<std::unique_ptr<StorageProcess>> storage_;
  std::vector<std::unique_ptr<DistributorProcess>> distributors_;
  std::unique_ptr<fleetcontroller::MemoryStateEnsemble> controller_records_;
  std::vector<std::unique_ptr<ControllerProcess>> controllers_;
  std::vector<std::unique_ptr<ClientProcess>> clients_;
};

}  // namespace fjord::sim
