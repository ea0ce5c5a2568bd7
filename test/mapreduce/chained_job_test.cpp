#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "fjord/mapreduce/passes.h"
#include "mapreduce/job_world.h"

namespace fjord {
namespace {

using mapreduce::AggregateSpec;
using test::JobWorld;

constexpr const char* kSchema = R"(document place {
  field city type string { header }
  field size type long { header }
}
document city_count {
  field city type string { header }
  field n type long { header }
  field note type string { body }
}
document histogram {
  field n type long { header }
  field cities type long { header }
}
)";

using Counts = std::map<std::string, std::int64_t>;

void put_place(JobWorld& jobs, int number, const std::string& city) {
  Document document(*jobs.world.types().find("place"),
                    *DocumentId::parse("id:t:place:n=" + std::to_string(number) + ":" + std::to_string(number)));
  REQUIRE(document.set("city", city).is_ok());
  REQUIRE(document.set("size", std::int64_t{number}).is_ok());
  jobs.world.put(document);
}

/// For each city k, puts k % 7 + 1 places.
Counts put_places(JobWorld& jobs, int cities) {
  Counts counts;
  int number = 0;
  for (int city = 0; city < cities; ++city) {
    const std::string name = "city " + std::to_string(city);
    for (int i = 0; i <= city % 7; ++i) put_place(jobs, number++, name);
    counts[name] = city % 7 + 1;
  }
  return counts;
}

rpc::JobPass pass_of(const AggregateSpec& spec, rpc::RowTarget into = {}, const std::string& selection = {}) {
  rpc::JobPass pass;
  pass.application = mapreduce::kAggregateApplication;
  pass.document_type = spec.type;
  pass.selection = selection;
  pass.parameters = {{mapreduce::kAggregateParameter, spec.to_json()}};
  pass.into = std::move(into);
  return pass;
}

AggregateSpec by_city(std::uint64_t limit = 0) {
  AggregateSpec spec;
  spec.type = "place";
  spec.group_by = {"city"};
  spec.aggregates = {"count() AS n"};
  if (limit != 0) spec.order_by = {"n desc", "city"};
  spec.limit = limit;
  return spec;
}

AggregateSpec by_n(const std::string& type = "row") {
  AggregateSpec spec;
  spec.type = type;
  spec.group_by = {"n"};
  spec.aggregates = {"count() AS cities"};
  return spec;
}

rpc::JobSpec spec_of(std::vector<rpc::JobPass> passes, rpc::Shuffle shuffle) {
  rpc::JobSpec spec;
  spec.passes = std::move(passes);
  spec.shuffle = shuffle;
  return spec;
}

/// Returns a text with the fields of each document of the type, by document id.
std::map<std::string, std::string> documents(JobWorld& jobs, const std::string& type) {
  std::map<std::string, std::string> found;
  for (const auto& [id, stored] : jobs.world.stored(type)) {
    const auto view = DocumentView::open(jobs.world.types(), stored.first, stored.second);
    REQUIRE(view.has_value());
    std::string text;
    if (const auto city = view->field("city")) text += std::string(city->as_string_view()) + " ";
    if (const auto n = view->field("n")) text += std::to_string(n->as_int64());
    if (const auto cities = view->field("cities")) text += "/" + std::to_string(cities->as_int64());
    found[id] = text;
  }
  return found;
}

std::map<std::string, std::string> expected_documents(const Counts& counts, const std::string& name) {
  std::map<std::string, std::string> expected;
  for (const auto& [city, n] : counts) {
    expected["id:results:city_count::" + name + "/[\"" + city + "\"]"] = city + " " + std::to_string(n);
  }
  return expected;
}

std::map<std::string, std::string> rows_of(JobWorld& jobs, const rpc::JobStatus& status) {
  INFO(status.error);
  REQUIRE(status.phase == rpc::JobPhase::Done);
  const auto results = jobs.results(status);
  INFO(results.status());
  REQUIRE(results.has_value());
  return {results->begin(), results->end()};
}

std::map<std::string, std::string> expected_rows(const Counts& counts) {
  std::map<std::int64_t, int> cities;
  for (const auto& [city, n] : counts) ++cities[n];
  std::map<std::string, std::string> rows;
  for (const auto& [n, count] : cities) {
    rows["[" + std::to_string(n) + "]"] = "[" + std::to_string(n) + "," + std::to_string(count) + "]";
  }
  return rows;
}

