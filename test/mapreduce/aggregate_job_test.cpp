#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "fjord/mapreduce/aggregate_spec.h"
#include "mapreduce/aggregate_world.h"
#include "mapreduce/job_world.h"

namespace fjord {
namespace {

using mapreduce::AggregateSpec;
using mapreduce::KeyedResult;
using test::JobWorld;
using test::Sale;

/// A temporary folder, removed by its destructor.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fjord-aggregate-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  /// Returns the number of files in the folder and its subfolders.
  std::size_t files() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) count += entry.is_regular_file();
    return count;
  }

 private:
  std::string path_;
};

using Rows = std::map<std::string, std::string>;

void put(JobWorld& jobs, int n, const Sale& sale) { jobs.world.put(test::document_of(jobs.world.types(), n, sale)); }

/// Puts sales of `cities` different cities. Returns the expected rows of "count()", "sum(year)" and "avg(amount)" by
/// city.
Rows put_sales(JobWorld& jobs, int count, int cities) {
  struct Totals {
    int count = 0;
    int years = 0;
  };
  std::map<std::string, Totals> totals;
  for (int i = 0; i < count; ++i) {
    Sale sale;
    if (i % 13 != 0) sale.city = "city " + std::to_string(i * 7 % cities);
    sale.year = i % 50;
    sale.amount = 0.5;
    put(jobs, i, sale);
    Totals& group = totals[sale.city ? "[\"" + *sale.city + "\"]" : "[null]"];
    ++group.count;
    group.years += *sale.year;
  }
  Rows rows;
  for (const auto& [key, group] : totals) {
    rows[key] =
        key.substr(0, key.size() - 1) + "," + std::to_string(group.count) + "," + std::to_string(group.years) + ",0.5]";
  }
  return rows;
}

rpc::JobSpec job_of(const AggregateSpec& spec, rpc::Shuffle shuffle = rpc::Shuffle::Auto) {
  rpc::JobSpec job;
  job.application = "aggregate";
  job.document_type = spec.type;
  job.parameters = {{"spec", spec.to_json()}};
  job.shuffle = shuffle;
  return job;
}

AggregateSpec by_city() {
  AggregateSpec spec;
  spec.type = "sale";
  spec.group_by = {"city"};
  spec.aggregates = {"count()", "sum(year)", "avg(amount)"};
  return spec;
}

Rows rows_of(JobWorld& jobs, const rpc::JobStatus& status) {
  INFO(status.error);
  REQUIRE(status.phase == rpc::JobPhase::Done);
  const auto results = jobs.results(status);
  INFO(results.status());
  REQUIRE(results.has_value());
  return {results->begin(), results->end()};
}

TEST_CASE("an aggregation gives the same rows through the store and directly, and directly puts nothing") {
  JobWorld jobs(1, 3, test::kSaleSchema);
  const Rows expected = put_sales(jobs, 600, 40);
  REQUIRE(jobs.submit("direct", job_of(by_city())).is_ok());
  const auto direct = jobs.finish("direct");
  CHECK(direct.shuffle == rpc::Shuffle::Direct);
  CHECK(jobs.sink.puts == 0);
  CHECK(rows_of(jobs, direct) == expected);
  CHECK(direct.documents_read == 600);
  CHECK(direct.map_tasks == 16);
  CHECK(direct.map_tasks_done == 16);
  CHECK(direct.results == expected.size());
  CHECK(direct.finished_unix_us - direct.submitted_unix_us <
        Duration(milliseconds(100)).count());  // One message takes 100 ms.
  REQUIRE(jobs.submit("store", job_of(by_city(), rpc::Shuffle::Store)).is_ok());
  const auto store = jobs.finish("store");
  CHECK(store.shuffle == rpc::Shuffle::Store);
  CHECK(jobs.sink.puts > 0);
  CHECK(rows_of(jobs, store) == expected);
  CHECK(jobs.world.stored("fjord_tuples").empty());
}

