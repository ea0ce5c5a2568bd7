#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "fjord/mapreduce/aggregate_spec.h"
#include "mapreduce/aggregate_world.h"
#include "mapreduce/job_world.h"
#include "runner/direct_reduce.h"

namespace fjord {
namespace {

using mapreduce::AggregateSpec;
using test::JobWorld;
using test::Sale;
using Rows = std::map<std::string, std::string>;

AggregateSpec everything_by_city() {
  AggregateSpec spec;
  spec.type = "sale";
  spec.group_by = {"city"};
  spec.aggregates = {"count()",        "sum(year)",           "avg(amount)",        "min(cents)",  "max(amount)",
                     "distinct(year)", "quantile(0.5,cents)", "histogram(year,10)", "top(3,year)", "min(city)"};
  return spec;
}

rpc::JobSpec job_of(const AggregateSpec& spec) {
  rpc::JobSpec job;
  job.application = "aggregate";
  job.document_type = spec.type;
  job.parameters = {{"spec", spec.to_json()}};
  job.selection = spec.selection;
  job.incremental = true;
  return job;
}

struct Answer {
  rpc::JobStatus status;
  Rows rows;
};

class IncrementalWorld {
 public:
  explicit IncrementalWorld(std::uint64_t seed, std::uint16_t nodes = 1, mapreduce::TaskOptions tasks = {})
      : jobs(seed, nodes, test::kSaleSchema, tasks), random(seed) {}

  void put(int n) {
    jobs.world.put(test::document_of(jobs.world.types(), n, test::random_sale(random)));
    there.insert(n);
  }
  static std::string id(int n) { return "id:t:sale:n=" + std::to_string(n) + ":" + std::to_string(n); }
  void remove(int n) {
    jobs.world.remove(id(n));
    there.erase(n);
  }
  void set(const std::string& tunable, std::int64_t value) {
    for (auto& node : jobs.world.nodes) REQUIRE(node.runtime->tunables.set(tunable, value).is_ok());
  }

  Answer run(const rpc::JobSpec& spec) {
    const std::string name = "job" + std::to_string(++number);
    const Status submitted = jobs.submit(name, spec);
    INFO(submitted);
    REQUIRE(submitted.is_ok());
    Answer answer{jobs.finish(name), {}};
    INFO(answer.status.error);
    REQUIRE(answer.status.phase == rpc::JobPhase::Done);
    const auto results = jobs.results(answer.status);
    REQUIRE(results.has_value());
    answer.rows = {results->begin(), results->end()};
    return answer;
  }
  /// Runs the job incrementally and compares it with a job that reads everything. Returns the incremental answer.
  Answer check(const rpc::JobSpec& spec) {
    const Answer answer = run(spec);
    rpc::JobSpec whole = spec;
    whole.incremental = false;
    const Answer expected = run(whole);
    CHECK(answer.rows == expected.rows);
    CHECK(answer.status.documents_read == expected.status.documents_read);
    CHECK(expected.status.documents_reused == 0);
    CHECK(answer.status.dead_letters == expected.status.dead_letters);
    return answer;
  }