mapreduce::JobServiceOptions recorded_at_once() {
  mapreduce::JobServiceOptions options;
  options.record_after = Duration(0);
  options.renew_interval = milliseconds(3);
  return options;
}

/// Waits for the end of the job, whichever process runs it, and returns its status.
rpc::JobStatus follow(JobWorld& jobs, const std::string& id, Duration limit = seconds(120)) {
  const MonotonicTime end = jobs.world.scheduler.clock().now() + limit;
  rpc::JobStatus last;
  while (jobs.world.scheduler.clock().now() < end) {
    auto known = jobs.ask(rpc::ListJobs{.job_id = id, .records = true}).jobs;
    if (!known.empty()) last = std::move(known.front());
    if (last.finished_unix_us != 0) return last;
    jobs.world.scheduler.run_for(milliseconds(20));
  }
  return last;
}

TEST_CASE("rows become documents, and those of an earlier run that are no rows any more go") {
  JobWorld jobs(1, 3, kSchema);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  Counts counts = put_places(jobs, 60);
  const auto spec = spec_of({pass_of(by_city(), {"city_count", "", "week"})}, shuffle);
  REQUIRE(jobs.submit("first", spec).is_ok());
  auto status = jobs.finish("first");
  CHECK(rows_of(jobs, status).size() == 60);
  CHECK(status.documents_put == 60);
  CHECK(status.documents_removed == 0);
  CHECK(documents(jobs, "city_count") == expected_documents(counts, "week"));
  CHECK(jobs.world.stored("fjord_tuples").empty());

  // A second run removes only documents of its own target name, "week". Those of "weeks" stay.
  REQUIRE(jobs.submit("other", spec_of({pass_of(by_city(), {"city_count", "", "weeks"})}, shuffle)).is_ok());
  REQUIRE(jobs.finish("other").phase == rpc::JobPhase::Done);
  for (int i = 0; i < 10; ++i) jobs.world.remove("id:t:place:n=" + std::to_string(i) + ":" + std::to_string(i));
  Counts fewer = counts;
  for (const char* city : {"city 0", "city 1", "city 2", "city 3"}) fewer.erase(city);  // All 1+2+3+4 places are gone.
  REQUIRE(jobs.submit("second", spec).is_ok());
  status = jobs.finish("second");
  CHECK(rows_of(jobs, status).size() == 56);
  CHECK(status.documents_put == 56);
  CHECK(status.documents_removed == 4);
  auto expected = expected_documents(fewer, "week");
  expected.merge(expected_documents(counts, "weeks"));
  CHECK(documents(jobs, "city_count") == expected);
}

TEST_CASE("with a limit only the rows that it leaves become documents") {
  JobWorld jobs(2, 3, kSchema);
  put_places(jobs, 60);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  REQUIRE(jobs.submit("job", spec_of({pass_of(by_city(3), {"city_count", "", "top"})}, shuffle)).is_ok());
  const auto status = jobs.finish("job");
  CHECK(rows_of(jobs, status).size() == 3);
  CHECK(status.results == 3);
  CHECK(documents(jobs, "city_count") == expected_documents({{"city 13", 7}, {"city 20", 7}, {"city 27", 7}}, "top"));
}

TEST_CASE("a pass reads what the one before put, whether it is kept or not") {
  JobWorld jobs(3, 3, kSchema);
  const Counts counts = put_places(jobs, 80);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  const bool keeps = GENERATE(false, true);
  put_place(jobs, 1000, "elsewhere");
  Counts all = counts;
  all["elsewhere"] = 1;
  // The next pass does not read other documents of the type.
  Document stranger(*jobs.world.types().find("city_count"), *DocumentId::parse("id:results:city_count::other/1"));
  REQUIRE(stranger.set("n", std::int64_t{99}).is_ok());
  jobs.world.put(stranger);
  rpc::JobPass first = pass_of(by_city());
  if (keeps) first.into = {"city_count", "", "week"};
  const auto second = pass_of(by_n(keeps ? "city_count" : "row"), {"histogram", "ads", "week"});
  REQUIRE(jobs.submit("job", spec_of({first, second}, shuffle)).is_ok());
  const auto status = jobs.finish("job");
  CHECK(rows_of(jobs, status) == expected_rows(all));
  REQUIRE(status.passes_done.size() == 1);
  CHECK(status.passes_done[0].documents_read == 315);
  CHECK(status.passes_done[0].results == 81);
  CHECK(status.passes_done[0].documents_put == (keeps ? 81 : 0));
  CHECK(status.documents_read == 81);
  CHECK(status.documents_put == 7);
  CHECK(jobs.world.stored("fjord_tuples").empty());
  CHECK(jobs.world.stored("city_count").size() == (keeps ? 82 : 1));
  CHECK(documents(jobs, "histogram").at("id:ads:histogram::week/[7]") == "7/11");
}

