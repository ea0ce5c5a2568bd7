// Reads of the whole cluster while as many storage nodes are away as a document has replicas: whatever is served is
// visited, and a visit that cannot be whole names what is missing.

#include <catch2/catch.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fjord/client/operations.h"
#include "fjord/library/visit.h"
#include "library_world.h"

namespace fjord::sim {
namespace {

constexpr std::uint64_t kAwaySeeds = 8;

SimClusterOptions shape_of_two(std::uint64_t seed, unsigned storage_nodes) {
  SimClusterOptions options = shape(seed);
  options.storage_nodes = storage_nodes;
  options.redundancy = 2;
  options.distributors = 1 + static_cast<unsigned>(seed % 3);
  return options;
}

Status change_state(World& world, rpc::NodeAction action, std::vector<std::string> nodes) {
  std::optional<Status> status;
  rpc::ChangeNodes change;
  change.action = action;
  change.nodes = std::move(nodes);
  change.who = "simulation";
  world.cluster.admin().call_any(std::move(change), seconds(30), [&](Result<rpc::ChangeNodesReply> reply) {
    status = !reply                    ? reply.error()
             : reply->refusals.empty() ? reply->status
                                       : Status(StatusCode::NotReady, reply->refusals.front());
  });
  REQUIRE(world.cluster.run_until([&] { return status.has_value(); }, seconds(60)));
  return *status;
}

/// Repeats the change until the controller makes it: it refuses while buckets are not in sync.
void stop_for_a_while(World& world, const std::vector<std::string>& nodes) {
  Status last = change_state(world, rpc::NodeAction::Maintenance, nodes);
  for (int tries = 0; !last && tries < 60; ++tries) {
    world.cluster.scheduler().run_for(seconds(1));
    last = change_state(world, rpc::NodeAction::Maintenance, nodes);
  }
  INFO(last.to_string());
  REQUIRE(last.is_ok());
  for (const std::string& node : nodes) world.cluster.crash(node);
}

/// Returns the ids that a visit of everything gives; `status` is its end.
std::set<std::string> visit_all(LibraryProcess& process, Status& status) {
  VisitOptions options;
  options.no_progress_limit = seconds(20);
  Visit visit(process.core(), options);
  std::set<std::string> ids;
  while (const Document* document = visit.next()) ids.insert(document->id().str());
  status = visit.status();
  return ids;
}

/// Runs a job over all documents until it has ended.
rpc::JobStatus run_job(World& world, rpc::Shuffle shuffle) {
  rpc::SubmitJob submit;
  submit.job_id = world.writer->new_job_id();
  submit.spec.application = "fieldstats";
  submit.spec.document_type = "item";
  submit.spec.parameters = {{"group", "value"}, {"value", "value"}};
  submit.spec.shuffle = shuffle;
  std::optional<Status> submitted;
  world.writer->call_any(submit, seconds(60),
                         [&](Result<rpc::SubmitJobReply> reply) { submitted = reply ? reply->status : reply.error(); });
  REQUIRE(world.cluster.run_until([&] { return submitted.has_value(); }, seconds(90)));
  INFO(submitted->to_string());
  REQUIRE(submitted->is_ok());
  rpc::ListJobs list;
  list.job_id = submit.job_id;
  rpc::JobStatus status;
  for (int tries = 0; status.finished_unix_us == 0 && tries < 600; ++tries) {
    bool is_answered = false;
    world.writer->call_all(list, seconds(2), [&](auto answers) {
      is_answered = true;
      if (!answers) return;
      for (auto& [address, reply] : *answers) {
        if (reply && !reply->jobs.empty()) status = reply->jobs.front();
      }
    });
    REQUIRE(world.cluster.run_until([&] { return is_answered; }, seconds(10)));
    world.cluster.scheduler().run_for(milliseconds(100));
  }
  return status;
}

/// Checks that everything is read by a visit, and by jobs whose tuples are documents or messages.
void check_whole(World& world, LibraryProcess& process) {
  Status status;
  CHECK(visit_all(process, status).size() == world.live.size());
  INFO(status.to_string());
  CHECK(status.is_ok());
  for (const rpc::Shuffle shuffle : {rpc::Shuffle::Store, rpc::Shuffle::Direct}) {
    const rpc::JobStatus job = run_job(world, shuffle);
    INFO(job.error.to_string());
    CHECK(job.phase == rpc::JobPhase::Done);
    CHECK(job.documents_read == world.live.size());
  }
}

}  // namespace

TEST_CASE("library: with one rack of two in maintenance everything is visited, and jobs complete") {
  for (std::uint64_t seed = 1; seed <= kAwaySeeds; ++seed) {
    INFO("seed " << seed);
    SimClusterOptions options = shape_of_two(seed, 4);
    options.distribution = "redundancy:2 (root (a 0 1) (b 2 3))";
    World world(options);
    LibraryProcess process(world.cluster);
    stop_for_a_while(world, {"storage.2", "storage.3"});
    for (unsigned n = 0; n < kDocuments; n += 3) world.put(n);
    world.settle();
    check_whole(world, process);
  }
}

TEST_CASE("library: a storage node ends, its replicas are made again, another one ends: everything is visited") {
  for (std::uint64_t seed = 1; seed <= kAwaySeeds; ++seed) {
    INFO("seed " << seed);
    World world(shape_of_two(seed, 3 + static_cast<unsigned>(seed % 2)));
    LibraryProcess process(world.cluster);
    world.cluster.crash_storage(static_cast<unsigned>(seed % 3));
    world.cluster.scheduler().run_for(seconds(20));
    world.cluster.crash_storage(static_cast<unsigned>((seed + 1) % 3));
    world.cluster.scheduler().run_for(seconds(10));
    // Ids that nothing was written to before, so that some of them are in buckets without documents.
    for (unsigned n = kDocuments; n < 2 * kDocuments && seed % 2 == 0; ++n) world.put(n);
    world.settle();
    check_whole(world, process);
  }
}

TEST_CASE("library: two storage nodes end at once: the visit gives what is served and names what is not") {
  for (std::uint64_t seed = 1; seed <= kAwaySeeds; ++seed) {
    INFO("seed " << seed);
    World world(shape_of_two(seed, 4));
    LibraryProcess process(world.cluster);
    world.cluster.crash_storage(1);
    world.cluster.crash_storage(2);
    world.cluster.scheduler().run_for(seconds(10));
    Status status;
    const std::set<std::string> ids = visit_all(process, status);
    CHECK(status.code() == StatusCode::Unavailable);
    CHECK_THAT(status.message(),
               Catch::Contains("bucket 0x") && Catch::Contains("storage.1") && Catch::Contains("storage.2"));
    CHECK(!ids.empty());
    CHECK(ids.size() < kDocuments);
    world.cluster.restart_storage(1);
    world.cluster.restart_storage(2);
    REQUIRE(world.cluster.run_until_steady(seconds(120)));
    check_whole(world, process);
  }
}

}  // namespace fjord::sim
