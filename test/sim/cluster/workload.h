#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fault.h"
#include "fjord/sim/sim_cluster.h"
#include "transfers.h"

namespace fjord::sim {

/// What clients do in scenario chaos, and what they know that must be true.
///
/// All members are called from outside of the simulated processes; prepare() and check() may run the scheduler.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;
  /// Before any fault. False if it could not be done.
  virtual bool prepare() { return true; }
  virtual void start() = 0;
  virtual void stop() = 0;
  /// After stop(): nothing is under way any more.
  virtual bool is_idle() const = 0;
  /// When all faults are over and the cluster is steady. Empty, or the invariant that was broken and how.
  virtual std::string check() = 0;
  virtual std::string summary() const = 0;
};

/// What workloads share.
struct WorkloadContext {
  SimCluster& cluster;
  Exposure& exposure;
  std::vector<AsyncClient*> clients;
  Duration pause_max = milliseconds(100);  ///< Between two operations of one lane.
  bool strict_reads = false;
  /// Nothing is broken in this run, so that everything has to be served while data moves (theorem 5.6). Null: it is.
  const TransferChecker* transfers = nullptr;
  bool forgets = false;  ///< Removes are dropped in this run: a subscriber may have to make its copy anew.

  MonotonicTime now() const { return cluster.scheduler().clock().now(); }
  Random& random() const { return cluster.random(); }
  /// After a random pause.
  void later(std::function<void()> task) const {
    const Duration pause(random().below(static_cast<std::uint64_t>(pause_max.count())));
    cluster.scheduler().outside().post_after(pause, std::move(task));
  }
};

/// Puts, removes, reads and test-and-sets of a few documents, each write of a value of its own. Some documents have
/// writes with tokens only, which makes them linearizable.
std::unique_ptr<Workload> make_register_workload(WorkloadContext context, bool removes);
/// Counters, lists, and sets by test-and-set: each change exactly once.
std::unique_ptr<Workload> make_update_workload(WorkloadContext context, bool only_test_and_set);
/// New documents only: what was acknowledged is there, what was refused is not.
std::unique_ptr<Workload> make_insert_workload(WorkloadContext context);
/// Visits of documents that stay, among some that were removed before.
std::unique_ptr<Workload> make_visit_workload(WorkloadContext context);
/// A job over documents that stay.
std::unique_ptr<Workload> make_job_workload(WorkloadContext context);

/// A visit in slices that are interrupted and resumed, of documents that stay.
std::unique_ptr<Workload> make_slice_workload(WorkloadContext context, Bug bug);
/// Writes, and a subscriber that keeps a copy.
std::unique_ptr<Workload> make_subscribe_workload(WorkloadContext context);

/// Of the documents of the last two.
std::string feed_schema();

/// Puts or removes documents and waits for it. False if not all of it was done.
bool feed_operations(const WorkloadContext& context, const std::vector<rpc::Operation>& operations);

/// The document types of all workloads.
std::vector<std::string> workload_schemas();

}  // namespace fjord::sim
