#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <map>

#include "mapreduce/job_world.h"
#include "mapreduce/place_world.h"

namespace fjord {
namespace {

using test::JobWorld;
using test::kPlaceSchema;
using test::put_places;
using test::spec_of;

void check_results(JobWorld& jobs, const rpc::JobStatus& status, const std::map<std::string, int>& counts) {
  INFO(status.error);
  REQUIRE(status.phase == rpc::JobPhase::Done);
  const auto results = jobs.results(status);
  INFO(results.status());
  REQUIRE(results.has_value());
  CHECK(results->size() == counts.size());
  for (const auto& [city, value] : *results) {
    REQUIRE(counts.contains(city));
    const std::string n = std::to_string(counts.at(city));
    CHECK(value == R"({"count":)" + n + R"(,"sum":)" + n + R"(,"min":1,"max":1,"avg":1.0})");
  }
}

/// Waits for the end of the job, whichever process runs it, and returns its status.
rpc::JobStatus follow(JobWorld& jobs, const std::string& id, Duration limit = seconds(120)) {
  const MonotonicTime end = jobs.world.scheduler.clock().now() + limit;
  rpc::JobStatus last;
  while (jobs.world.scheduler.clock().now() < end) {
    auto known = jobs.ask(rpc::ListJobs{.job_id = id, .records = true, .dead_letters = true}).jobs;
    if (!known.empty()) last = std::move(known.front());
    if (last.finished_unix_us != 0) return last;
    jobs.world.scheduler.run_for(milliseconds(20));
  }
  return last;
}

mapreduce::JobServiceOptions recorded_at_once() {
  mapreduce::JobServiceOptions options;
  options.record_after = Duration(0);
  options.renew_interval = milliseconds(3);
  return options;
}

TEST_CASE("a job goes on after the end of its process, whatever it was doing") {
  JobWorld jobs(1, 3, kPlaceSchema, {}, recorded_at_once());
  const auto counts = put_places(jobs, 500);
  const auto phase = GENERATE(rpc::JobPhase::Queued, rpc::JobPhase::Map, rpc::JobPhase::Reduce, rpc::JobPhase::CleanUp);
  bool ended = false;
  std::uint64_t done = 0;
  jobs.records.on_write = [&](const mapreduce::JobState& record) {
    const bool is_then = record.phase == phase && (phase != rpc::JobPhase::Map || record.counts.map_tasks_done > 3);
    if (!is_then || ended) return;
    ended = true;
    done = record.counts.map_tasks_done;
    jobs.world.scheduler.outside().post([&] { jobs.restart_service(); });
  };
  const Status submitted = jobs.submit("job", spec_of(rpc::Shuffle::Store, {{"visitors_per_node", "1"}}));
  REQUIRE((submitted.is_ok() || ended));
  const auto status = follow(jobs, "job");
  REQUIRE(ended);
  check_results(jobs, status, counts);
  CHECK(status.documents_read == 500);
  CHECK(status.map_tasks_done == 16);
  CHECK(status.map_tasks == 16);
  CHECK(status.taken_over == 1);
  CHECK(status.epoch == 2);
  CHECK(status.run == 0);  // Zero: map was not restarted.
  // An answer to a client lacks the part of the record that only the next owner needs.
  CHECK(status.resume.empty());
  CHECK(status.expected.empty());
  CHECK(jobs.world.stored("fjord_tuples").empty());
  if (phase == rpc::JobPhase::Map) CHECK(done < 16);
}

TEST_CASE("a direct job begins anew after the end of its process, and its results outlive the next one") {
  JobWorld jobs(2, 2, kPlaceSchema, {}, recorded_at_once());
  const auto counts = put_places(jobs, 300);
  bool ended = false;
  jobs.records.on_write = [&](const mapreduce::JobState& record) {
    if (ended || record.phase != rpc::JobPhase::Map || record.counts.map_tasks_done == 0) return;
    ended = true;
    jobs.world.scheduler.outside().post([&] { jobs.restart_service(); });
  };
  REQUIRE(jobs.submit("job", spec_of(rpc::Shuffle::Direct, {{"throttle", "2kB"}})).is_ok());
  const auto status = follow(jobs, "job");
  REQUIRE(ended);
  check_results(jobs, status, counts);
  CHECK(status.documents_read == 300);
  CHECK(status.run == 1);
  jobs.world.scheduler.run_for(seconds(1));
  jobs.restart_service();
  check_results(jobs, follow(jobs, "job"), counts);
}

TEST_CASE("a direct job that is over soon has no record, and a longer one gets one") {
  JobWorld jobs(3, 2, kPlaceSchema);
  const auto counts = put_places(jobs, 100);
  REQUIRE(jobs.submit("short", spec_of(rpc::Shuffle::Direct)).is_ok());
  check_results(jobs, jobs.finish("short"), counts);
  jobs.world.scheduler.run_for(seconds(5));
  CHECK(jobs.records.writes == 0);
  REQUIRE(jobs.submit("long", spec_of(rpc::Shuffle::Direct, {{"throttle", "500"}})).is_ok());
  jobs.world.scheduler.run_for(milliseconds(400));
  CHECK(jobs.records.records.contains("long"));
  check_results(jobs, jobs.finish("long"), counts);
  jobs.world.scheduler.run_for(seconds(1));
  CHECK(jobs.records.records.at("long").phase == rpc::JobPhase::Done);
  CHECK(jobs.records.rows.at("long").size() == counts.size());
}

TEST_CASE("who was taken to be gone stops when it sees that another process has its job") {
  JobWorld jobs(4, 2, kPlaceSchema);
  put_places(jobs, 300);
  REQUIRE(jobs.submit("job", spec_of(rpc::Shuffle::Store, {{"throttle", "100"}})).is_ok());
  jobs.world.scheduler.run_for(seconds(2));
  REQUIRE(jobs.status("job").phase == rpc::JobPhase::Map);
  mapreduce::JobState& record = jobs.records.records.at("job");
  ++record.epoch;
  ++record.revision;
  record.owner = "distributor.1";
  record.owner_id = 77;
  const std::uint64_t revision = record.revision;
  const int puts = [&] {
    jobs.world.scheduler.run_for(seconds(4));
    return jobs.sink.puts;
  }();
  jobs.world.scheduler.run_for(milliseconds(100));
  CHECK(jobs.records.records.at("job").owner_id != 77);  // The owner, distributor.1, is not up: the job was taken over.
  CHECK(jobs.records.records.at("job").revision > revision);
  CHECK(jobs.records.records.at("job").taken_over == 1);
  CHECK(puts > 0);
  CHECK(follow(jobs, "job").epoch == 3);
}

TEST_CASE("a process that has heard only who leads does not say that there is no such document type") {
  JobWorld jobs(4, 2, kPlaceSchema);
  const auto counts = put_places(jobs, 100);
  rpc::SnapshotHolder young;
  rpc::ClusterInfo only_who_leads;
  only_who_leads.term = 1;
  REQUIRE(young.update(only_who_leads).has_value());
  REQUIRE(young.get() != nullptr);
  jobs.distributor_snapshot = &young;
  jobs.restart_service();
  CHECK(jobs.submit("job", spec_of(rpc::Shuffle::Direct)).code() == StatusCode::NotReady);
  jobs.world.scheduler.run_for(seconds(10));
  rpc::ClusterInfo all = jobs.world.snapshot.get()->info();
  all.term = 1;
  const auto updated = young.update(all);
  INFO(updated.status());
  REQUIRE(updated.has_value());
  REQUIRE(jobs.submit("job", spec_of(rpc::Shuffle::Direct)).is_ok());
  check_results(jobs, jobs.finish("job"), counts);
  jobs.stop_service();
}

TEST_CASE("a job that was submitted again, and is over, is ended where it was run before") {
  JobWorld jobs(4, 2, kPlaceSchema);
  const auto counts = put_places(jobs, 300);
  REQUIRE(jobs.submit("job", spec_of(rpc::Shuffle::Direct)).is_ok());
  const rpc::JobStatus done = jobs.finish("job");
  REQUIRE(jobs.records.writes == 0);
  // The client had paused the job at a process that was then suspended for so long that it counted as gone.
  mapreduce::JobState before;
  before.job_id = "job";
  before.spec = done.spec;
  before.phase = rpc::JobPhase::Map;
  before.paused = true;
  before.owner = "distributor.1";
  before.owner_id = 77;
  before.epoch = 2;
  before.revision = 5;
  jobs.records.records["job"] = before;
  jobs.world.scheduler.run_for(seconds(5));
  const mapreduce::JobState& record = jobs.records.records.at("job");
  CHECK(record.phase == rpc::JobPhase::Done);
  CHECK(record.finished_unix_us == done.finished_unix_us);
  CHECK_FALSE(record.paused);
  CHECK(record.epoch == 3);
  CHECK(record.revision == 6);
  CHECK(record.owner_id != 77);
  CHECK(jobs.records.rows.at("job").size() == counts.size());
  jobs.world.scheduler.run_for(seconds(20));
  CHECK(jobs.records.records.at("job").revision == 6);
}

TEST_CASE("a job of a process that is up is taken over when its lease has run out, not before") {
  mapreduce::JobServiceOptions options;
  options.name = "distributor.5";
  JobWorld jobs(5, 2, kPlaceSchema, {}, options);
  const auto counts = put_places(jobs, 100);
  mapreduce::JobState record;
  record.job_id = "job";
  record.spec = spec_of(rpc::Shuffle::Store);
  record.phase = rpc::JobPhase::Queued;
  record.owner = "distributor.0";
  record.owner_id = 5;
  record.epoch = record.revision = 1;
  jobs.records.records["job"] = record;
  jobs.world.scheduler.run_for(seconds(8));
  CHECK(jobs.records.records.at("job").revision == 1);
  ++jobs.records.records.at("job").revision;  // The owner renews its record.
  jobs.world.scheduler.run_for(seconds(8));
  CHECK(jobs.records.records.at("job").revision == 2);
  const auto status = follow(jobs, "job");
  check_results(jobs, status, counts);
  CHECK(status.owner == "distributor.5");
}

TEST_CASE("a job goes on while its record cannot be written, and waits for it where others must know") {
  JobWorld jobs(6, 2, kPlaceSchema);
  const auto counts = put_places(jobs, 200);
  bool is_gone = false;
  jobs.records.on_write = [&](const mapreduce::JobState& record) {
    if (record.phase == rpc::JobPhase::Map && !std::exchange(is_gone, true)) jobs.records.is_there = false;
  };
  REQUIRE(jobs.submit("job", spec_of(rpc::Shuffle::Store)).is_ok());
  jobs.world.scheduler.run_for(seconds(60));
  CHECK(jobs.status("job").map_tasks_done == 16);
  CHECK(jobs.status("job").finished_unix_us == 0);
  CHECK(jobs.status("job").bound_by == "its record");
  jobs.records.is_there = true;
  check_results(jobs, jobs.finish("job", seconds(20)), counts);
}

TEST_CASE("a job that needs a record is refused while the cluster is down, with the reason") {
  JobWorld jobs(4, 2, kPlaceSchema);
  const auto counts = put_places(jobs, 100);
  jobs.restart_service();
  rpc::ClusterInfo info = jobs.world.snapshot.get()->info();
  ++info.state_version;
  info.state = fmt::format("version:{} cluster:d bits:4 storage:4 distributor:1", info.state_version);
  REQUIRE(jobs.world.snapshot.update(info).has_value());
  const Status status = jobs.submit("job", spec_of(rpc::Shuffle::Store));
  CHECK(status.code() == StatusCode::Unavailable);
  CHECK_THAT(status.message(), Catch::Contains("no job is accepted: the cluster is down"));
  CHECK(jobs.submit("direct", spec_of(rpc::Shuffle::Direct)).is_ok());
}

TEST_CASE("a job is not done before its results are beside its record") {
  JobWorld jobs(7, 2, kPlaceSchema, {}, recorded_at_once());
  const auto counts = put_places(jobs, 200);
  jobs.records.are_rows_there = false;
  REQUIRE(jobs.submit("job", spec_of(rpc::Shuffle::Direct, {{"throttle", "20kB"}})).is_ok());
  jobs.world.scheduler.run_for(seconds(5));
  CHECK(jobs.records.records.at("job").finished_unix_us == 0);
  SECTION("which its process writes") {}
  SECTION("which the next one makes again") { jobs.restart_service(); }
  jobs.records.are_rows_there = true;
  check_results(jobs, follow(jobs, "job"), counts);
  jobs.world.scheduler.run_for(seconds(5));
  CHECK(jobs.records.rows["job"].size() == counts.size());
  CHECK(jobs.records.records.at("job").finished_unix_us != 0);
}

TEST_CASE("a record that was late does not say that its job is done before the results are beside it") {
  JobWorld jobs(17, 2, kPlaceSchema, {}, recorded_at_once());
  const auto counts = put_places(jobs, 200);
  REQUIRE(jobs.submit("job", spec_of(rpc::Shuffle::Direct, {{"throttle", "2kB"}})).is_ok());
  jobs.world.scheduler.run_for(milliseconds(10));
  REQUIRE(jobs.records.records.contains("job"));
  jobs.records.is_there = false;
  jobs.records.are_rows_there = false;
  jobs.world.scheduler.run_for(seconds(20));
  CHECK(jobs.status("job").phase == rpc::JobPhase::Done);
  const std::uint64_t before = jobs.records.records.at("job").revision;
  jobs.records.is_there = true;
  jobs.world.scheduler.run_for(seconds(5));
  CHECK(jobs.records.records.at("job").revision > before);
  CHECK(jobs.records.records.at("job").finished_unix_us == 0);
  jobs.restart_service();
  jobs.records.are_rows_there = true;
  check_results(jobs, follow(jobs, "job"), counts);
  CHECK(jobs.records.rows["job"].size() == counts.size());
}

TEST_CASE("a process that has forgotten the results of its job reads them beside the record") {
  mapreduce::JobServiceOptions options = recorded_at_once();
  options.results_kept_bytes = 1;
  JobWorld jobs(8, 2, kPlaceSchema, {}, options);
  const auto counts = put_places(jobs, 200);
  for (const char* id : {"first", "second"}) {
    REQUIRE(jobs.submit(id, spec_of(rpc::Shuffle::Direct, {{"throttle", "20kB"}})).is_ok());
    check_results(jobs, follow(jobs, id), counts);
  }
  check_results(jobs, follow(jobs, "first"), counts);
  jobs.records.rows.clear();
  const auto gone = jobs.results(follow(jobs, "first"));
  CHECK(gone.status().code() == StatusCode::NotFound);
}

TEST_CASE("a paused job does nothing within a second, and goes on where it was") {
  JobWorld jobs(7, 2, kPlaceSchema);
  const auto counts = put_places(jobs, 500);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  REQUIRE(jobs.submit("job", spec_of(shuffle, {{"throttle", "1kB"}})).is_ok());
  REQUIRE(jobs.world.run_until(
      [&] { return jobs.world.transport.calls("createVisitor") > (shuffle == rpc::Shuffle::Store ? 4 : 2); },
      seconds(20)));
  REQUIRE(jobs.control("job", rpc::JobAction::Pause).is_ok());
  jobs.world.scheduler.run_for(seconds(1));
  const auto paused = jobs.status("job");
  CHECK(paused.paused);
  CHECK(paused.bound_by == "paused");
  CHECK(paused.phase == rpc::JobPhase::Map);
  CHECK(paused.map_tasks_done > 0);
  CHECK(paused.map_tasks_done < 16);
  const int created = jobs.world.transport.calls("createVisitor");
  const int puts = jobs.sink.puts;
  if (GENERATE(false, true)) {
    jobs.restart_service();
    jobs.world.scheduler.run_for(seconds(30));
    CHECK(jobs.status("job").paused);
    CHECK(jobs.status("job").taken_over == 1);
  } else {
    jobs.world.scheduler.run_for(seconds(300));
    CHECK(jobs.status("job").map_tasks_done == paused.map_tasks_done);
  }
  CHECK(jobs.world.transport.calls("createVisitor") == created);
  CHECK(jobs.sink.puts == puts);
  REQUIRE(jobs.control("job", rpc::JobAction::Set, {{"throttle", "0"}}).is_ok());
  REQUIRE(jobs.control("job", rpc::JobAction::Resume).is_ok());
  const auto status = jobs.finish("job", seconds(10));
  check_results(jobs, status, counts);
  CHECK(status.documents_read == 500);
}

TEST_CASE("a job can be paused again and again, at any moment") {
  JobWorld jobs(8, 3, kPlaceSchema);
  const auto counts = put_places(jobs, 400);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  const auto step = GENERATE(1, 3, 7, 12);
  REQUIRE(jobs.submit("job", spec_of(shuffle)).is_ok());
  for (int i = 0; i < 40 && jobs.status("job").finished_unix_us == 0; ++i) {
    jobs.world.scheduler.run_for(milliseconds(step));
    (void)jobs.control("job", i % 2 == 0 ? rpc::JobAction::Pause : rpc::JobAction::Resume).is_ok();
  }
  (void)jobs.control("job", rpc::JobAction::Resume).is_ok();
  const auto status = jobs.finish("job", seconds(20));
  check_results(jobs, status, counts);
  CHECK(status.documents_read == 400);
  CHECK(jobs.world.stored("fjord_tuples").empty());
}

TEST_CASE("what is asked of a job without an owner is done when it has one") {
  JobWorld jobs(9, 2, kPlaceSchema);
  put_places(jobs, 300);
  REQUIRE(jobs.submit("job", spec_of(rpc::Shuffle::Store, {{"throttle", "1kB"}})).is_ok());
  jobs.world.scheduler.run_for(seconds(1));
  jobs.restart_service();
  CHECK(jobs.control("job", rpc::JobAction::Cancel).code() == StatusCode::NotFound);
  CHECK(jobs.control("none", rpc::JobAction::Cancel, {}, true).code() == StatusCode::NotFound);
  REQUIRE(jobs.control("job", rpc::JobAction::Cancel, {}, true).is_ok());
  const auto status = follow(jobs, "job");
  CHECK(status.phase == rpc::JobPhase::Cancelled);
  CHECK(jobs.world.stored("fjord_tuples").empty());
}

TEST_CASE("jobs are cancelled within a second, paused or not, and settings change while they run") {
  JobWorld jobs(10, 2, kPlaceSchema);
  put_places(jobs, 300);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  REQUIRE(jobs.submit("job", spec_of(shuffle, {{"throttle", "10"}})).is_ok());
  jobs.world.scheduler.run_for(seconds(3));
  CHECK(jobs.control("job", rpc::JobAction::Set, {{"throttle", "much"}}).code() == StatusCode::InvalidArgument);
  REQUIRE(jobs.control("job", rpc::JobAction::Set, {{"cpu_max", "1000"}}).is_ok());
  const auto now = jobs.status("job");
  CHECK(now.settings == std::vector<rpc::Parameter>{{"cpu_max", "1000"}, {"throttle", "10"}});
  CHECK(now.bound_by == "throttle");
  CHECK(now.live);
  if (GENERATE(false, true)) REQUIRE(jobs.control("job", rpc::JobAction::Pause).is_ok());
  REQUIRE(jobs.control("job", rpc::JobAction::Cancel).is_ok());
  const auto status = jobs.finish("job", seconds(1));
  CHECK(status.phase == rpc::JobPhase::Cancelled);
  CHECK(jobs.world.stored("fjord_tuples").empty());
}

TEST_CASE("documents that map fails on are dead letters: counted, listed, and no more than allowed") {
  JobWorld jobs(11, 2, kPlaceSchema);
  const auto counts = put_places(jobs, 300);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  REQUIRE(jobs.submit("job", spec_of(shuffle, {}, "error")).is_ok());
  auto status = jobs.finish("job");
  check_results(jobs, status, counts);
  CHECK(status.dead_letters == 30);
  CHECK(status.documents_read == 300);
  CHECK(status.dead_letter_list.empty());
  status = jobs.ask(rpc::ListJobs{.job_id = "job", .dead_letters = true}).jobs.at(0);
  std::set<std::string> ids;
  for (const auto& letter : status.dead_letter_list) {
    ids.insert(letter.document);
    CHECK(letter.error.find("it has no city") != std::string::npos);
  }
  CHECK(ids.size() == 30);
  CHECK(ids.contains("id:t:place:n=290:290"));

  REQUIRE(jobs.submit("few", spec_of(shuffle, {{"dead_letters_max", "29"}}, "error")).is_ok());
  status = jobs.finish("few");
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.error.message().find("more than 29 documents") != std::string::npos);
  REQUIRE(jobs.submit("none", spec_of(shuffle, {{"dead_letters_max", "0"}}, "error")).is_ok());
  status = jobs.finish("none");
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.error.message().find("it has no city") != std::string::npos);
  CHECK(jobs.world.stored("fjord_tuples").empty());
}