  JobWorld jobs;
  Random random;
  std::set<int> there;
  int number = 0;
};

std::uint64_t read_now(const Answer& answer) { return answer.status.documents_read - answer.status.documents_reused; }

TEST_CASE("incremental: only what changed since the last run is read") {
  IncrementalWorld world(1);
  for (int i = 0; i < 800; ++i) world.put(i);
  const auto job = job_of(everything_by_city());
  CHECK(read_now(world.check(job)) == 800);

  const Answer same = world.check(job);
  CHECK(same.status.documents_read == 800);
  CHECK(read_now(same) == 0);
  CHECK(same.status.bytes_read == 0);

  for (int i = 0; i < 5; ++i) world.put(i * 100);
  world.put(2000);
  world.remove(7);
  const Answer changed = world.check(job);
  CHECK(changed.status.documents_read == 800);
  CHECK(read_now(changed) == 6);
  CHECK(read_now(world.check(job)) == 0);
}

TEST_CASE("incremental: other questions have nothing in common") {
  IncrementalWorld world(2);
  for (int i = 0; i < 100; ++i) world.put(i);
  AggregateSpec spec = everything_by_city();
  world.check(job_of(spec));
  spec.group_by = {"year"};
  CHECK(read_now(world.check(job_of(spec))) == 100);
  rpc::JobSpec some = job_of(spec);
  some.selection = "sale.year > 2000";
  const Answer selected = world.check(some);
  CHECK(selected.status.documents_reused == 0);
  CHECK(read_now(world.check(some)) == 0);
  CHECK(read_now(world.check(job_of(spec))) == 0);
}

TEST_CASE("incremental: whatever is written between two runs, the rows are those of a job that reads everything") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    IncrementalWorld world(seed, seed % 3 == 0 ? 3 : 1);
    auto& random = world.random;
    for (int i = 0; i < 300; ++i) world.put(i);
    rpc::JobSpec job = job_of(everything_by_city());
    if (seed % 2 == 0) job.selection = "sale.year > 2005 or sale.city = \"city *\"";
    if (seed % 4 == 0) world.set("mapreduce.incremental_bytes", 20'000);
    if (seed % 5 == 0) world.set("mapreduce.task_memory_bytes", 4096);
    unsigned bits = 4;
    for (int round = 0; round < 12; ++round) {
      const auto changes = random.below(random.chance(0.2) ? 200 : 12);
      for (std::uint64_t i = 0; i < changes; ++i) {
        const int n = static_cast<int>(random.below(400));
        if (random.chance(0.25)) {
          world.remove(n);
        } else {
          world.put(n);
        }
      }
      if (random.chance(0.2)) {
        world.jobs.world.put_late(
            test::document_of(world.jobs.world.types(), 1000 + round, test::random_sale(world.random)),
            500 + random.below(500));
      }
      if (random.chance(0.2)) world.jobs.world.forget_removes(Timestamp{world.jobs.world.last_timestamp() + 1});
      if (random.chance(0.2)) {
        bits = bits == 4 ? 5 : 4;
        world.jobs.world.change_bits(bits);
      }
      if (random.chance(0.2)) world.jobs.world.raise_epochs();
      world.check(job);
    }
  }
}

TEST_CASE("incremental: a document that changes while it is read is read again by the next run") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    IncrementalWorld world(seed);
    for (int i = 0; i < 400; ++i) world.put(i);
    const auto job = job_of(everything_by_city());
    if (seed % 2 == 0) world.check(job);
    for (int round = 0; round < 4; ++round) {
      REQUIRE(world.jobs.submit("busy" + std::to_string(round), job).is_ok());
      for (int step = 0; step < 40; ++step) {
        world.jobs.world.scheduler.run_for(Duration(200));
        const int n = static_cast<int>(world.random.below(420));
        if (world.random.chance(0.3)) {
          world.remove(n);
        } else {
          world.put(n);
        }
      }
      REQUIRE(world.jobs.finish("busy" + std::to_string(round)).phase == rpc::JobPhase::Done);
      world.check(job);
    }
  }
}

TEST_CASE("incremental: without memory everything is read each time, with little what changed is read by buckets") {
  IncrementalWorld world(3);
  for (int i = 0; i < 800; ++i) world.put(i);
  AggregateSpec spec;
  spec.type = "sale";
  spec.aggregates = {"count()", "sum(year)", "max(cents)"};
  const auto job = job_of(spec);
  world.set("mapreduce.incremental_bytes", 0);
  world.check(job);
  CHECK(read_now(world.check(job)) == 800);
  world.set("mapreduce.incremental_bytes", 8000);  // Too little to keep the documents of all 16 buckets.
  world.check(job);
  CHECK(read_now(world.check(job)) == 0);
  world.put(1);
  const auto changed = read_now(world.check(job));
  CHECK(changed > 1);
  CHECK(changed < 200);
  CHECK(world.jobs.world.nodes[0].runtime->metrics.gauge("fjord_job_partials_bytes", "").value() <= 8000);
}

TEST_CASE("incremental: a unit with more than its memory is as one of a job that is not incremental") {
  IncrementalWorld world(4);
  for (int i = 0; i < 500; ++i) world.put(i);
  AggregateSpec spec = everything_by_city();
  spec.group_by = {"year", "cents"};
  const auto job = job_of(spec);
  world.set("mapreduce.task_memory_bytes", 4096);
  world.check(job);
  CHECK(read_now(world.check(job)) > 0);
  world.set("mapreduce.task_memory_bytes", 64 << 20);
  world.check(job);
  CHECK(read_now(world.check(job)) == 0);
  world.set("mapreduce.task_memory_bytes", 4096);
  for (int i = 0; i < 500; i += 9) world.put(i);
  world.check(job);
}

TEST_CASE("incremental: other schemas make all documents count as changed") {
  IncrementalWorld world(5);
  for (int i = 0; i < 50; ++i) world.put(i);
  const auto job = job_of(everything_by_city());
  world.check(job);
  world.jobs.world.info.schema_version = 2;
  world.jobs.world.info.schemas.push_back("document other { field a type int {} }");
  world.jobs.world.update(world.jobs.world.snapshot);
  CHECK(read_now(world.check(job)) == 50);
}

TEST_CASE("incremental: a dead letter is one in each run") {
  IncrementalWorld world(6);
  for (int i = 0; i < 200; ++i) world.put(i);
  rpc::JobSpec job;
  job.application = "fieldstats";
  job.document_type = "sale";
  job.parameters = {{"group", "city"}, {"value", "year"}, {"missing", "error"}};
  job.shuffle = rpc::Shuffle::Direct;
  job.incremental = true;
  const Answer first = world.check(job);
  CHECK(first.status.dead_letters > 0);
  const Answer second = world.check(job);
  CHECK(second.status.dead_letters == first.status.dead_letters);
  CHECK(read_now(second) >= first.status.dead_letters);
  CHECK(read_now(second) < 200);
  for (int i = 0; i < 50; ++i) world.put(i);
  world.check(job);
}