TEST_CASE("passes select, cut and go on as often as one likes") {
  JobWorld jobs(4, 2, kSchema);
  put_places(jobs, 70);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  AggregateSpec sum;
  sum.type = "row";
  sum.aggregates = {"sum(n * cities) AS places", "count()"};
  // 30 cities: the ten largest have 7 places, ten have 6 and ten have 5.
  REQUIRE(
      jobs.submit("job", spec_of({pass_of(by_city(30)), pass_of(by_n(), {}, "n < 7"), pass_of(sum)}, shuffle)).is_ok());
  const auto status = jobs.finish("job");
  const auto rows = rows_of(jobs, status);
  REQUIRE(rows.size() == 1);
  CHECK(rows.begin()->second == "[110.0,2]");
  REQUIRE(status.passes_done.size() == 2);
  CHECK(status.passes_done[0].results == 30);
  CHECK(status.passes_done[1].documents_read == 30);
  CHECK(status.passes_done[1].results == 2);
}

TEST_CASE("the row over nothing becomes a document and is read by the next pass, through the store, too") {
  JobWorld jobs(4, 2, kSchema);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  AggregateSpec total;
  total.type = "place";
  total.aggregates = {"count() AS n"};
  AggregateSpec again;
  again.type = "row";
  again.aggregates = {"sum(n) AS sum", "count() AS rows"};
  REQUIRE(jobs.submit("two", spec_of({pass_of(total), pass_of(again)}, shuffle)).is_ok());
  auto status = jobs.finish("two");
  CHECK(rows_of(jobs, status) == std::map<std::string, std::string>{{"[]", "[0,1]"}});
  REQUIRE(status.passes_done.size() == 1);
  CHECK(status.passes_done[0].results == 1);
  // The first pass has groups, so it makes no rows, because there are no documents. The next pass has no groups, so it
  // makes one row even from no input.
  REQUIRE(jobs.submit("none", spec_of({pass_of(by_city()), pass_of(again, {}, "n > 3")}, shuffle)).is_ok());
  CHECK(rows_of(jobs, jobs.finish("none")) == std::map<std::string, std::string>{{"[]", "[null,0]"}});

  AggregateSpec count;
  count.type = "place";
  count.aggregates = {"count() AS n"};
  REQUIRE(jobs.submit("put", spec_of({pass_of(count, {"city_count", "", "week"})}, shuffle)).is_ok());
  status = jobs.finish("put");
  CHECK(status.documents_put == 1);
  CHECK(documents(jobs, "city_count").size() == 1);
  CHECK(jobs.world.stored("fjord_tuples").empty());
}

TEST_CASE("an application without rows gives its keys and values to the next pass") {
  JobWorld jobs(5, 2, kSchema);
  const Counts counts = put_places(jobs, 40);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  rpc::JobPass first;
  first.application = "citycount";
  first.document_type = "place";
  first.parameters = {{"field", "city"}};
  rpc::JobPass second;
  second.application = "citycount";
  second.parameters = {{"field", "value"}};
  REQUIRE(jobs.submit("job", spec_of({first, second}, shuffle)).is_ok());
  const auto rows = rows_of(jobs, jobs.finish("job"));
  CHECK(rows.at("7") == "5");
  CHECK(rows.at("1") == "6");
}

