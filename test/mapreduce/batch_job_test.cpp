// Jobs of plugin applications that take many documents at a time. Only the engine's part is tested: the application is
// in this process.

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <unistd.h>

#include "fjord/common/coding.h"
#include "mapreduce/job_world.h"

namespace fjord {
namespace {

using mapreduce::Application;
using mapreduce::BatchFunctions;
using mapreduce::KeyedValues;
using mapreduce::MappedDocuments;
using test::JobWorld;

constexpr const char* kSchema = R"(document place {
  field city type string { header }
  field size type long { header }
}
)";
constexpr std::size_t kBatch = 7;

/// Sums sizes by city. Values are numbers as text. Each call of the second half stands for a message to a real plugin
/// process.
class Sizes final : public Application, private BatchFunctions {
 public:
  Status configure(const mapreduce::ApplicationParameters&, const DocumentType& type) override {
    city_ = type.field("city");
    size_ = type.field("size");
    return Status::ok();
  }
  Status map(const DocumentView&, mapreduce::Emitter&) override { return not_alone(); }
  Status reduce(std::string_view, std::span<const std::string_view>, mapreduce::ResultEmitter&) override {
    return not_alone();
  }
  BatchFunctions* batches() override { return this; }

  Result<MappedDocuments> map_apart(std::span<const DocumentView> documents,
                                    const std::function<bool()>& cancelled) override {
    return map(documents, cancelled);
  }
  Result<MappedDocuments> map(std::span<const DocumentView> documents, const std::function<bool()>&) override {
    MappedDocuments mapped;
    for (const DocumentView& document : documents.first(std::min(kBatch, documents.size()))) {
      const auto city = document.field(*city_);
      if (city) {
        put_string(mapped.emitted, city->as_string_view());
        put_string(mapped.emitted, std::to_string(document.field(*size_)->as_int64()));
        ++mapped.tuples;
      } else {
        mapped.failed.push_back({mapped.documents, Status(StatusCode::InvalidArgument, "no city")});
      }
      ++mapped.documents;
      mapped.ends.push_back(mapped.emitted.size());
    }
    return mapped;
  }
  Status combine(std::span<const KeyedValues> keys,
                 const std::function<void(std::size_t, std::string_view)>& on_value) override {
    for (std::size_t i = 0; i < keys.size(); ++i) on_value(i, sum(keys[i].values));
    return Status::ok();
  }
  Result<std::vector<std::optional<std::string>>> reduce(std::span<const KeyedValues> keys) override {
    std::vector<std::optional<std::string>> results;
    for (const KeyedValues& key : keys) {
      // In most batches some key has no result.
      results.push_back(key.key == "city 0" ? std::nullopt : std::optional(sum(key.values)));
    }
    return results;
  }

 private:
  static Status not_alone() { return {StatusCode::NotImplemented, "one at a time is too slow"}; }
  static std::string sum(std::span<const std::string_view> values) {
    std::int64_t all = 0;
    for (const std::string_view value : values) all += std::stoll(std::string(value));
    return std::to_string(all);
  }

  const Field* city_ = nullptr;
  const Field* size_ = nullptr;
};

/// Counts rows by the last digit of their values.
class Digits final : public Application, private BatchFunctions {
 public:
  Status configure(const mapreduce::ApplicationParameters&, const DocumentType& type) override {
    value_ = type.field("value");
    return value_ == nullptr ? Status(StatusCode::InvalidField, "no value") : Status::ok();
  }
  Status map(const DocumentView&, mapreduce::Emitter&) override { return {StatusCode::NotImplemented, "too slow"}; }
  Status reduce(std::string_view, std::span<const std::string_view>, mapreduce::ResultEmitter&) override {
    return {StatusCode::NotImplemented, "too slow"};
  }
  BatchFunctions* batches() override { return this; }

