#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fault.h"
#include "fjord/sim/sim_cluster.h"
#include "transfers.h"

namespace fjord::sim {

/// The clients of scenario chaos, with checks of what they know to be true.
///
/// All members are called from outside of the simulated processes; prepare() and check() may run the scheduler.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;
  /// Called before any fault. Returns false if it failed.
  virtual bool prepare() { return true; }
  virtual void start() = 0;
  virtual void stop() = 0;
  /// Called after stop(). Returns true once no operation is in flight.
  virtual bool is_idle() const = 0;
  /// Runs when all faults are over and the cluster is steady. Returns an empty string, or the broken invariant and how
  /// it was broken.
  virtual std::string check() = 0;
  virtual std::string summary() const = 0;
};

/// The parameters common to all workloads.
struct WorkloadContext {
  SimCluster& cluster;
  Exposure& exposure;
  std::vector<AsyncClient*> clients;
  Duration pause_max = milliseconds(100);  ///< Largest pause between two operations of one lane.
  bool strict_reads = false;
  /// Set if this run has no failures, so that every operation has to be served while data moves (theorem 5.6). Null
  /// otherwise.
  const TransferChecker* transfers = nullptr;
  bool forgets = false;  ///< Remove entries are dropped in this run, so a subscriber may get RESYNC and has to rebuild
                         ///< its copy.

  MonotonicTime now() const { return cluster.scheduler().clock().now(); }
  Random& random() const { return cluster.random(); }
  /// Runs `task` after a random pause.
  void later(std::function<void()> task) const {
    const Duration pause(random().below(static_cast<std::uint64_t>(pause_max.count())));
    cluster.scheduler().outside().post_after(pause, std::move(task));
  }
};

/// Puts, removes, reads and test-and-sets of a few documents; each write has a value of its own. Some documents get
/// only writes with idempotency keys, which makes them linearizable.
std::unique_ptr<Workload> make_register_workload(WorkloadContext context, bool removes);
/// Counters, lists, and sets changed by test-and-set: each change is applied exactly once.
std::unique_ptr<Workload> make_update_workload(WorkloadContext context, bool only_test_and_set);
/// New documents only: acknowledged ones exist, refused ones do not.
std::unique_ptr<Workload> make_insert_workload(WorkloadContext context);
/// Visits of documents that do not change, beside documents that were removed before.
std::unique_ptr<Workload> make_visit_workload(WorkloadContext context);
/// A job over documents that do not change.
std::unique_ptr<Workload> make_job_workload(WorkloadContext context);

/// A visit of documents that do not change, in slices that are interrupted and resumed.
std::unique_ptr<Workload> make_slice_workload(WorkloadContext context, Bug bug);
/// Writes, and a subscriber that keeps a copy of the documents.
std::unique_ptr<Workload> make_subscribe_workload(WorkloadContext context);

/// Schema of the documents of the slice and the subscribe workload.
std::string feed_schema();

/// Puts or removes documents and waits for the answers. Returns false unless all were applied.
bool feed_operations(const WorkloadContext& context, const std::vector<rpc::Operation>& operations);

/// The document types of all workloads.
std::vector<std::string> workload_schemas();

}  // namespace fjord::sim
