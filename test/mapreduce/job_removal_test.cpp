#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "mapreduce/job_world.h"
#include "mapreduce/place_world.h"

namespace fjord {
namespace {

using test::JobWorld;
using test::kPlaceSchema;
using test::put_places;
using test::spec_of;

std::set<std::string> jobs_with_results(JobWorld& jobs) {
  std::set<std::string> found;
  for (const auto& [id, content] : jobs.world.stored("fjord_result")) {
    const std::string rest = id.substr(id.rfind(':') + 1);
    found.insert(rest.substr(0, rest.find('/')));
  }
  return found;
}

rpc::JobStatus run(JobWorld& jobs, const std::string& id, rpc::Shuffle shuffle) {
  // The low rate makes a direct job long: a short direct job would have no record.
  std::vector<rpc::Parameter> settings;
  if (shuffle == rpc::Shuffle::Direct) settings = {{"throttle", "2kB"}};
  REQUIRE(jobs.submit(id, spec_of(shuffle, settings)).is_ok());
  const auto status = jobs.finish(id);
  REQUIRE(status.phase == rpc::JobPhase::Done);
  jobs.world.scheduler.run_for(seconds(1));  // Waits until the record is written.
  return status;
}

rpc::JobStatus listed(JobWorld& jobs, const std::string& id) {
  const auto all = jobs.ask(rpc::ListJobs{.job_id = id, .records = true}).jobs;
  return all.empty() ? rpc::JobStatus() : all.front();
}

Status control(JobWorld& jobs, rpc::JobAction action) { return jobs.control("job", action, {}, true); }

TEST_CASE("the results of a job are removed when that is asked for, and the job is still known") {
  JobWorld jobs(21, 2, kPlaceSchema);
  put_places(jobs, 200);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  const bool is_elsewhere = GENERATE(false, true);
  run(jobs, "other", shuffle);
  run(jobs, "job", shuffle);
  if (is_elsewhere) jobs.restart_service();
  CHECK(control(jobs, rpc::JobAction::RemoveResults).is_ok());
  if (shuffle == rpc::Shuffle::Store) CHECK(jobs_with_results(jobs) == std::set<std::string>{"other"});
  CHECK_FALSE(jobs.records.rows.contains("job"));
  const auto status = listed(jobs, "job");
  CHECK(status.phase == rpc::JobPhase::Done);
  CHECK(status.results_removed);
  CHECK(status.results_until_unix_us == 0);
  const auto results = jobs.results(status);
  REQUIRE_FALSE(results.has_value());
  CHECK(results.error().code() == StatusCode::NotFound);
  CHECK(jobs.results(listed(jobs, "other")).has_value());
  CHECK(control(jobs, rpc::JobAction::RemoveResults).is_ok());  // The job accepts a repeated request.
}

TEST_CASE("a job is removed with its results when that is asked for") {
  JobWorld jobs(22, 2, kPlaceSchema);
  put_places(jobs, 200);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  const bool is_elsewhere = GENERATE(false, true);
  run(jobs, "job", shuffle);
  if (is_elsewhere) jobs.restart_service();
  CHECK(control(jobs, rpc::JobAction::Remove).is_ok());
  CHECK(jobs_with_results(jobs).empty());
  CHECK(jobs.records.rows.empty());
  CHECK(jobs.records.records.empty());
  CHECK(listed(jobs, "job").job_id.empty());
  CHECK(control(jobs, rpc::JobAction::Remove).code() == StatusCode::NotFound);
  run(jobs, "job", shuffle);  // Another job can have the name again.
  CHECK(jobs.results(listed(jobs, "job")).has_value());
}

TEST_CASE("a job that runs is not removed") {
  JobWorld jobs(23, 2, kPlaceSchema);
  put_places(jobs, 200);
  REQUIRE(jobs.submit("job", spec_of(rpc::Shuffle::Store, {{"throttle", "500"}})).is_ok());
  for (const auto action : {rpc::JobAction::Remove, rpc::JobAction::RemoveResults}) {
    const Status status = control(jobs, action);
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(status.message().find("cancel it first") != std::string::npos);
  }
  CHECK(jobs.finish("job").phase == rpc::JobPhase::Done);
}

TEST_CASE("results are removed when they are older than they are kept, and until then it is said how long that is") {
  JobWorld jobs(24, 2, kPlaceSchema);
  put_places(jobs, 200);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  auto status = run(jobs, "job", shuffle);
  status = listed(jobs, "job");
  CHECK(status.results_until_unix_us - status.finished_unix_us == Duration(std::chrono::hours(24 * 7)).count());
  REQUIRE(jobs.distributor_runtime.tunables.set("mapreduce.results_retention", 60'000).is_ok());
  CHECK(listed(jobs, "job").results_until_unix_us - status.finished_unix_us == 60'000'000);
  jobs.world.scheduler.run_for(seconds(40));
  CHECK(jobs.results(listed(jobs, "job")).has_value());
  if (GENERATE(false, true)) jobs.restart_service();
  jobs.world.scheduler.run_for(seconds(40));
  CHECK(jobs_with_results(jobs).empty());
  CHECK(jobs.records.rows.empty());
  status = listed(jobs, "job");
  CHECK(status.phase == rpc::JobPhase::Done);
  CHECK(status.results_removed);
  const int writes = jobs.records.writes;
  jobs.world.scheduler.run_for(seconds(60));
  CHECK(jobs.records.writes == writes);  // The removal happens only once.

  REQUIRE(jobs.distributor_runtime.tunables.set("mapreduce.results_retention", 0).is_ok());
  run(jobs, "kept", shuffle);
  jobs.world.scheduler.run_for(seconds(600));
  CHECK(listed(jobs, "kept").results_until_unix_us == 0);
  CHECK(jobs.results(listed(jobs, "kept")).has_value());
}

}  // namespace
}  // namespace fjord