  Result<MappedDocuments> map(std::span<const DocumentView> documents, const std::function<bool()>&) override {
    MappedDocuments mapped;
    mapped.documents = mapped.tuples = documents.size();
    for (const DocumentView& document : documents) {
      put_string(mapped.emitted, document.field(*value_)->as_string_view().substr(
                                     document.field(*value_)->as_string_view().size() - 1));
      put_string(mapped.emitted, "1");
    }
    return mapped;
  }
  Status combine(std::span<const KeyedValues> keys,
                 const std::function<void(std::size_t, std::string_view)>& on_value) override {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      for (const std::string_view value : keys[i].values) on_value(i, value);
    }
    return Status::ok();
  }
  Result<std::vector<std::optional<std::string>>> reduce(std::span<const KeyedValues> keys) override {
    std::vector<std::optional<std::string>> results;
    for (const KeyedValues& key : keys) results.emplace_back(std::to_string(key.values.size()));
    return results;
  }

 private:
  const Field* value_ = nullptr;
};

/// A storage node of the world that also lists its plugins.
class WithPlugins final : public rpc::Service {
 public:
  WithPlugins(rpc::Service& node, rpc::ListPluginsReply reply) : node_(node), reply_(std::move(reply)) {}
  bool handle(rpc::Request& request, rpc::Responder& respond) override {
    if (!std::holds_alternative<rpc::ListPlugins>(request)) return node_.handle(request, respond);
    if (reply_.status.code() != StatusCode::Timeout) respond(reply_);
    return true;
  }

 private:
  rpc::Service& node_;
  rpc::ListPluginsReply reply_;
};

rpc::ListPluginsReply offers(const std::string& version) {
  return {Status::ok(), {{"/plugins/sizes.so", "", {{"sizes", "Sums", true, version}}}}};
}

void add_sizes(mapreduce::ApplicationRegistry& applications, const std::string& version) {
  applications.add({"sizes", "Sums", {}, [] { return std::make_unique<Sizes>(); }, version});
}

/// A world with jobs of the application, in version 2.
class BatchWorld {
 public:
  explicit BatchWorld(mapreduce::TaskOptions tasks = {}, mapreduce::JobServiceOptions options = {})
      : jobs(5, 3, kSchema, std::move(tasks), std::move(options)) {
    add_sizes(jobs.applications, "2");
    for (std::size_t node = 0; node < jobs.world.nodes.size(); ++node) say(node, offers("2"));
  }

  /// Sets the answer of the node to ListPlugins; Timeout: no answer.
  void say(std::size_t node, rpc::ListPluginsReply reply) {
    services.push_back(std::make_unique<WithPlugins>(*jobs.world.nodes[node].all, std::move(reply)));
    jobs.world.transport.serve("storage" + std::to_string(node), services.back().get());
  }

  /// Puts places; every tenth has no city.
  void put_places(int count, int cities = 37) {
    for (int i = 0; i < count; ++i) {
      Document document(*jobs.world.types().find("place"),
                        *DocumentId::parse("id:t:place:n=" + std::to_string(i) + ":" + std::to_string(i)));
      REQUIRE(document.set("size", std::int64_t{i}).is_ok());
      if (i % 10 != 0) {
        const std::string city = "city " + std::to_string(i * i % cities);
        REQUIRE(document.set("city", city).is_ok());
        sums[city] += i;
      }
      jobs.world.put(document);
    }
    sums.erase("city 0");
  }

  void put_place(int number, const std::string& city, std::int64_t size) {
    Document document(*jobs.world.types().find("place"),
                      *DocumentId::parse("id:t:place:n=" + std::to_string(number) + ":" + std::to_string(number)));
    REQUIRE(document.set("size", size).is_ok());
    REQUIRE(document.set("city", city).is_ok());
    jobs.world.put(document);
  }

  rpc::JobSpec spec(rpc::Shuffle shuffle, std::vector<rpc::Parameter> settings = {}) {
    rpc::JobSpec made;
    made.application = "sizes";
    made.document_type = "place";
    made.shuffle = shuffle;
    made.settings = std::move(settings);
    return made;
  }

  void check(const rpc::JobStatus& status, std::uint64_t documents) {
    INFO(status.error);
    REQUIRE(status.phase == rpc::JobPhase::Done);
    CHECK(status.documents_read == documents);
    CHECK(status.dead_letters == documents / 10);
    CHECK(status.tuples == documents - documents / 10);
    CHECK(status.application_version == "2");
    const auto results = jobs.results(status);
    REQUIRE(results.has_value());
    CHECK(results->size() == sums.size());
    for (const auto& [city, value] : *results) CHECK(value == std::to_string(sums[city]));
  }