TEST_CASE("a chained job goes on with the pass that was under way, whatever it was doing") {
  JobWorld jobs(6, 3, kSchema, {}, recorded_at_once());
  const Counts counts = put_places(jobs, 80);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  const auto limit = GENERATE(std::uint64_t{0}, std::uint64_t{1000});
  const auto pass = GENERATE(std::size_t{0}, std::size_t{1});
  const auto phase = GENERATE(rpc::JobPhase::Map, rpc::JobPhase::Reduce, rpc::JobPhase::Put, rpc::JobPhase::CleanUp);
  const bool keeps = GENERATE(true, false);
  if (phase == rpc::JobPhase::CleanUp && pass == 0) return;
  if (phase == rpc::JobPhase::Put && pass == 0 && !keeps) return;
  bool ended = false;
  jobs.records.on_write = [&](const mapreduce::JobState& record) {
    if (record.phase != phase || record.passes_done.size() != pass || ended) return;
    ended = true;
    jobs.world.scheduler.outside().post([&] { jobs.restart_service(); });
  };
  rpc::JobPass first = pass_of(by_city(limit));
  if (keeps) first.into = {"city_count", "", "week"};
  const auto spec = spec_of({first, pass_of(by_n(keeps ? "city_count" : "row"), {"histogram", "", "week"})}, shuffle);
  const Status submitted = jobs.submit("job", spec);
  REQUIRE((submitted.is_ok() || ended));
  const auto status = follow(jobs, "job");
  REQUIRE(ended);
  CAPTURE(shuffle, limit, pass, phase, keeps);
  CHECK(rows_of(jobs, status) == expected_rows(counts));
  CHECK(status.taken_over == 1);
  REQUIRE(status.passes_done.size() == 1);
  CHECK(status.passes_done[0].documents_read == 314);
  CHECK(status.passes_done[0].results == 80);
  if (keeps) CHECK(documents(jobs, "city_count") == expected_documents(counts, "week"));
  CHECK(documents(jobs, "histogram").size() == 7);
  CHECK(jobs.world.stored("fjord_tuples").empty());
}

TEST_CASE("a job is not done while tasks that were given up may put its documents") {
  JobWorld jobs(14, 3, kSchema, {}, recorded_at_once());
  const Counts counts = put_places(jobs, 80);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  const std::string how = GENERATE("in peace", "paused", "taken over", "repeated");
  CAPTURE(shuffle, how);
  std::optional<MonotonicTime> given_up;
  jobs.records.on_write = [&](const mapreduce::JobState& record) {
    if (record.phase != rpc::JobPhase::Put || given_up) return;
    given_up = jobs.world.scheduler.clock().now();
    jobs.sink.failure = Status(StatusCode::Timeout, "no answer");
    jobs.sink.failures = how == "repeated" ? 1 : 0;
    if (how == "taken over") jobs.world.scheduler.outside().post([&] { jobs.restart_service(); });
  };
  // Because of the limit, a separate phase puts the rows.
  REQUIRE(jobs.submit("job", spec_of({pass_of(by_city(1000), {"city_count", "", "week"})}, shuffle)).is_ok());
  const MonotonicTime submitted = jobs.world.scheduler.clock().now();
  while (!given_up) jobs.world.scheduler.run_for(milliseconds(1));
  if (how == "paused") {
    while (jobs.status("job").documents_put == 0) jobs.world.scheduler.run_for(Duration(100));
    given_up = jobs.world.scheduler.clock().now();
    REQUIRE(jobs.control("job", rpc::JobAction::Pause).is_ok());
    REQUIRE(jobs.control("job", rpc::JobAction::Resume).is_ok());
  }
  if (how != "in peace") {
    jobs.world.scheduler.run_for(seconds(20));
    CHECK(jobs.status("job").bound_by.starts_with("writes of tasks that were given up ("));
  }
  const auto status = follow(jobs, "job");
  const MonotonicTime end = jobs.world.scheduler.clock().now();
  REQUIRE(status.phase == rpc::JobPhase::Done);
  CHECK(documents(jobs, "city_count") == expected_documents(counts, "week"));
  if (how == "in peace") {
    CHECK(end - submitted < seconds(5));
  } else {
    CHECK(end - *given_up >= mapreduce::JobServiceOptions().late_writes_max);
  }
}

Counts put_cities(JobWorld& jobs, int cities) {
  Counts counts;
  for (int i = 0; i < cities; ++i) {
    const std::string city = "city " + std::to_string(i);
    put_place(jobs, i, city);
    counts[city] = 1;
  }
  return counts;
}