TEST_CASE("without groups there is one row over nothing, with groups there is none") {
  for (const bool has_documents : {false, true}) {
    JobWorld jobs(1, 3, test::kSaleSchema);
    if (has_documents) put_sales(jobs, 50, 4);
    for (const rpc::Shuffle shuffle : {rpc::Shuffle::Direct, rpc::Shuffle::Store}) {
      const auto run = [&](const std::string& name, const AggregateSpec& spec, bool incremental = false) {
        rpc::JobSpec job = job_of(spec, shuffle);
        job.selection = "sale.year > 1000";
        job.incremental = incremental;
        REQUIRE(jobs.submit(name, job).is_ok());
        return rows_of(jobs, jobs.finish(name));
      };
      const std::string prefix = (has_documents ? "some-" : "none-") + std::to_string(static_cast<int>(shuffle));
      AggregateSpec spec = by_city();
      CHECK(run(prefix + "-groups", spec).empty());
      spec.group_by.clear();
      CHECK(run(prefix + "-all", spec) == Rows{{"[]", "[0,null,null]"}});
      if (shuffle == rpc::Shuffle::Direct) {
        CHECK(run(prefix + "-first", spec, true) == Rows{{"[]", "[0,null,null]"}});
        CHECK(run(prefix + "-again", spec, true) == Rows{{"[]", "[0,null,null]"}});
      }
      spec.having = "count > 0";
      CHECK(run(prefix + "-having", spec).empty());
      spec.having = "count < 1";
      CHECK(run(prefix + "-less", spec).size() == 1);
    }
  }
}

TEST_CASE("a visitor reads more buckets together than it may have blocks of under way") {
  JobWorld jobs(13, 1, test::kSaleSchema);
  const Rows expected = put_sales(jobs, 600, 40);
  auto spec = job_of(by_city());
  spec.visitors_per_node = 1;
  REQUIRE(jobs.submit("job", spec).is_ok());
  const auto status = jobs.finish("job", seconds(20));
  CHECK(rows_of(jobs, status) == expected);
  CHECK(status.tuples == 600);
}

TEST_CASE("applications can be reduced directly, too") {
  JobWorld jobs(2, 2, test::kSaleSchema);
  put_sales(jobs, 200, 10);
  rpc::JobSpec spec;
  spec.application = "citycount";
  spec.document_type = "sale";
  REQUIRE(jobs.submit("store", spec).is_ok());
  const auto stored = rows_of(jobs, jobs.finish("store"));
  CHECK(jobs.status("store").shuffle == rpc::Shuffle::Store);
  spec.shuffle = rpc::Shuffle::Direct;
  REQUIRE(jobs.submit("direct", spec).is_ok());
  CHECK(rows_of(jobs, jobs.finish("direct")) == stored);
}

TEST_CASE("directly, a node that dies or answers that are lost change nothing") {
  mapreduce::TaskOptions tasks;
  tasks.chunk_bytes = 100;
  JobWorld jobs(3, 3, test::kSaleSchema, tasks);
  const Rows expected = put_sales(jobs, 600, 40);
  for (auto& node : jobs.world.nodes) {  // So little memory that tasks send tables before the end of a bucket.
    REQUIRE(node.runtime->tunables.set("mapreduce.task_memory_bytes", 8 << 10).is_ok());
  }
  const int when = GENERATE(1, 2, 3, 4, 6, 8, 12, 16, 24);
  const int what = GENERATE(0, 1, 2);
  int answers = 0;
  bool done = false;
  jobs.world.transport.on_reply = [&](const rpc::Request& request, rpc::Reply&) {
    if (!std::holds_alternative<rpc::VisitorNext>(request) || ++answers < when || done) return;
    done = true;
    if (what == 2) {
      jobs.world.transport.lose_answers("visitorNext", 3);
    } else {
      jobs.world.scheduler.outside().post([&] { jobs.world.kill_node(1, what == 0); });
    }
  };
  AggregateSpec spec = by_city();
  spec.group_by = {"city", "id"};  // There are as many groups as documents, so that there is much to send.
  REQUIRE(jobs.submit("wide", job_of(spec)).is_ok());
  REQUIRE(jobs.submit("job", job_of(by_city())).is_ok());
  const auto wide = jobs.finish("wide");
  CHECK(rows_of(jobs, wide).size() == 600);
  CHECK(wide.documents_read == 600);
  const auto status = jobs.finish("job");
  CHECK(rows_of(jobs, status) == expected);
  CHECK(status.documents_read == 600);
  CHECK(status.map_tasks_done == status.map_tasks);
  CHECK((done || when > 8));
}

