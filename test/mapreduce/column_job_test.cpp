// Aggregations that take the values of documents from columns of an earlier one.

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fjord/mapreduce/aggregate_spec.h"
#include "mapreduce/aggregate_world.h"
#include "mapreduce/job_world.h"

namespace fjord {
namespace {

using mapreduce::AggregateSpec;
using test::JobWorld;
using test::Sale;
using Rows = std::map<std::string, std::string>;

AggregateSpec by_city() {
  AggregateSpec spec;
  spec.type = "sale";
  spec.group_by = {"city"};
  spec.aggregates = {"count()",   "sum(year)",      "avg(amount)",         "min(cents)", "max(amount)",
                     "min(city)", "distinct(year)", "quantile(0.5,cents)", "count(year)"};
  return spec;
}

class ColumnWorld {
 public:
  explicit ColumnWorld(std::uint64_t seed, int nodes = 1)
      : jobs(seed, static_cast<std::uint16_t>(nodes), test::kSaleSchema), random(seed), nodes_(nodes) {}

  void put(int n) {
    Sale sale = test::random_sale(random);
    if (n % 7 != 0) sale.paid = n % 3 == 0;
    jobs.world.put(test::document_of(jobs.world.types(), n, sale));
  }
  /// Puts a sale of that year, other values random.
  void put_of(int n, int year) {
    Sale sale = test::random_sale(random);
    sale.year = year;
    jobs.world.put(test::document_of(jobs.world.types(), n, sale));
  }
  void remove(int n) { jobs.world.remove("id:t:sale:n=" + std::to_string(n) + ":" + std::to_string(n)); }
  void set(const std::string& tunable, std::int64_t value) {
    for (auto& node : jobs.world.nodes) REQUIRE(node.runtime->tunables.set(tunable, value).is_ok());
  }

  Rows run(const AggregateSpec& spec, const std::string& selection = "") {
    rpc::JobSpec job;
    job.application = "aggregate";
    job.document_type = spec.type;
    job.parameters = {{"spec", spec.to_json()}};
    job.selection = selection;
    return run(job);
  }
  Rows run(const rpc::JobSpec& job) {
    const std::string name = "job" + std::to_string(++number_);
    const Status submitted = jobs.submit(name, job);
    INFO(submitted);
    REQUIRE(submitted.is_ok());
    status = jobs.finish(name);
    INFO(status.error);
    REQUIRE(status.phase == rpc::JobPhase::Done);
    const auto results = jobs.results(status);
    REQUIRE(results.has_value());
    return {results->begin(), results->end()};
  }
  /// Runs the aggregation so often that each node has read each bucket.
  void run_everywhere(const AggregateSpec& spec) {
    for (int i = 0; i < nodes_; ++i) run(spec);
  }
  /// Runs the aggregation with columns, and without any. Returns how many documents came from columns.
  std::uint64_t check(const AggregateSpec& spec, const std::string& selection = "") {
    const std::uint64_t before = from_columns();
    const Rows rows = run(spec, selection);
    const std::uint64_t found = from_columns() - before;
    const rpc::JobStatus with_columns = status;
    set("mapreduce.incremental_bytes", 0);
    CHECK(rows == run(spec, selection));
    CHECK(from_columns() == before + found);
    CHECK(with_columns.documents_read == status.documents_read);
    CHECK(with_columns.bytes_read == status.bytes_read);
    set("mapreduce.incremental_bytes", 256 << 20);
    return found;
  }
  /// Runs the aggregation over what `selection` selects, and over the same documents by a selection that has no columns
  /// yet. Returns how many documents came from columns.
  std::uint64_t check_kept(const AggregateSpec& spec, const std::string& selection) {
    const std::uint64_t before = from_columns();
    const Rows rows = run(spec, selection);
    const std::uint64_t found = from_columns() - before;
    const rpc::JobStatus with_columns = status;
    CHECK(rows == run(spec, selection + " and sale.year > -" + std::to_string(++number_)));
    CHECK(from_columns() == before + found);
    CHECK(with_columns.documents_read == status.documents_read);
    CHECK(with_columns.bytes_read == status.bytes_read);
    return found;
  }
  std::uint64_t from_columns() {
    std::uint64_t sum = 0;
    for (auto& node : jobs.world.nodes) {
      sum += node.runtime->metrics.counter("fjord_job_documents_in_columns_total", "").value();
    }
    return sum;
  }