  JobWorld jobs;
  std::map<std::string, std::int64_t> sums;
  std::vector<std::unique_ptr<WithPlugins>> services;
};

/// Submits the job, ends its process once `when` holds for its record, and starts another process with `applications`
/// (null: the same). Returns the job's final record.
rpc::JobStatus taken_over(JobWorld& jobs, const rpc::JobSpec& spec,
                          std::function<bool(const mapreduce::JobState&)> when,
                          mapreduce::ApplicationRegistry* applications) {
  bool ended = false;
  jobs.records.on_write = [&](const mapreduce::JobState& record) {
    if (ended || !when(record)) return;
    ended = true;
    jobs.world.scheduler.outside().post([&] {
      jobs.stop_service();
      if (applications != nullptr) jobs.distributor_applications = applications;
      jobs.start_service();
    });
  };
  (void)jobs.submit("job", spec);  // The client gets no answer if the process ends before.
  rpc::JobStatus status;
  REQUIRE(jobs.world.run_until([&] {
    const auto it = jobs.records.records.find("job");
    if (it == jobs.records.records.end()) return false;
    status = mapreduce::to_status(it->second, {.dead_letters = true});
    return ended && status.finished_unix_us != 0;
  }));
  CHECK(status.taken_over == 1);
  return status;
}

mapreduce::JobServiceOptions recorded_at_once() {
  mapreduce::JobServiceOptions options;
  options.record_after = Duration(0);
  options.renew_interval = milliseconds(3);
  return options;
}

TEST_CASE("an application that takes many documents at a time is exact through both shuffles, with its dead letters") {
  BatchWorld world;
  world.put_places(500);
  const auto shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  REQUIRE(world.jobs.submit("job", world.spec(shuffle)).is_ok());
  world.check(world.jobs.finish("job"), 500);
  CHECK(world.jobs.world.stored("fjord_tuples").empty());
  const auto known = world.jobs.ask(rpc::ListJobs{.job_id = "job", .dead_letters = true}).jobs;
  REQUIRE(known.size() == 1);
  REQUIRE(known[0].dead_letter_list.size() == 50);
  for (const rpc::DeadLetter& letter : known[0].dead_letter_list) {
    CHECK(letter.document.ends_with("0"));
    CHECK_THAT(letter.error, Catch::Contains("no city"));
  }
}

TEST_CASE("an incremental job of an application that takes many documents at a time is exact, with its dead letters") {
  BatchWorld world;
  world.put_places(500);
  // With the default memory, and with so little that only the first documents of a unit are kept.
  if (GENERATE(false, true)) {
    for (auto& node : world.jobs.world.nodes)
      REQUIRE(node.runtime->tunables.set("mapreduce.task_memory_bytes", std::int64_t{4} << 10).is_ok());
  }
  rpc::JobSpec spec = world.spec(rpc::Shuffle::Direct);
  spec.incremental = true;
  std::int64_t size_of_first = 1;
  for (const char* job : {"first", "second", "third"}) {
    REQUIRE(world.jobs.submit(job, spec).is_ok());
    const rpc::JobStatus status = world.jobs.finish(job);
    INFO(status.error);
    REQUIRE(status.phase == rpc::JobPhase::Done);
    CHECK(status.documents_read == 500);
    CHECK(status.dead_letters == 50);
    const auto results = world.jobs.results(status);
    REQUIRE(results.has_value());
    CHECK(results->size() == world.sums.size());
    for (const auto& [city, value] : *results) CHECK(value == std::to_string(world.sums[city]));
    world.put_place(1, "city 1", status.submitted_unix_us);
    world.sums["city 1"] += status.submitted_unix_us - std::exchange(size_of_first, status.submitted_unix_us);
  }
}

TEST_CASE("a document that fails among many fails the job if none may, and is named") {
  BatchWorld world;
  world.put_places(20);
  REQUIRE(world.jobs.submit("job", world.spec(rpc::Shuffle::Store, {{"dead_letters_max", "0"}})).is_ok());
  const auto status = world.jobs.finish("job");
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK_THAT(status.error.message(), Catch::Contains("document id:t:place:n="));
  CHECK_THAT(status.error.message(), Catch::Contains("no city"));
}

