#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "fjord/mapreduce/aggregate_spec.h"
#include "mapreduce/job_world.h"

namespace fjord {
namespace {

using Catch::Matchers::Contains;
using test::JobWorld;

constexpr const char* kSchema = R"(document place {
  field city type string { header }
}
document tally {
  field city type string { header }
  field n type long { header }
}
)";
constexpr std::uint16_t kFull = 1;

/// Storage nodes of which one refuses puts for lack of space, once it is full.
struct FullNodeWorld {
  explicit FullNodeWorld(std::uint16_t nodes, std::uint64_t seed = 1, mapreduce::JobServiceOptions options = {})
      : jobs(seed, nodes, kSchema, {}, options) {
    for (int i = 0; i < 300; ++i) {
      const std::string city = "city " + std::to_string(i * i % 37);
      const std::string number = std::to_string(i);
      Document document(*jobs.world.types().find("place"), *DocumentId::parse("id:t:place:n=" + number + ":" + number));
      REQUIRE(document.set("city", city).is_ok());
      jobs.world.put(document);
      ++counts[city];
    }
    jobs.sink.refuse = [this](const std::string& id) { return check_put(id); };
  }

  void fill_disk() { jobs.world.nodes[kFull].all->is_full = refuses = true; }
  BucketId bucket_of(const std::string& id) {
    return jobs.world.snapshot.get()->bucket_of(DocumentId::parse(id)->gid());
  }
  bool belongs_on_full_node(BucketId bucket) {
    const NodeList nodes = jobs.world.snapshot.get()->ideal_nodes(bucket);
    return std::find(nodes.begin(), nodes.end(), kFull) != nodes.end() || held.contains(bucket);
  }
  Status check_put(const std::string& id) {
    if (!refuses || !belongs_on_full_node(bucket_of(id))) return Status::ok();
    ++refused;
    return {StatusCode::NoSpace, "storage.1 takes no writes but removes: 96 % used", {.node = "storage.1"}};
  }

  rpc::JobStatus run(rpc::Shuffle shuffle, std::vector<rpc::Parameter> settings = {}) {
    rpc::JobSpec spec;
    spec.application = "citycount";
    spec.document_type = "place";
    spec.shuffle = shuffle;
    spec.settings = std::move(settings);
    REQUIRE(jobs.submit("job", spec).to_string() == "OK");
    return jobs.finish("job");
  }
  void check_results(const rpc::JobStatus& status) {
    INFO(status.error);
    REQUIRE(status.phase == rpc::JobPhase::Done);
    const auto results = jobs.results(status);
    INFO(results.status().to_string());
    REQUIRE(results.has_value());
    REQUIRE(results->size() == counts.size());
    for (const auto& [key, value] : *results) CHECK(value == std::to_string(counts.at(key)));
    CHECK(jobs.world.stored("fjord_tuples").empty());
    // Each result is there once, also if the job has put some elsewhere before.
    const std::size_t stored = status.shuffle == rpc::Shuffle::Store ? counts.size() : 0;
    CHECK(jobs.world.stored("fjord_result").size() == stored);
  }

  JobWorld jobs;
  std::map<std::string, int> counts;
  std::set<BucketId> held;  ///< Buckets that the full node holds although they do not belong there.
  bool refuses = false;
  int refused = 0;
};

TEST_CASE("a job through the store puts nothing on a full node") {
  FullNodeWorld world(3);
  world.fill_disk();
  world.check_results(world.run(rpc::Shuffle::Store));
  CHECK(world.refused == 0);
  CHECK(world.jobs.status("job").output_buckets < 6);
}