/// An application that emits a tuple and then fails on the document.
class Moody final : public mapreduce::Application {
 public:
  Status configure(const mapreduce::ApplicationParameters&, const DocumentType&) override { return Status::ok(); }
  Status map(const DocumentView& document, mapreduce::Emitter& emitter) override {
    emitter.emit("all", "1");
    if (document.id().ends_with("3")) throw std::runtime_error("a three");
    if (document.id().ends_with("4")) return Status(StatusCode::InvalidArgument, "a four");
    return Status::ok();
  }
  Status reduce(std::string_view, std::span<const std::string_view> values, mapreduce::ResultEmitter& out) override {
    out.emit(std::to_string(values.size()));
    return Status::ok();
  }
};

TEST_CASE("nothing that map emitted for a dead letter counts, also if it threw") {
  JobWorld jobs(12, 2, kPlaceSchema);
  jobs.applications.add({"moody", "For tests.", {}, [] { return std::make_unique<Moody>(); }});
  put_places(jobs, 200);
  rpc::JobSpec spec;
  spec.application = "moody";
  spec.document_type = "place";
  spec.shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  REQUIRE(jobs.submit("job", spec).is_ok());
  const auto status = jobs.finish("job");
  INFO(status.error);
  REQUIRE(status.phase == rpc::JobPhase::Done);
  CHECK(status.dead_letters == 40);
  CHECK(status.tuples == 160);
  CHECK(jobs.results(status)->at(0).second == "160");
}

