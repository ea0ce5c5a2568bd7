#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fjord/mapreduce/application.h"
#include "fjord/mapreduce/job_records.h"
#include "fjord/mapreduce/job_results.h"
#include "fjord/mapreduce/job_service.h"
#include "fjord/mapreduce/task_visitors.h"
#include "visitors/visitor_world.h"

namespace fjord::test {

/// Writes to the world's nodes, each put after `put_takes`.
class WorldSink final : public mapreduce::DocumentSink {
 public:
  explicit WorldSink(VisitorWorld& world) : world_(world) {}
  void put(std::string id, EncodedDocument document, visitors::Mailbox reply_to, Done done) override {
    ++puts;
    under_way_max = std::max(under_way_max, ++under_way);
    world_.scheduler.outside().post_after(put_takes, [this, id = std::move(id), document = std::move(document),
                                                      reply_to, shared = std::make_shared<Done>(std::move(done))] {
      --under_way;
      Status status;
      if (failures > 0) {
        --failures;
        status = failure;
      } else if (refuse && !refuse(id).is_ok()) {
        status = refuse(id);
      } else {
        if (on_put) on_put(id, document);
        world_.put(id, document.header, document.body);
      }
      reply_to.post([shared, status] { (*shared)(status); });
    });
  }
  void remove(std::string id, visitors::Mailbox reply_to, Done done) override {
    world_.remove(id);
    reply_to.post([shared = std::make_shared<Done>(std::move(done))] { (*shared)(Status::ok()); });
  }

  Duration put_takes = milliseconds(1);
  int puts = 0;
  int under_way = 0;
  int under_way_max = 0;
  int failures = 0;  ///< The next `failures` puts fail.
  Status failure{StatusCode::IoError, "the disk is broken"};
  std::function<Status(const std::string& id)> refuse;  ///< Returns the error with which the put of `id` fails.
  std::function<void(const std::string&, const EncodedDocument&)> on_put;

 private:
  VisitorWorld& world_;
};

/// The transport of one incarnation of a process; drops answers that arrive after its end.
class IncarnationTransport final : public rpc::Transport {
 public:
  explicit IncarnationTransport(VisitorWorld& world) : world_(world) {}

  void call(const rpc::Address& to, rpc::Request request, Duration timeout, Executor& executor,
            rpc::ReplyFunction done) override {
    world_.transport.call(to, std::move(request), timeout, *world_.executor,
                          [alive = std::weak_ptr<int>(alive_), &executor,
                           shared = std::make_shared<rpc::ReplyFunction>(std::move(done))](Result<rpc::Reply> reply) {
                            if (alive.expired()) return;
                            executor.post([shared, answer = std::make_shared<Result<rpc::Reply>>(std::move(reply))] {
                              (*shared)(std::move(*answer));
                            });
                          });
  }

 private:
  VisitorWorld& world_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

/// Job records in memory, as they are read after they were encoded. Each call takes a millisecond.
class WorldRecords final : public mapreduce::JobRecords {
 public:
  WorldRecords(VisitorWorld& world, mapreduce::DocumentSink& sink) : world_(world), sink_(sink) {}