TEST_CASE("groups of an application that takes many at a time go to disk beyond the limit, and nothing is lost") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("fjord-batch-job-" + std::to_string(::getpid()));
  mapreduce::TaskOptions tasks;
  tasks.spill_directory = folder.string();
  BatchWorld world(tasks);
  world.put_places(4000, 3001);
  for (auto& node : world.jobs.world.nodes)
    REQUIRE(node.runtime->tunables.set("mapreduce.task_memory_bytes", std::int64_t{4} << 10).is_ok());
  REQUIRE(world.jobs.submit("job", world.spec(rpc::Shuffle::Store, {{"dead_letters_max", "400"}})).is_ok());
  const auto status = world.jobs.finish("job");
  world.check(status, 4000);
  CHECK(status.spilled_bytes > 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a job of many documents at a time survives the crash of a node, with an exact result") {
  BatchWorld world;
  world.put_places(500);
  const int when = GENERATE(1, 20, 60);
  bool killed = false;
  world.jobs.sink.on_put = [&](const std::string&, const EncodedDocument&) {
    if (world.jobs.sink.puts >= when && !killed) {
      killed = true;
      world.jobs.world.scheduler.outside().post([&] { world.jobs.world.kill_node(1, true); });
    }
  };
  REQUIRE(world.jobs.submit("job", world.spec(rpc::Shuffle::Store)).is_ok());
  const auto status = world.jobs.finish("job");
  REQUIRE(killed);
  world.check(status, 500);
}

TEST_CASE("a job whose application is not on all nodes is refused, and the nodes are named") {
  BatchWorld world;
  world.put_places(20);
  world.say(0, {});
  world.say(1, offers("1"));
  Status status = world.jobs.submit("job", world.spec(rpc::Shuffle::Auto));
  CHECK(status.code() == StatusCode::InvalidArgument);
  CHECK(status.message() ==
        "the application sizes, version 2, is not on all storage nodes: storage.0 does not have it; storage.1 has "
        "version 1");
  world.say(0, {Status::ok(), {{"/plugins/sizes.so", "was built for plugin interface 1; this is 2", {}}}});
  world.say(1, offers("2"));
  status = world.jobs.submit("job", world.spec(rpc::Shuffle::Auto));
  CHECK_THAT(status.message(), Catch::EndsWith("storage.0 does not have it (/plugins/sizes.so was built for plugin "
                                               "interface 1; this is 2)"));
  world.say(0, {Status(StatusCode::NotImplemented, "no such call"), {}});
  status = world.jobs.submit("job", world.spec(rpc::Shuffle::Auto));
  CHECK_THAT(status.message(), Catch::Contains("storage.0 is of a Fjord that has no applications of plugins"));
  CHECK(world.jobs.ask(rpc::ListJobs{}).jobs.empty());
  // A node without an answer may be about to fail, which does not prevent the start of a job.
  world.say(0, {Status(StatusCode::Timeout, ""), {}});
  REQUIRE(world.jobs.submit("job", world.spec(rpc::Shuffle::Auto)).is_ok());
  world.check(world.jobs.finish("job"), 20);
}

/// A world with jobs of two passes, each with an application of a plugin.
struct ChainWorld : BatchWorld {
  explicit ChainWorld(mapreduce::JobServiceOptions options = {}) : BatchWorld({}, std::move(options)) {
    add_digits(jobs.applications, "7");
    for (std::size_t node = 0; node < jobs.world.nodes.size(); ++node) say(node, offers_both("2", "7"));
    put_places(500);
    for (const auto& [city, sum] : sums) ++expected[std::to_string(sum % 10)];
  }
  static void add_digits(mapreduce::ApplicationRegistry& applications, const std::string& version) {
    applications.add({"digits", "Counts", {}, [] { return std::make_unique<Digits>(); }, version});
  }
  static rpc::ListPluginsReply offers_both(const std::string& sizes, const std::string& digits) {
    return {Status::ok(),
            {{"/plugins/both.so", "", {{"sizes", "Sums", true, sizes}, {"digits", "Counts", true, digits}}}}};
  }
  static rpc::JobSpec chain(rpc::Shuffle shuffle) {
    rpc::JobSpec spec;
    spec.passes = {{"sizes", "place", {}, {}, {}}, {"digits", {}, {}, {}, {}}};
    spec.shuffle = shuffle;
    return spec;
  }
  void check_chain(const rpc::JobStatus& status) {
    INFO(status.error);
    REQUIRE(status.phase == rpc::JobPhase::Done);
    CHECK(status.application_versions == std::vector<std::string>{"2", "7"});
    const auto results = jobs.results(status);
    REQUIRE(results.has_value());
    std::map<std::string, int> found;
    for (const auto& [digit, count] : *results) found[digit] = std::stoi(count);
    CHECK(found == expected);
  }