TEST_CASE("incremental: two runs of the same at once are both right") {
  IncrementalWorld world(7);
  for (int i = 0; i < 300; ++i) world.put(i);
  const auto job = job_of(everything_by_city());
  const Rows expected = world.check(job).rows;
  for (int i = 0; i < 3; ++i) REQUIRE(world.jobs.submit("both" + std::to_string(i), job).is_ok());
  for (int i = 0; i < 3; ++i) {
    const auto status = world.jobs.finish("both" + std::to_string(i));
    REQUIRE(status.phase == rpc::JobPhase::Done);
    const auto results = world.jobs.results(status);
    REQUIRE(results.has_value());
    CHECK(Rows(results->begin(), results->end()) == expected);
  }
}

/// Reads all buckets of the world with one visitor, four at a time, and reduces what it sends as the job's owner does.
Answer read_in_turns(IncrementalWorld& world, const rpc::JobSpec& job) {
  auto& jobs = world.jobs;
  mapreduce::TaskSpec task;
  task.job = "turns";
  task.application = job.application;
  task.document_type = job.document_type;
  task.parameters = job.parameters;
  task.output_buckets = 1;  // A direct job ignores the number, but zero is refused.
  task.direct = true;
  if (job.incremental) task.incremental = "sale";
  visitors::VisitorSessionOptions options;
  options.library = mapreduce::kMapVisitor;
  options.parameters = task.to_parameters();
  options.selection = "sale";
  options.visitors_per_node = 1;
  options.buckets_per_visitor = 16;
  options.buckets_at_once = 4;
  options.deduplicate = false;

  const auto application = jobs.applications.create(job.application, job.parameters,
                                                    *jobs.world.types().find(job.document_type), &jobs.world.types());
  REQUIRE(application);
  const auto bulk = make_inline_bulk_executor();
  mapreduce::DirectReduce reduce(**application, *bulk);
  Status status;
  const auto note = [&](const Status& one) {
    if (status) status = one;
  };
  std::optional<Status> finished;
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_docblock = [&](BucketId bucket, std::string chunk) { note(reduce.on_chunk(bucket, std::move(chunk))); };
  callbacks.on_bucket_done = [&](BucketId bucket, const std::string& result) {
    const auto report = mapreduce::TaskReport::decode(result);
    note(report ? reduce.on_bucket(bucket, *report) : report.error());
  };
  callbacks.on_finished = [&](Status end) { finished = std::move(end); };
  const int visitors = jobs.world.transport.calls("createVisitor");
  visitors::VisitorSession session(std::move(options), std::move(callbacks), jobs.world.transport, jobs.world.snapshot,
                                   jobs.world.scheduler.clock(), Random(3), *jobs.world.executor);
  jobs.world.executor->post([&] { session.start(); });
  REQUIRE(jobs.world.run_until([&] { return finished.has_value(); }));
  INFO(*finished << "; " << status);
  REQUIRE(finished->is_ok());
  REQUIRE(status.is_ok());
  REQUIRE(jobs.world.transport.calls("createVisitor") == visitors + 1);
  CHECK(reduce.take_lost().empty());
  CHECK(reduce.buckets() == 16);
  Answer answer;
  answer.status.documents_read = reduce.totals().documents;
  answer.status.documents_reused = reduce.totals().reused;
  const auto rows = reduce.finish(std::size_t{1} << 30);
  REQUIRE(rows);
  for (const auto& [key, row] : *rows) answer.rows.emplace(key, row);
  return answer;
}

TEST_CASE("incremental: a visitor that reads its buckets a few at a time sends the groups of each once") {
  IncrementalWorld world(10);
  for (int i = 0; i < 400; ++i) world.put(i);
  rpc::JobSpec whole = job_of(everything_by_city());
  whole.incremental = false;
  rpc::JobSpec job = whole;
  job.incremental = GENERATE(true, false);
  // The first visit reads all documents. If it is incremental, the second one reads only those that changed.
  for (const int changes : {0, 5}) {
    for (int i = 0; i < changes; ++i) world.put(i * 50);
    const Answer answer = read_in_turns(world, job);
    CHECK(answer.rows == world.run(whole).rows);
    CHECK(answer.status.documents_read == 400);
    if (changes > 0 && job.incremental) CHECK(read_now(answer) == static_cast<std::uint64_t>(changes));
  }
}

TEST_CASE("incremental: what cannot be is refused") {
  IncrementalWorld world(8);
  world.put(1);
  rpc::JobSpec job = job_of(everything_by_city());
  job.shuffle = rpc::Shuffle::Store;
  CHECK(world.jobs.submit("store", job).code() == StatusCode::InvalidArgument);
  job.shuffle = rpc::Shuffle::Auto;
  job.selection = "sale.year > now()";
  CHECK(world.jobs.submit("now", job).code() == StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace fjord