TEST_CASE("who cannot write the record of its job puts no documents when another process may have taken the job over") {
  mapreduce::JobServiceOptions options;
  options.record_after = Duration(0);
  options.renew_interval = seconds(1);
  options.writes.operations = 32;
  mapreduce::TaskOptions tasks;
  tasks.writes.operations = 32;
  JobWorld jobs(15, 3, kSchema, tasks, options);
  const Counts counts = put_cities(jobs, 1500);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  const auto limit = GENERATE(std::uint64_t{0}, std::uint64_t{10'000});
  const bool is_cancelled = GENERATE(false, true);
  CAPTURE(shuffle, limit, is_cancelled);
  bool is_cut = false;
  jobs.sink.on_put = [&](const std::string& id, const EncodedDocument&) {
    if (!id.starts_with("id:results:city_count:") || std::exchange(is_cut, true)) return;
    jobs.records.is_there = false;
    jobs.sink.put_takes = seconds(2);
  };
  REQUIRE(jobs.submit("job", spec_of({pass_of(by_city(limit), {"city_count", "", "week"})}, shuffle)).is_ok());
  REQUIRE(jobs.world.run_until([&] { return is_cut; }));
  jobs.world.scheduler.run_for(seconds(5));
  const int puts_early = jobs.sink.puts;
  jobs.world.scheduler.run_for(seconds(5));
  const int puts = jobs.sink.puts;
  CHECK(puts > puts_early);  // A short outage of the records does not stop the job.
  jobs.world.scheduler.run_for(seconds(30));
  CHECK(jobs.sink.puts == puts);
  CHECK(jobs.status("job").bound_by == "its record, which cannot be written");
  jobs.sink.put_takes = milliseconds(1);
  if (is_cancelled) REQUIRE(jobs.control("job", rpc::JobAction::Cancel).is_ok());
  jobs.records.is_there = true;
  const auto status = follow(jobs, "job");
  CHECK(status.phase == (is_cancelled ? rpc::JobPhase::Cancelled : rpc::JobPhase::Done));
  if (!is_cancelled) CHECK(documents(jobs, "city_count") == expected_documents(counts, "week"));
  CHECK(jobs.world.stored("fjord_tuples").empty());
}

TEST_CASE("who looks at its record seldom begins no task that puts documents when it may have lost the job") {
  mapreduce::JobServiceOptions options;
  options.record_after = Duration(0);
  options.renew_interval = seconds(9);
  options.lease = seconds(19);
  mapreduce::TaskOptions tasks;
  tasks.writes.operations = 32;
  JobWorld jobs(16, 3, kSchema, tasks, options);
  const Counts counts = put_cities(jobs, 1500);
  int puts = 0;
  jobs.sink.on_put = [&](const std::string& id, const EncodedDocument&) {
    if (!id.starts_with("id:results:city_count:") || ++puts > 1) return;
    jobs.records.is_there = false;
    jobs.sink.put_takes = milliseconds(700);
  };
  auto spec = spec_of({pass_of(by_city(), {"city_count", "", "week"})}, rpc::Shuffle::Store);
  spec.visitors_per_node = 1;
  spec.settings = {{"throttle", "1000000000"}};  // So low a rate that each task has one bucket.
  REQUIRE(jobs.submit("job", spec).is_ok());
  REQUIRE(jobs.world.run_until([&] { return puts > 0; }));
  jobs.world.scheduler.run_for(seconds(17));
  CHECK(puts > 300);
  CHECK(puts < 1000);  // Each of the three nodes began one of its six tasks, and no other.
  jobs.records.is_there = true;
  jobs.sink.put_takes = milliseconds(1);
  const auto status = follow(jobs, "job");
  CHECK(status.phase == rpc::JobPhase::Done);
  CHECK(documents(jobs, "city_count") == expected_documents(counts, "week"));
}

TEST_CASE("what was mapped of one pass when the job was taken over is not taken for something of the next one") {
  JobWorld jobs(12, 3, kSchema, {}, recorded_at_once());
  const Counts counts = put_places(jobs, 80);
  int ended = 0;
  jobs.records.on_write = [&](const mapreduce::JobState& record) {
    const bool is_first = ended == 0 && record.counts.map_tasks_done > 3;
    const bool is_next = ended == 1 && record.passes_done.size() == 1 && record.bits != 0;
    if (record.phase != rpc::JobPhase::Map || !(is_first || is_next)) return;
    ++ended;
    jobs.world.scheduler.outside().post([&] { jobs.restart_service(); });
  };
  auto spec =
      spec_of({pass_of(by_city(), {"city_count", "", "week"}), pass_of(by_n("city_count"), {}, "city_count.n > 0")},
              rpc::Shuffle::Store);
  spec.settings = {{"visitors_per_node", "1"}};
  REQUIRE(jobs.submit("job", spec).is_ok());
  const auto status = follow(jobs, "job");
  REQUIRE(ended == 2);
  CHECK(status.taken_over == 2);
  CHECK(rows_of(jobs, status) == expected_rows(counts));
}

TEST_CASE("what another process finds in the middle of a chained job is not done again") {
  JobWorld jobs(7, 3, kSchema, {}, recorded_at_once());
  const Counts counts = put_places(jobs, 80);
  bool ended = false;
  jobs.records.on_write = [&](const mapreduce::JobState& record) {
    if (record.phase != rpc::JobPhase::Map || record.passes_done.size() != 1 || ended) return;
    ended = true;
    // If the first pass began again, it would count these documents.
    for (int i = 2000; i < 2100; ++i) put_place(jobs, i, "too late");
    jobs.world.scheduler.outside().post([&] { jobs.restart_service(); });
  };
  REQUIRE(jobs.submit("job", spec_of({pass_of(by_city()), pass_of(by_n())}, rpc::Shuffle::Direct)).is_ok());
  const auto status = follow(jobs, "job");
  REQUIRE(ended);
  CHECK(status.taken_over == 1);
  CHECK(rows_of(jobs, status) == expected_rows(counts));
}

TEST_CASE("a chained job can be paused and cancelled in each pass, and leaves nothing between passes behind") {
  JobWorld jobs(8, 3, kSchema, {}, recorded_at_once());
  const Counts counts = put_places(jobs, 80);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  const auto step = GENERATE(1, 2, 5, 9);
  const bool cancels = GENERATE(false, true);
  const auto spec =
      spec_of({pass_of(by_city(1000), {"city_count", "", "week"}), pass_of(by_n("city_count")), pass_of([] {
                 AggregateSpec sum;
                 sum.type = "row";
                 sum.aggregates = {"sum(cities)"};
                 return sum;
               }())},
              shuffle);
  REQUIRE(jobs.submit("job", spec).is_ok());
  const int times = cancels ? 3 * step : 200;
  for (int i = 0; i < times && jobs.status("job").finished_unix_us == 0; ++i) {
    jobs.world.scheduler.run_for(milliseconds(step));
    (void)jobs.control("job", i % 2 == 0 ? rpc::JobAction::Pause : rpc::JobAction::Resume).is_ok();
  }
  if (cancels) (void)jobs.control("job", rpc::JobAction::Cancel).is_ok();
  (void)jobs.control("job", rpc::JobAction::Resume).is_ok();
  const auto status = jobs.finish("job", seconds(90));
  CAPTURE(shuffle, step);
  if (cancels && status.phase != rpc::JobPhase::Done) {
    CHECK(status.phase == rpc::JobPhase::Cancelled);
  } else {
    const auto rows = rows_of(jobs, status);
    REQUIRE(rows.size() == 1);
    CHECK(rows.begin()->second == "[80]");
    CHECK(documents(jobs, "city_count") == expected_documents(counts, "week"));
  }
  jobs.world.scheduler.run_for(seconds(1));
  CHECK(jobs.world.stored("fjord_tuples").empty());
}

TEST_CASE("a pass that does not find all that the one before put fails the job") {
  JobWorld jobs(9, 2, kSchema, {}, recorded_at_once());
  put_places(jobs, 40);
  const bool loses_row = GENERATE(false, true);
  jobs.records.on_write = [&](const mapreduce::JobState& record) {
    if (record.phase != rpc::JobPhase::Map || record.passes_done.size() != 1) return;
    const auto stored = jobs.world.stored(loses_row ? "fjord_tuples" : "city_count");
    for (const auto& [id, document] : stored) {
      if (!loses_row || id.find("/rows/") != std::string::npos) {
        jobs.world.remove(id);
        return;
      }
    }
  };
  rpc::JobPass first = pass_of(by_city());
  if (!loses_row) first.into = {"city_count", "", "week"};
  REQUIRE(jobs.submit("job", spec_of({first, pass_of(by_n(loses_row ? "row" : "city_count"))},
                                     GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct)))
              .is_ok());
  const auto status = jobs.finish("job");
  CHECK(status.phase == rpc::JobPhase::Failed);
  INFO(status.error);
  CHECK(status.error.code() == StatusCode::Corruption);
  CHECK(status.error.message().find("the pass before put 40") != std::string::npos);
}

TEST_CASE("documents that are not there after they were put fail the job") {
  JobWorld jobs(10, 2, kSchema);
  put_places(jobs, 40);
  bool has_lost = false;
  std::string lost;
  jobs.sink.on_put = [&](const std::string& id, const EncodedDocument&) {
    if (id.starts_with("id:results:city_count") && lost.empty()) {
      lost = id;
    } else if (!lost.empty() && id != lost) {
      has_lost = true;
      jobs.world.remove(lost);
    }
  };
  REQUIRE(jobs.submit("job", spec_of({pass_of(by_city(), {"city_count", "", "week"})},
                                     GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct)))
              .is_ok());
  const auto status = jobs.finish("job");
  REQUIRE(has_lost);
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.error.message().find("1 of 40 documents of type city_count") != std::string::npos);
}