  JobWorld jobs;
  Random random;
  rpc::JobStatus status;

 private:
  int nodes_;
  int number_ = 0;
};

TEST_CASE("columns: a second aggregation reads only the buckets that have changed", "[columns]") {
  ColumnWorld world(1);
  for (int i = 0; i < 800; ++i) world.put(i);
  const Rows first = world.run(by_city());
  CHECK(world.from_columns() == 0);
  CHECK(world.run(by_city()) == first);
  CHECK(world.from_columns() == 800);

  world.put(5);
  world.remove(6);
  CHECK(world.run(by_city()) != first);
  const std::uint64_t unchanged = world.from_columns() - 800;
  CHECK(unchanged > 0);
  CHECK(unchanged < 799);
  CHECK(world.status.documents_read == 799);
}

TEST_CASE("columns: other aggregates over the same values read nothing", "[columns]") {
  ColumnWorld world(2);
  for (int i = 0; i < 300; ++i) world.put(i);
  world.run(by_city());
  AggregateSpec spec;
  spec.type = "sale";
  spec.aggregates = {"max(year)", "sum(amount)"};
  for (const std::string group : {"", "city", "amount", "year"}) {
    INFO("by " << group);
    spec.group_by.clear();
    if (!group.empty()) spec.group_by = {group};
    const std::uint64_t before = world.from_columns();
    const Rows rows = world.run(spec);
    CHECK(world.from_columns() == before + 300);
    world.set("mapreduce.incremental_bytes", 0);
    CHECK(world.run(spec) == rows);
    world.set("mapreduce.incremental_bytes", 256 << 20);
    world.run(by_city());
  }
  // Two values in the key, and one that is computed.
  spec.group_by = {"city", "year + 1"};
  world.run(spec);
  CHECK(world.check(spec) == 300);
}

TEST_CASE("columns: each selection has its own, and one with now() has none", "[columns]") {
  ColumnWorld world(3);
  for (int i = 0; i < 300; ++i) world.put(i);
  world.run(by_city());
  const std::string selection = "sale.year > 2010";
  const std::uint64_t before = world.from_columns();
  const Rows some = world.run(by_city(), selection);
  CHECK(world.from_columns() == before);
  CHECK(world.run(by_city(), selection) == some);
  const std::uint64_t selected = world.from_columns() - before;
  CHECK(selected > 0);
  CHECK(selected < 300);
  world.run(by_city(), "sale.year < now()");
  world.run(by_city(), "sale.year < now()");
  CHECK(world.from_columns() == before + selected);
}

TEST_CASE("columns: aggregates that may fail on a document read documents", "[columns]") {
  ColumnWorld world(4);
  for (int i = 0; i < 50; ++i) world.put(i);
  AggregateSpec spec = by_city();
  spec.aggregates = {"top(3,year)"};
  world.run(spec);
  world.run(spec);
  CHECK(world.from_columns() == 0);
}

rpc::JobSpec job_of(const std::string& application, std::vector<rpc::Parameter> parameters, rpc::Shuffle shuffle) {
  rpc::JobSpec job;
  job.application = application;
  job.document_type = "sale";
  job.parameters = std::move(parameters);
  job.output_namespace = "out";
  job.shuffle = shuffle;
  return job;
}

TEST_CASE("columns: map functions that take values only read nothing in a second run", "[columns]") {
  const std::vector<std::pair<std::string, std::vector<rpc::Parameter>>> applications = {
      {"citycount", {{"field", "city"}}},
      {"citycount", {{"field", "cents"}}},
      {"citycount", {{"field", "paid"}}},
      {"fieldstats", {{"group", "city"}, {"value", "cents"}}},
      {"fieldstats", {{"group", "paid"}, {"value", "year"}}},
  };
  for (const rpc::Shuffle shuffle : {rpc::Shuffle::Direct, rpc::Shuffle::Store}) {
    for (const auto& [application, parameters] : applications) {
      INFO(application << " " << parameters.front().value << ", direct: " << (shuffle == rpc::Shuffle::Direct));
      ColumnWorld world(5);
      for (int i = 0; i < 300; ++i) world.put(i);
      const rpc::JobSpec job = job_of(application, parameters, shuffle);
      const Rows first = world.run(job);
      const rpc::JobStatus of_documents = world.status;
      CHECK(first.size() > 1);
      CHECK(world.from_columns() == 0);
      CHECK(world.run(job) == first);
      // Tuples and results that the store keeps change the buckets that they are in.
      const std::uint64_t found = world.from_columns();
      CHECK(found > 200);
      CHECK((found == 300 || shuffle == rpc::Shuffle::Store));
      CHECK(world.status.documents_read == of_documents.documents_read);
      CHECK(world.status.tuples == of_documents.tuples);

      world.put(5);
      world.remove(6);
      const Rows changed = world.run(job);
      CHECK(world.from_columns() > found);
      CHECK(world.from_columns() < found + 299);
      world.set("mapreduce.incremental_bytes", 0);
      CHECK(world.run(job) == changed);
    }
  }
}

TEST_CASE("columns: a map function whose values lose their form, or that may fail, reads documents", "[columns]") {
  ColumnWorld world(6);
  for (int i = 0; i < 50; ++i) world.put(i);
  for (const rpc::JobSpec& job :
       {job_of("citycount", {{"field", "amount"}}, rpc::Shuffle::Store),
        job_of("heavycity", {{"iterations", "1"}, {"field", "city"}}, rpc::Shuffle::Store),
        job_of("fieldstats", {{"group", "city"}, {"value", "amount"}}, rpc::Shuffle::Store)}) {
    INFO(job.application);
    CHECK(world.run(job) == world.run(job));
    CHECK(world.from_columns() == 0);
  }
}

TEST_CASE("columns: an aggregation and a map function share them", "[columns]") {
  ColumnWorld world(7);
  for (int i = 0; i < 300; ++i) world.put(i);
  world.run(by_city());
  const rpc::JobSpec job = job_of("citycount", {{"field", "city"}}, rpc::Shuffle::Direct);
  const Rows counted = world.run(job);
  CHECK(world.from_columns() == 300);
  world.set("mapreduce.incremental_bytes", 0);
  CHECK(world.run(job) == counted);
}

TEST_CASE("columns: writes of documents that do not match leave them of use", "[columns]") {
  constexpr int kOld = 1990;
  constexpr int kRecent = 2010;
  const std::string recent = "sale.year >= 2000";
  ColumnWorld world(11);
  for (int n = 0; n < 800; ++n) world.put_of(n, n % 20 == 0 ? kOld : kRecent);
  CHECK(world.check_kept(by_city(), recent) == 0);
  for (int n = 0; n < 800; n += 20) world.put_of(n, kOld);
  // A bucket with documents that do not match is read once more, and these are known then.
  const std::uint64_t found = world.check_kept(by_city(), recent);
  CHECK(found > 0);
  CHECK(found < 760);
  REQUIRE(world.check_kept(by_city(), recent) == 760);

  SECTION("that are replaced") {
    for (int round = 0; round < 3; ++round) {
      for (int n = 0; n < 800; n += 20) world.put_of(n, kOld + round);
      CHECK(world.check_kept(by_city(), recent) == 760);
    }
  }
  SECTION("that are replaced one after the other") {
    for (int first = 0; first < 800; first += 200) {
      for (int n = first; n < first + 200; n += 20) world.put_of(n, kOld);
      CHECK(world.check_kept(by_city(), recent) == 760);
    }
  }
  SECTION("that are new, and then removed") {
    for (int n = 0; n < 40; ++n) world.put_of(1000 + n, kOld);
    CHECK(world.check_kept(by_city(), recent) == 760);
    for (int n = 0; n < 40; ++n) world.remove(1000 + n);
    CHECK(world.check_kept(by_city(), recent) == 760);
  }
  SECTION("that are of another type") {
    for (int n = 0; n < 20; ++n) {
      const auto id = DocumentId::parse("id:t:total:n=" + std::to_string(n) + ":x");
      Document total(*world.jobs.world.types().find("total"), *id);
      REQUIRE(total.set("city", "city 1").is_ok());
      world.jobs.world.put(total);
    }
    CHECK(world.check_kept(by_city(), recent) == 760);
  }
  SECTION("but not writes that change what matches") {
    struct Change {
      const char* what;
      int document;
      int year;  ///< 0: the document is removed.
      std::uint64_t matching;
    };
    const Change change = GENERATE(values<Change>({{"one that matches then", 20, kRecent, 761},
                                                   {"a new one that matches", 1000, kRecent, 761},
                                                   {"one that matched before", 1, kOld, 759},
                                                   {"one that matches still, with other values", 1, kRecent, 760},
                                                   {"one that is removed", 1, 0, 759}}));
    INFO(change.what);
    change.year == 0 ? world.remove(change.document) : world.put_of(change.document, change.year);
    CHECK(world.check_kept(by_city(), recent) < 760);
    CHECK(world.status.documents_read == change.matching);
  }
}

TEST_CASE("columns: documents whose columns would be too large are counted without them", "[columns]") {
  ColumnWorld world(12);
  for (int i = 0; i < 300; ++i) world.put(i);
  const Rows rows = world.run(by_city());
  rpc::JobSpec job;
  job.application = "citycount";
  job.document_type = "sale";
  const Rows counted = world.run(job);
  world.set("mapreduce.incremental_bytes", 4096);  // Room for no bucket's columns.
  const std::uint64_t before = world.from_columns();
  for (int run = 0; run < 2; ++run) {
    CHECK(world.run(by_city()) == rows);
    CHECK(world.run(job) == counted);
  }
  CHECK(world.from_columns() == before);
}

TEST_CASE("columns: whatever is written while they are kept, the rows are those of the documents", "[columns]") {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 21; seed <= 32; ++seed) {
    INFO("seed " << seed);
    ColumnWorld world(seed);
    const auto count = static_cast<int>(100 + world.random.below(300));
    for (int i = 0; i < count; ++i) world.put(i);
    for (int round = 0; round < 8; ++round) {
      found += world.check_kept(by_city(), "sale.year > 2010");
      for (auto changes = world.random.below(12); changes > 0; --changes) {
        const auto n = static_cast<int>(world.random.below(static_cast<std::uint64_t>(count) + 20));
        world.random.chance(0.3) ? world.remove(n) : world.put(n);
      }
    }
  }
  CHECK(found > 0);
}

TEST_CASE("columns: whatever is written between two runs, the rows are those of the documents", "[columns]") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    ColumnWorld world(seed, seed % 3 == 0 ? 3 : 1);
    const auto count = static_cast<int>(20 + world.random.below(300));
    for (int i = 0; i < count; ++i) world.put(i);
    std::uint64_t found = 0;
    for (int round = 0; round < 6; ++round) {
      world.run_everywhere(by_city());
      found += world.check(by_city());
      for (auto changes = world.random.below(6); changes > 0; --changes) {
        const auto n = static_cast<int>(world.random.below(static_cast<std::uint64_t>(count) + 20));
        world.random.chance(0.3) ? world.remove(n) : world.put(n);
      }
    }
    CHECK(found > 0);
  }
}

}  // namespace
}  // namespace fjord