  void read(std::string job, visitors::Mailbox reply_to, Done<Result<mapreduce::JobState>> done) override {
    later(std::move(reply_to), std::move(done), [this, job]() -> Result<mapreduce::JobState> {
      if (!is_there) return away();
      const auto it = records.find(job);
      if (it == records.end()) return Status(StatusCode::NotFound, "no record of " + job);
      return it->second;
    });
  }
  void write(mapreduce::JobState record, std::uint64_t expected, visitors::Mailbox reply_to,
             Done<Status> done) override {
    later(std::move(reply_to), std::move(done), [this, record = std::move(record), expected]() -> Status {
      if (!is_there) return away();
      ++writes;
      const auto it = records.find(record.job_id);
      if ((it == records.end() ? 0 : it->second.revision) != expected) {
        return Status(StatusCode::TestAndSetFailed, "another revision");
      }
      records[record.job_id] = mapreduce::decode_job_state(mapreduce::encode_job_state(record)).value();
      if (on_write) on_write(record);
      return Status::ok();
    });
  }
  void remove(std::string job, std::uint64_t expected, visitors::Mailbox reply_to, Done<Status> done) override {
    later(std::move(reply_to), std::move(done), [this, job, expected]() -> Status {
      const auto it = records.find(job);
      if (it != records.end() && it->second.revision == expected) records.erase(it);
      return Status::ok();
    });
  }
  void list(visitors::Mailbox reply_to, Done<Result<std::vector<mapreduce::JobState>>> done) override {
    later(std::move(reply_to), std::move(done), [this] { return all<mapreduce::JobState>(); });
  }
  void list_headers(visitors::Mailbox reply_to, Done<Result<std::vector<mapreduce::JobRecordHeader>>> done) override {
    later(std::move(reply_to), std::move(done), [this] { return all<mapreduce::JobRecordHeader>(); });
  }
  void write_rows(std::string job, const mapreduce::JobRows& given, visitors::Mailbox reply_to,
                  Done<Status> done) override {
    later(std::move(reply_to), std::move(done), [this, job, given]() -> Status {
      if (!are_rows_there) return Status(StatusCode::Timeout, "no answer");
      rows[job] = given;
      return Status::ok();
    });
  }
  void read_rows(std::string job, visitors::Mailbox reply_to, Done<Result<mapreduce::JobRows>> done) override {
    later(std::move(reply_to), std::move(done), [this, job]() -> Result<mapreduce::JobRows> {
      if (!are_rows_there) return Status(StatusCode::Timeout, "no answer");
      if (!rows.contains(job)) return Status(StatusCode::NotFound, "no rows of " + job);
      return rows.at(job);
    });
  }
  void remove_rows(std::string job, visitors::Mailbox reply_to, Done<Status> done) override {
    later(std::move(reply_to), std::move(done), [this, job]() -> Status {
      rows.erase(job);
      return Status::ok();
    });
  }

  mapreduce::DocumentSink& sink() override { return sink_; }

  std::map<std::string, mapreduce::JobState> records;
  std::map<std::string, mapreduce::JobRows> rows;
  int writes = 0;
  bool is_there = true;        ///< False: no record can be read or written.
  bool are_rows_there = true;  ///< False: no rows can be read or written.
  std::function<void(const mapreduce::JobState&)> on_write;

 private:
  template <typename T>
  Result<std::vector<T>> all() const {
    if (!is_there) return away();
    std::vector<T> found;
    for (const auto& [id, record] : records) found.push_back(record);
    return found;
  }
  static Status away() { return Status(StatusCode::Unavailable, "the records are not available"); }

  template <typename D, typename F>
  void later(visitors::Mailbox reply_to, D done, F f) {
    world_.scheduler.outside().post_after(milliseconds(1), [reply_to = std::move(reply_to), f = std::move(f),
                                                            shared = std::make_shared<D>(std::move(done))] {
      auto result = std::make_shared<decltype(f())>(f());
      reply_to.post([shared, result] { (*shared)(std::move(*result)); });
    });
  }

  VisitorWorld& world_;
  mapreduce::DocumentSink& sink_;
};

/// A world whose storage nodes run tasks and whose distributor runs jobs.
class JobWorld {
 public:
  JobWorld(std::uint64_t seed, std::uint16_t nodes, const std::string& schema, mapreduce::TaskOptions tasks = {},
           mapreduce::JobServiceOptions jobs = {})
      : world(seed, nodes, schema),
        sink(world),
        records(world, sink),
        distributor_runtime(world.scheduler, "distributor", seed + 2),
        options(jobs) {
    mapreduce::add_builtin_applications(applications);
    int number = 0;
    for (auto& node : world.nodes) {
      mapreduce::TaskOptions of_node = tasks;
      if (!tasks.spill_directory.empty()) of_node.spill_directory += "/" + std::to_string(number++);
      mapreduce::add_task_visitors(*node.registry, applications, sink, node.runtime->runtime, of_node);
    }
    start_service();
  }
  ~JobWorld() { stop_service(); }