TEST_CASE(
    "a job whose groups do not fit where it runs goes through the store; asked for directly it fails and says why") {
  JobWorld jobs(4, 2, test::kSaleSchema);
  REQUIRE(jobs.distributor_runtime.tunables.set("mapreduce.job_memory_bytes", 64 << 10).is_ok());
  const Rows expected = put_sales(jobs, 3000, 2500);
  REQUIRE(jobs.submit("auto", job_of(by_city())).is_ok());
  const auto status = jobs.finish("auto");
  CHECK(status.shuffle == rpc::Shuffle::Store);
  CHECK(rows_of(jobs, status) == expected);
  CHECK(status.documents_read == 3000);
  CHECK(jobs.world.stored("fjord_tuples").empty());
  REQUIRE(jobs.submit("direct", job_of(by_city(), rpc::Shuffle::Direct)).is_ok());
  const auto failed = jobs.finish("direct");
  CHECK(failed.phase == rpc::JobPhase::Failed);
  CHECK(failed.error.code() == StatusCode::TooLarge);
  CHECK(failed.error.message().find("mapreduce.job_memory_bytes") != std::string::npos);
}

TEST_CASE("groups beyond a task's memory go to disk and come back, in map and reduce, and no file stays") {
  Folder folder;
  mapreduce::TaskOptions tasks;
  tasks.spill_directory = folder.path();
  JobWorld jobs(5, 2, test::kSaleSchema, tasks);
  for (auto& node : jobs.world.nodes) {
    REQUIRE(node.runtime->tunables.set("mapreduce.task_memory_bytes", 16 << 10).is_ok());
  }
  const Rows expected = put_sales(jobs, 3000, 2500);
  auto spec = job_of(by_city(), rpc::Shuffle::Store);
  spec.output_buckets = 2;
  REQUIRE(jobs.submit("job", spec).is_ok());
  const auto status = jobs.finish("job");
  CHECK(status.spilled_bytes > 50'000);
  CHECK(rows_of(jobs, status) == expected);
  CHECK(folder.files() == 0);

  // Repeats the check with an application that keeps its values apart until they are reduced.
  rpc::JobSpec stats;
  stats.application = "fieldstats";
  stats.document_type = "sale";
  stats.parameters = {{"group", "city"}, {"value", "year"}};
  stats.output_buckets = 2;
  REQUIRE(jobs.submit("stats", stats).is_ok());
  const auto stats_status = jobs.finish("stats");
  CHECK(stats_status.spilled_bytes > 0);
  CHECK(rows_of(jobs, stats_status).size() == expected.size() - 1);
}

TEST_CASE("a task that may write no more to disk fails the job and names the setting") {
  Folder folder;
  mapreduce::TaskOptions tasks;
  tasks.spill_directory = folder.path();
  JobWorld jobs(6, 1, test::kSaleSchema, tasks);
  REQUIRE(jobs.world.nodes[0].runtime->tunables.set("mapreduce.task_memory_bytes", 16 << 10).is_ok());
  REQUIRE(jobs.world.nodes[0].runtime->tunables.set("mapreduce.task_spill_bytes", 1000).is_ok());
  put_sales(jobs, 3000, 2500);
  REQUIRE(jobs.submit("job", job_of(by_city(), rpc::Shuffle::Store)).is_ok());
  const auto status = jobs.finish("job");
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.error.code() == StatusCode::TooLarge);
  CHECK(status.error.message().find("mapreduce.task_spill_bytes") != std::string::npos);
  CHECK(folder.files() == 0);
}

TEST_CASE("having and limit are applied where the groups are") {
  JobWorld jobs(8, 2, test::kSaleSchema);
  put_sales(jobs, 1000, 30);
  AggregateSpec spec = by_city();
  spec.having = "count > 30 and city != null";
  spec.order_by = {"sum_year desc"};
  spec.limit = 5;
  for (const rpc::Shuffle shuffle : {rpc::Shuffle::Direct, rpc::Shuffle::Store}) {
    const std::string id = shuffle == rpc::Shuffle::Direct ? "direct" : "store";
    REQUIRE(jobs.submit(id, job_of(spec, shuffle)).is_ok());
    const auto status = jobs.finish(id);
    auto rows = jobs.results(status);
    REQUIRE(rows);
    CHECK(rows->size() == (shuffle == rpc::Shuffle::Direct ? 5 : status.results));
    CHECK(status.results < 30);
    REQUIRE((*mapreduce::AggregatePlan::compile(spec, jobs.world.types()))->arrange(*rows).is_ok());
    REQUIRE(rows->size() == 5);
    int last = 1'000'000;
    for (const auto& [key, row] : *rows) {
      const auto cells = mapreduce::row_cells(row);
      REQUIRE(cells);
      CHECK(std::stoi(std::string((*cells)[1])) > 30);
      const int years = std::stoi(std::string((*cells)[2]));
      CHECK(years <= last);
      last = years;
    }
  }
}