TEST_CASE("a job keeps away from buckets that a full node holds although they belong elsewhere") {
  FullNodeWorld world(3);
  world.fill_disk();
  std::vector<BucketId> elsewhere;
  for (std::uint64_t i = 0; i < 16; ++i) {
    if (!world.belongs_on_full_node(BucketId(4, i))) elsewhere.push_back(BucketId(4, i));
  }
  REQUIRE(elsewhere.size() > 1);
  const bool leaves_first = GENERATE(true, false);
  elsewhere.erase(leaves_first ? elsewhere.begin() : elsewhere.end() - 1);  // Left for the job to choose.
  world.held = {elsewhere.begin(), elsewhere.end()};
  world.jobs.world.nodes[kFull].all->holds = elsewhere;
  world.check_results(world.run(rpc::Shuffle::Store));
  CHECK(world.refused == 0);
}

TEST_CASE("a job whose node fills up under it puts its documents elsewhere") {
  const auto phase = GENERATE(rpc::JobPhase::Map, rpc::JobPhase::Reduce);
  FullNodeWorld world(3);
  const std::string type = phase == rpc::JobPhase::Map ? "id:fjord:fjord_tuples:" : ":fjord_result:";
  int left = 10;
  world.jobs.sink.on_put = [&](const std::string& id, const EncodedDocument&) {
    if (id.find(type) != std::string::npos && --left == 0) world.fill_disk();
  };
  const auto status = world.run(rpc::Shuffle::Store);
  CHECK(world.refused > 0);
  world.check_results(status);
}

TEST_CASE("a job goes on without the store if a full node has part in all buckets") {
  FullNodeWorld world(2);
  SECTION("from its beginning") { world.fill_disk(); }
  SECTION("from the time on when the disk is full") {
    world.jobs.sink.on_put = [&, left = 10](const std::string&, const EncodedDocument&) mutable {
      if (--left == 0) world.fill_disk();
    };
  }
  const auto status = world.run(rpc::Shuffle::Auto);
  CHECK(status.shuffle == rpc::Shuffle::Direct);
  world.check_results(status);
}

TEST_CASE("a job that only a full node can store fails and says what is to be done") {
  FullNodeWorld world(2);
  world.fill_disk();
  SECTION("the user asked for the store") {
    const auto status = world.run(rpc::Shuffle::Store);
    CHECK(status.phase == rpc::JobPhase::Failed);
    CHECK(status.error.code() == StatusCode::NoSpace);
    CHECK(status.error.node() == "storage.1");
    CHECK_THAT(status.error.message(),
               Contains("96 % used") && Contains("space_refuse_external_percent") && Contains("fjord node retire"));
  }
  SECTION("its groups do not fit into memory") {
    const auto status = world.run(rpc::Shuffle::Auto, {{"memory_max", "1000"}});
    CHECK(status.phase == rpc::JobPhase::Failed);
    CHECK(status.error.code() == StatusCode::NoSpace);
    CHECK_THAT(status.error.message(), Contains("96 % used") && Contains("memory_max"));
  }
}

TEST_CASE("a job whose rows become documents on a full node fails, and the next one of that name ends it") {
  FullNodeWorld world(2);
  world.fill_disk();
  rpc::JobSpec spec;
  mapreduce::AggregateSpec counts;
  counts.type = "place";
  counts.group_by = {"city"};
  counts.aggregates = {"count() AS n"};
  spec.passes.push_back({mapreduce::kAggregateApplication,
                         "place",
                         "",
                         {{mapreduce::kAggregateParameter, counts.to_json()}},
                         {"tally", "", "cities"}});
  spec.shuffle = rpc::Shuffle::Store;
  REQUIRE(world.jobs.submit("job", spec).to_string() == "OK");
  const auto status = world.jobs.finish("job");
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.error.code() == StatusCode::NoSpace);
  CHECK_THAT(status.error.message(), Contains("storage.1") && Contains("run the job again"));
  CHECK(world.jobs.world.stored("fjord_tuples").empty());
  world.refuses = world.jobs.world.nodes[kFull].all->is_full = false;
  REQUIRE(world.jobs.submit("again", spec).is_ok());
  CHECK(world.jobs.finish("again").phase == rpc::JobPhase::Done);
  CHECK(world.jobs.world.stored("tally").size() == world.counts.size());
}

}  // namespace
}  // namespace fjord