  void start_service() {
    transport = std::make_unique<IncarnationTransport>(world);
    service = std::make_unique<mapreduce::JobService>(options, distributor_runtime.runtime, *transport,
                                                      *distributor_snapshot, *distributor_applications, records);
    world.other_service = service.get();
  }
  void stop_service() {
    world.other_service = nullptr;
    service.reset();
    transport.reset();
  }
  /// Restarts the service, as a restart of the distributor process does.
  void restart_service() {
    stop_service();
    start_service();
  }
  Status control(const std::string& id, rpc::JobAction action, std::vector<rpc::Parameter> settings = {},
                 bool records_too = false) {
    rpc::ControlJob request;
    request.job_id = id;
    request.action = action;
    request.settings = std::move(settings);
    request.records = records_too;
    return ask(std::move(request)).status;
  }

  template <typename R>
  typename R::Reply ask(R request) {
    std::optional<Result<typename R::Reply>> got;
    rpc::call(world.transport, "distributor", std::move(request), seconds(10), *world.executor,
              [&](Result<typename R::Reply> reply) { got = std::move(reply); });
    FJORD_CHECK(world.run_until([&] { return got.has_value(); }));
    if (got->has_value()) return std::move(**got);
    typename R::Reply lost;
    lost.status = got->error();
    return lost;
  }
  Status submit(const std::string& id, const rpc::JobSpec& spec) {
    return ask(rpc::SubmitJob{.job_id = id, .spec = spec}).status;
  }
  rpc::JobStatus status(const std::string& id) {
    auto jobs = ask(rpc::ListJobs{.job_id = id}).jobs;
    FJORD_CHECK(jobs.size() == 1);
    return std::move(jobs[0]);
  }
  /// Runs until the job has ended, at most for `limit`.
  rpc::JobStatus finish(const std::string& id, Duration limit = seconds(600)) {
    const MonotonicTime end = world.scheduler.clock().now() + limit;
    for (;;) {
      rpc::JobStatus now = status(id);
      if (now.finished_unix_us != 0 || world.scheduler.clock().now() > end) return now;
      world.scheduler.run_for(milliseconds(20));
    }
  }
  /// Returns the results in windows of about that size; after an error only the error.
  std::vector<Result<std::vector<mapreduce::KeyedResult>>> windows(const rpc::JobStatus& job, std::uint64_t bytes) {
    mapreduce::JobResults reader(job, world.transport, world.snapshot, world.scheduler.clock(), Random(3),
                                 *world.executor, 0, bytes);
    std::vector<Result<std::vector<mapreduce::KeyedResult>>> all;
    for (;;) {
      std::optional<Result<std::vector<mapreduce::KeyedResult>>> got;
      world.executor->post([&] {
        reader.start([&](Result<std::vector<mapreduce::KeyedResult>> results) { got = std::move(results); });
      });
      FJORD_CHECK(world.run_until([&] { return got.has_value(); }));
      all.push_back(std::move(*got));
      if (!all.back() || all.back()->empty()) return all;
      FJORD_CHECK(all.size() < 10'000);
    }
  }
  Result<std::vector<mapreduce::KeyedResult>> results(const rpc::JobStatus& job) {
    std::optional<Result<std::vector<mapreduce::KeyedResult>>> got;
    mapreduce::JobResults reader(job, world.transport, world.snapshot, world.scheduler.clock(), Random(3),
                                 *world.executor);
    world.executor->post(
        [&] { reader.start([&](Result<std::vector<mapreduce::KeyedResult>> results) { got = std::move(results); }); });
    FJORD_CHECK(world.run_until([&] { return got.has_value(); }));
    return std::move(*got);
  }

  VisitorWorld world;
  WorldSink sink;
  WorldRecords records;
  SimRuntime distributor_runtime;
  mapreduce::ApplicationRegistry applications;
  /// Applications of the next service, if they differ from the storage nodes'.
  const mapreduce::ApplicationRegistry* distributor_applications = &applications;
  /// Cluster snapshot of the next service, if it differs from the world's.
  rpc::SnapshotHolder* distributor_snapshot = &world.snapshot;
  mapreduce::JobServiceOptions options;
  std::unique_ptr<IncarnationTransport> transport;
  std::unique_ptr<mapreduce::JobService> service;
};

}  // namespace fjord::test
