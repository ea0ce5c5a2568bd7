#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fjord/mapreduce/application.h"
#include "fjord/mapreduce/job_results.h"
#include "fjord/mapreduce/job_service.h"
#include "fjord/mapreduce/task_visitors.h"
#include "visitors/visitor_world.h"

namespace fjord::test {

/// Writes to the world's nodes, a millisecond later.
class WorldSink final : public mapreduce::DocumentSink {
 public:
  explicit WorldSink(VisitorWorld& world) : world_(world) {}
  void put(std::string id, EncodedDocument document, visitors::Mailbox reply_to, Done done) override {
    ++puts;
    under_way_max = std::max(under_way_max, ++under_way);
    world_.scheduler.outside().post_after(milliseconds(1),
                                          [this, id = std::move(id), document = std::move(document), reply_to,
                                           shared = std::make_shared<Done>(std::move(done))] {
                                            --under_way;
                                            Status status;
                                            if (failures > 0) {
                                              --failures;
                                              status = failure;
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

  int puts = 0;
  int under_way = 0;
  int under_way_max = 0;
  int failures = 0;  ///< So many puts fail from now on.
  Status failure{StatusCode::IoError, "the disk is broken"};
  std::function<void(const std::string&, const EncodedDocument&)> on_put;

 private:
  VisitorWorld& world_;
};

/// A world whose nodes run tasks and whose distributor runs jobs.
class JobWorld {
 public:
  JobWorld(std::uint64_t seed, std::uint16_t nodes, const std::string& schema, mapreduce::TaskOptions tasks = {},
           mapreduce::JobServiceOptions jobs = {})
      : world(seed, nodes, schema), sink(world), distributor_runtime(world.scheduler, "distributor", seed + 2) {
    mapreduce::add_builtin_applications(applications);
    int number = 0;
    for (auto& node : world.nodes) {
      mapreduce::TaskOptions of_node = tasks;
      if (!tasks.spill_directory.empty()) of_node.spill_directory += "/" + std::to_string(number++);
      mapreduce::add_task_visitors(*node.registry, applications, sink, node.runtime->runtime, of_node);
    }
    service = std::make_unique<mapreduce::JobService>(jobs, distributor_runtime.runtime, world.transport,
                                                      world.snapshot, applications);
    world.other_service = service.get();
  }
  ~JobWorld() {
    world.other_service = nullptr;
    service.reset();
  }

  template <typename R>
  typename R::Reply ask(R request) {
    std::optional<Result<typename R::Reply>> got;
    rpc::call(world.transport, "distributor", std::move(request), seconds(10), *world.executor,
              [&](Result<typename R::Reply> reply) { got = std::move(reply); });
    FJORD_CHECK(world.run_until([&] { return got.has_value(); }));
    FJORD_CHECK(got->has_value());
    return std::move(**got);
  }
  Status submit(const std::string& id, const rpc::JobSpec& spec) {
    return ask(rpc::SubmitJob{.job_id = id, .spec = spec}).status;
  }
  rpc::JobStatus status(const std::string& id) {
    auto jobs = ask(rpc::ListJobs{.job_id = id}).jobs;
    FJORD_CHECK(jobs.size() == 1);
    return std::move(jobs[0]);
  }
  /// Runs it to its end, or until `limit`.
  rpc::JobStatus finish(const std::string& id, Duration limit = seconds(600)) {
    const MonotonicTime end = world.scheduler.clock().now() + limit;
    for (;;) {
      rpc::JobStatus now = status(id);
      if (now.finished_unix_us != 0 || world.scheduler.clock().now() > end) return now;
      world.scheduler.run_for(milliseconds(20));
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
  SimRuntime distributor_runtime;
  mapreduce::ApplicationRegistry applications;
  std::unique_ptr<mapreduce::JobService> service;
};

}  // namespace fjord::test