TEST_CASE("a job that takes more than it may fails and says what it may") {
  JobWorld jobs(13, 2, kPlaceSchema);
  put_places(jobs, 300);
  const auto fails = [&](const std::string& id, rpc::Shuffle shuffle, const rpc::Parameter& setting) {
    REQUIRE(jobs.submit(id, spec_of(shuffle, {setting})).is_ok());
    const auto status = jobs.finish(id);
    CHECK(status.phase == rpc::JobPhase::Failed);
    CHECK(status.error.code() == StatusCode::TooLarge);
    INFO(status.error);
    CHECK(status.error.message().find(setting.name) != std::string::npos);
  };
  fails("a", rpc::Shuffle::Store, {"sent_max", "100"});
  fails("b", rpc::Shuffle::Direct, {"sent_max", "100"});
  fails("c", rpc::Shuffle::Direct, {"memory_max", "100"});
  CHECK(jobs.submit("d", spec_of(rpc::Shuffle::Store, {{"colour", "red"}})).code() == StatusCode::InvalidArgument);
}

TEST_CASE("a throttled job takes as long as its bytes do") {
  JobWorld jobs(14, 3, kPlaceSchema);
  const auto counts = put_places(jobs, 500);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  REQUIRE(jobs.submit("job", spec_of(shuffle, {{"throttle", "1kB"}})).is_ok());
  const auto status = jobs.finish("job");
  check_results(jobs, status, counts);
  const double took = static_cast<double>(status.finished_unix_us - status.submitted_unix_us) / 1e6;
  CHECK(status.sent_bytes > 3000);
  // The last tasks do not wait after they have sent, and the bytes of half a second may be sent in advance.
  CHECK(took > 0.6 * static_cast<double>(status.sent_bytes) / 1000 - 0.5);
  REQUIRE(jobs.submit("fast", spec_of(shuffle)).is_ok());
  const auto fast = jobs.finish("fast");
  CHECK(static_cast<double>(fast.finished_unix_us - fast.submitted_unix_us) / 1e6 < took / 3);
}