TEST_CASE("a chained job that cannot be is refused before it begins, with the pass and the reason") {
  JobWorld jobs(11, 1, kSchema);
  const auto refused = [&](std::vector<rpc::JobPass> passes, const std::string& part) {
    const Status status = jobs.submit("job", spec_of(std::move(passes), rpc::Shuffle::Auto));
    INFO(status);
    CHECK_FALSE(status.is_ok());
    CHECK(status.message().find(part) != std::string::npos);
  };
  refused({pass_of(by_city(), {"nothing", "", "week"})}, "there is no document type \"nothing\"");
  refused({pass_of(by_city(), {"histogram", "", "week"})}, "there is no field for the column \"city\"");
  refused({pass_of(by_city(), {"place", "", "week"})}, "would read what it puts");
  refused({pass_of(by_city(), {"city_count", "", "a b"})}, "not \"a b\"");
  refused({pass_of(by_city(), {"fjord_tuples", "", "week"})}, "Fjord's own");
  refused({pass_of(by_city()), pass_of(by_n("place"))}, "pass 2: it reads what the pass before puts");
  AggregateSpec unknown = by_n();
  unknown.group_by = {"m"};
  refused({pass_of(by_city()), pass_of(unknown)}, "pass 2: ");
  refused({pass_of(by_city()), pass_of(by_n(), {}, "m > 1")}, "pass 2: ");
  refused({pass_of(by_city(), {"city_count", "", "week"}), pass_of(
                                                               [] {
                                                                 AggregateSpec again = by_city();
                                                                 again.type = "city_count";
                                                                 return again;
                                                               }(),
                                                               {"city_count", "", "week"})},
          "a pass before puts documents of the same type and name");
  refused(std::vector<rpc::JobPass>(17, pass_of(by_city())), "at most 16 passes");
  rpc::JobPass counts;
  counts.application = "citycount";
  counts.document_type = "place";
  counts.parameters = {{"field", "city"}};
  counts.into = {"city_count", "", "week"};
  refused({counts}, "no rows with columns");
  rpc::JobSpec twice = spec_of({pass_of(by_city())}, rpc::Shuffle::Auto);
  twice.document_type = "place";
  CHECK(jobs.submit("job", twice).code() == StatusCode::InvalidArgument);
}

TEST_CASE("aggregations of several passes are written as JSON") {
  const auto job = mapreduce::AggregateJob::from_json(
      R"({"passes":[{"type":"place","group_by":"city","aggregates":"count() AS n"},{"group_by":"n"}]})");
  REQUIRE(job.has_value());
  CHECK(job->passes.size() == 2);
  CHECK(job->passes[1].type.empty());
  CHECK(mapreduce::AggregateJob::from_json(R"({"type":"place"})")->passes.size() == 1);
  for (const char* wrong : {R"({"passes":[]})", R"({"passes":[{"group_by":"city"}]})", R"({"passes":7})",
                            R"({"passes":[{"type":"place"},{"type":"place"}]})", R"({"passes":[{"type":"a"},7]})",
                            R"({"type":"place","passes":[{"type":"place"}]})"}) {
    CHECK_FALSE(mapreduce::AggregateJob::from_json(wrong).has_value());
  }
}

}  // namespace
}  // namespace fjord