TEST_CASE("an answer can wait for the end of a job and bring the results along") {
  JobWorld jobs(9, 1, test::kSaleSchema);
  const Rows expected = put_sales(jobs, 100, 5);
  REQUIRE(jobs.submit("job", job_of(by_city())).is_ok());
  auto reply =
      jobs.ask(rpc::ListJobs{.job_id = "job", .wait_us = Duration(seconds(5)).count(), .results_bytes_max = 1 << 20});
  REQUIRE(reply.jobs.size() == 1);
  CHECK(reply.jobs[0].phase == rpc::JobPhase::Done);
  CHECK(reply.results.size() == expected.size());
  CHECK_FALSE(reply.more_results);
  reply = jobs.ask(rpc::ListJobs{.job_id = "job", .results_from = 1, .results_bytes_max = 1});
  REQUIRE(reply.results.size() == 1);
  CHECK(reply.results[0].name == std::next(expected.begin())->first);
  CHECK(reply.more_results);

  // Packed results are the same ones.
  reply = jobs.ask(rpc::ListJobs{.job_id = "job", .results_bytes_max = 1 << 20, .packed = true});
  CHECK(reply.results.empty());
  CHECK(mapreduce::has_results(reply));
  CHECK_FALSE(reply.more_results);
  const auto all = mapreduce::take_results(reply);
  REQUIRE(all);
  CHECK(Rows(all->begin(), all->end()) == expected);
  reply = jobs.ask(rpc::ListJobs{.job_id = "job", .results_from = 1, .results_bytes_max = 1, .packed = true});
  rpc::ListJobsReply damaged = reply;
  damaged.packed_results.pop_back();
  CHECK(mapreduce::take_results(damaged).error().code() == StatusCode::Corruption);
  const auto one = mapreduce::take_results(reply);
  REQUIRE(one);
  CHECK(*one == std::vector<mapreduce::KeyedResult>{*std::next(expected.begin())});
  CHECK(reply.more_results);
  reply = jobs.ask(rpc::ListJobs{.job_id = "job", .results_from = 100, .results_bytes_max = 1, .packed = true});
  CHECK_FALSE(mapreduce::has_results(reply));
  CHECK_FALSE(reply.more_results);

  CHECK(jobs.ask(rpc::ListJobs{.job_id = "other", .wait_us = Duration(seconds(5)).count()}).jobs.empty());
}

TEST_CASE("results that are held too long make room for newer ones") {
  mapreduce::JobServiceOptions options;
  options.results_kept_bytes = 1000;
  JobWorld jobs(10, 1, test::kSaleSchema, {}, options);
  put_sales(jobs, 100, 20);
  for (const char* id : {"a", "b", "c"}) {
    REQUIRE(jobs.submit(id, job_of(by_city())).is_ok());
    REQUIRE(jobs.finish(id).phase == rpc::JobPhase::Done);
  }
  CHECK(jobs.results(jobs.status("a")).status().code() == StatusCode::NotFound);
  CHECK(rows_of(jobs, jobs.status("c")).size() == 21);
}

TEST_CASE("an aggregation that is wrong is refused when it is submitted") {
  JobWorld jobs(11, 1, test::kSaleSchema);
  AggregateSpec spec = by_city();
  spec.aggregates = {"sum(city)"};
  const Status status = jobs.submit("job", job_of(spec));
  CHECK(status.code() == StatusCode::InvalidArgument);
  CHECK(status.message().find("sale.city is a text") != std::string::npos);
}

TEST_CASE("a direct job can be cancelled") {
  JobWorld jobs(12, 1, test::kSaleSchema);
  put_sales(jobs, 2000, 20);
  REQUIRE(jobs.submit("job", job_of(by_city())).is_ok());
  CHECK(jobs.ask(rpc::CancelJob{.job_id = "job"}).status.is_ok());
  CHECK(jobs.finish("job", seconds(5)).phase == rpc::JobPhase::Cancelled);
}

}  // namespace
}  // namespace fjord