TEST_CASE("jobs yield to a slow foreground, and come back") {
  JobWorld jobs(15, 2, kPlaceSchema);
  put_places(jobs, 300);
  REQUIRE(jobs.distributor_runtime.tunables.set("mapreduce.foreground_p99_target_ms", 10).is_ok());
  Histogram& foreground = jobs.distributor_runtime.metrics.histogram("fjord_distributor_foreground_seconds", "");
  Gauge& share = jobs.distributor_runtime.metrics.gauge("fjord_job_share_percent", "");
  REQUIRE(jobs.submit("job", spec_of(rpc::Shuffle::Store, {{"throttle", "10"}})).is_ok());
  for (int i = 0; i < 8; ++i) {
    for (int n = 0; n < 100; ++n) foreground.observe(milliseconds(50));
    jobs.world.scheduler.run_for(seconds(1));
  }
  CHECK(share.value() <= 5);
  REQUIRE(jobs.control("job", rpc::JobAction::Set, {{"throttle", "0"}}).is_ok());
  CHECK(jobs.status("job").bound_by.find("foreground") != std::string::npos);
  REQUIRE(jobs.control("job", rpc::JobAction::Set, {{"throttle", "10"}}).is_ok());
  for (int i = 0; i < 60; ++i) {
    for (int n = 0; n < 100; ++n) foreground.observe(milliseconds(1));
    jobs.world.scheduler.run_for(seconds(1));
  }
  CHECK(share.value() == 100);
}

