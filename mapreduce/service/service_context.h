#pragma once

#include <cstdint>

#include "fjord/common/runtime.h"
#include "fjord/mapreduce/job_service.h"
#include "fjord/visitors/mailbox.h"

namespace fjord::mapreduce {

struct JobMetrics {
  explicit JobMetrics(MetricRegistry& registry)
      : submitted(registry.counter("fjord_job_submitted_total", "Jobs accepted.")),
        done(registry.counter("fjord_job_finished_total", "Jobs that ended, by outcome.", {{"outcome", "done"}})),
        failed(registry.counter("fjord_job_finished_total", "Jobs that ended, by outcome.", {{"outcome", "failed"}})),
        cancelled(
            registry.counter("fjord_job_finished_total", "Jobs that ended, by outcome.", {{"outcome", "cancelled"}})),
        running(registry.gauge("fjord_job_running", "Jobs under way.")),
        taken_over(registry.counter("fjord_job_taken_over_total", "Jobs of other processes that go on here.")),
        lost(registry.counter("fjord_job_lost_total", "Jobs that another process has taken over.")),
        dead_letters(registry.counter("fjord_job_dead_letters_total", "Documents that map functions failed on.")),
        share(
            registry.gauge("fjord_job_share_percent", "Of their tasks that jobs may run for the foreground's sake.")) {}
  Counter& submitted;
  Counter& done;
  Counter& failed;
  Counter& cancelled;
  Gauge& running;
  Counter& taken_over;
  Counter& lost;
  Counter& dead_letters;
  Gauge& share;
};

/// What the parts of the service work with. Lifetime: it outlives all of them.
struct ServiceContext {
  ServiceContext(const JobServiceOptions& chosen, Runtime& runtime, rpc::Transport& its_transport,
                 rpc::SnapshotHolder& snapshots, const ApplicationRegistry& registry, JobRecords& job_records,
                 Executor& jobs_executor)
      : options(chosen),
        clock(runtime.clock),
        scheduler(runtime.scheduler),
        bulk(runtime.bulk),
        transport(its_transport),
        snapshot(snapshots),
        applications(registry),
        records(job_records),
        random(runtime.random.fork()),
        metrics(runtime.metrics),
        task_memory(runtime.tunables.declare("mapreduce.task_memory_bytes")),
        job_memory(runtime.tunables.declare("mapreduce.job_memory_bytes")),
        results_retention(runtime.tunables.declare("mapreduce.results_retention")),
        executor(jobs_executor),
        mailbox(jobs_executor),
        own_id(random.next() >> 1 | 1) {}

  /// Returns the newest snapshot; null while it has no cluster state, as the first one that only names the leading
  /// fleet controller.
  std::shared_ptr<const rpc::ClusterSnapshot> fresh_snapshot() {
    if (options.refresh_snapshot) options.refresh_snapshot();
    auto now = snapshot.get();
    return now == nullptr || now->state_version() == 0 ? nullptr : now;
  }

  const JobServiceOptions options;
  Clock& clock;
  Scheduler& scheduler;
  BulkExecutor& bulk;
  rpc::Transport& transport;
  rpc::SnapshotHolder& snapshot;
  const ApplicationRegistry& applications;
  JobRecords& records;
  Random random;
  JobMetrics metrics;
  Tunable& task_memory;
  Tunable& job_memory;
  Tunable& results_retention;
  Executor& executor;  ///< All parts of the service are confined to this executor.
  visitors::Mailbox mailbox;
  const std::uint64_t own_id;  ///< Incarnation of this process.
};

}  // namespace fjord::mapreduce