  std::map<std::string, int> expected;
};

TEST_CASE("applications of plugins run in any pass of a job, each in its own version") {
  ChainWorld world;
  REQUIRE(world.jobs.submit("job", ChainWorld::chain(GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct))).is_ok());
  world.check_chain(world.jobs.finish("job"));
}

TEST_CASE("a job with an application in a later pass that is not on all nodes is refused") {
  ChainWorld world;
  world.say(1, ChainWorld::offers_both("2", "6"));
  const Status status = world.jobs.submit("job", ChainWorld::chain(rpc::Shuffle::Auto));
  CHECK(status.code() == StatusCode::InvalidArgument);
  CHECK(status.message() == "the application digits, version 7, is not on all storage nodes: storage.1 has version 6");
  CHECK(world.jobs.ask(rpc::ListJobs{}).jobs.empty());
}

TEST_CASE("a job that is taken over goes on with the version of a later pass that it began with, or fails") {
  ChainWorld world(recorded_at_once());
  const bool is_replaced = GENERATE(true, false);
  mapreduce::ApplicationRegistry newer;
  add_sizes(newer, "2");
  ChainWorld::add_digits(newer, "8");
  const rpc::JobStatus status = taken_over(
      world.jobs, ChainWorld::chain(rpc::Shuffle::Store),
      [](const mapreduce::JobState& record) { return record.passes_done.size() == 1; }, is_replaced ? &newer : nullptr);
  if (!is_replaced) return world.check_chain(status);
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.error.message() ==
        "the application digits is of version \"8\" on this node; the job was begun with \"7\"");
}

TEST_CASE("applications that come with Fjord are not asked for") {
  BatchWorld world;
  world.put_places(20);
  rpc::JobSpec spec = world.spec(rpc::Shuffle::Auto);
  spec.application = "citycount";
  REQUIRE(world.jobs.submit("job", spec).is_ok());
  CHECK(world.jobs.finish("job").phase == rpc::JobPhase::Done);
  CHECK(world.jobs.world.transport.calls("listPlugins") == 0);
}

TEST_CASE("a node that has got another version meanwhile takes no task of the job") {
  BatchWorld world;
  world.put_places(500);
  bool replaced = false;
  world.jobs.sink.on_put = [&](const std::string&, const EncodedDocument&) {
    if (std::exchange(replaced, true)) return;
    world.jobs.applications = {};
    add_sizes(world.jobs.applications, "3");
  };
  REQUIRE(world.jobs.submit("job", world.spec(rpc::Shuffle::Store)).is_ok());
  const auto status = world.jobs.finish("job");
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK_THAT(status.error.message(), Catch::Contains("is of version \"3\" on this node; the job was begun with \"2\""));
}

TEST_CASE("a job goes on with the version of its application that it began with, or fails") {
  BatchWorld world({}, recorded_at_once());
  world.put_places(500);
  const bool is_replaced = GENERATE(true, false);
  mapreduce::ApplicationRegistry newer;  // The distributor was upgraded before the storage nodes.
  add_sizes(newer, "3");
  const rpc::JobStatus status = taken_over(
      world.jobs, world.spec(rpc::Shuffle::Store, {{"visitors_per_node", "1"}}),
      [](const mapreduce::JobState& record) {
        return record.phase == rpc::JobPhase::Map && record.counts.map_tasks_done > 3;
      },
      is_replaced ? &newer : nullptr);
  if (!is_replaced) return world.check(status, 500);
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.error.message() ==
        "the application sizes is of version \"3\" on this node; the job was begun with \"2\"");
}

}  // namespace
}  // namespace fjord