TEST_CASE("a job whose documents are all dead letters fails, and says why") {
  JobWorld jobs(13, 2, kPlaceSchema);
  put_places(jobs, 300);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  rpc::JobSpec spec = spec_of(shuffle, {}, "error");
  spec.selection = "place.city == null";
  REQUIRE(jobs.submit("job", spec).is_ok());
  auto status = jobs.finish("job");
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.documents_read == 30);
  CHECK(status.dead_letters == 30);
  CHECK(status.error.message().find("each of the 30 documents") != std::string::npos);
  CHECK(status.error.message().find("it has no city") != std::string::npos);
  CHECK(jobs.ask(rpc::ListJobs{.job_id = "job", .dead_letters = true}).jobs.at(0).dead_letter_list.size() == 30);
  CHECK(jobs.world.stored("fjord_tuples").empty());
  // No document is selected, so none can fail.
  spec.selection = "place.size == 77";
  REQUIRE(jobs.submit("none", spec).is_ok());
  CHECK(jobs.finish("none").phase == rpc::JobPhase::Done);
}

TEST_CASE("records of jobs that ended long ago are removed, and all others are listed by everybody") {
  mapreduce::JobServiceOptions options;
  options.records_kept = 2;
  JobWorld jobs(16, 1, kPlaceSchema, {}, options);
  put_places(jobs, 20);
  for (const char* id : {"a", "b", "c", "d"}) {
    REQUIRE(jobs.submit(id, spec_of(rpc::Shuffle::Store)).is_ok());
    jobs.finish(id);
    jobs.world.scheduler.run_for(milliseconds(50));
  }
  jobs.world.scheduler.run_for(seconds(10));
  CHECK(jobs.records.records.size() == 2);
  CHECK(jobs.records.records.contains("d"));
  jobs.restart_service();
  CHECK(jobs.ask(rpc::ListJobs{}).jobs.empty());
  const auto listed = jobs.ask(rpc::ListJobs{.job_id = {}, .records = true}).jobs;
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].job_id == "c");
  CHECK_FALSE(listed[0].live);
}

}  // namespace
}  // namespace fjord
