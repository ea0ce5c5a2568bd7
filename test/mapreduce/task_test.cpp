#include "task/task.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "fjord/common/bulk_executor.h"
#include "fjord/common/env.h"
#include "fjord/common/runtime.h"
#include "runner/output_spread.h"
#include "task/accumulator.h"
#include "task/keys.h"
#include "task/sink_pump.h"
#include "task/task_visitors.h"
#include "task/tuple_table.h"

namespace fjord::mapreduce {
namespace {

/// Keeps all values, or adds them up if `combines`.
class Values final : public Application {
 public:
  explicit Values(bool combines) : combines_(combines) {}
  Status configure(const ApplicationParameters&, const DocumentType&) override { return Status::ok(); }
  Status map(const DocumentView&, Emitter&) override { return Status::ok(); }
  bool combine(std::string_view, std::string& into, std::string_view value) override {
    if (combines_) into = std::to_string(std::stoi(into) + std::stoi(std::string(value)));
    return combines_;
  }
  Status reduce(std::string_view, std::span<const std::string_view>, ResultEmitter&) override { return Status::ok(); }

 private:
  bool combines_;
};

using Content = std::map<std::string, std::vector<std::string>>;

Content content_of(const TupleTable& table) {
  Content content;
  std::vector<std::string_view> values;
  for (const auto& key : table.sorted_keys(1)) {
    table.sorted_values(key, values);
    content[std::string(key.key)].assign(values.begin(), values.end());
  }
  return content;
}

TEST_CASE("tuples of one key are combined, or kept and sorted") {
  for (const bool combines : {true, false}) {
    Values application(combines);
    TupleTable table(application, 1 << 20);
    for (int i = 9; i >= 0; --i) REQUIRE(table.add("key " + std::to_string(i % 2), std::to_string(i)).is_ok());
    const Content expected = combines
                                 ? Content{{"key 0", {"20"}}, {"key 1", {"25"}}}
                                 : Content{{"key 0", {"0", "2", "4", "6", "8"}}, {"key 1", {"1", "3", "5", "7", "9"}}};
    CHECK(content_of(table) == expected);
  }
}

TEST_CASE("a table with many keys finds each again") {
  Values application(true);
  TupleTable table(application, 64 << 20);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20'000; ++i) REQUIRE(table.add("key " + std::to_string(i), "1").is_ok());
  }
  const Content content = content_of(table);
  CHECK(content.size() == 20'000);
  CHECK(std::all_of(content.begin(), content.end(), [](const auto& e) { return e.second.front() == "2"; }));
}

TEST_CASE("a table beyond its memory says so and names the setting") {
  Values application(false);
  TupleTable table(application, 1 << 20);
  Status status;
  int added = 0;
  while (status && added < 1'000'000) {
    status = table.add("key", std::string(1000, 'x'));
    ++added;
  }
  CHECK(status.code() == StatusCode::TooLarge);
  CHECK(status.message().find("mapreduce.task_memory_bytes") != std::string::npos);
  CHECK(added > 900);
  CHECK(added < 1100);
}

/// Returns the accumulator of an application that emits nothing by itself, to be filled with tuples.
std::unique_ptr<Accumulator> accumulate(Application& application) { return make_accumulator(application); }

Content content_of(Accumulator& accumulator) {
  Content content;
  const auto source = accumulator.drain(1);
  Tuple tuple;
  while (source->next(tuple).value()) content[std::string(tuple.key)].assign(tuple.values.begin(), tuple.values.end());
  return content;
}

Status add_tuples(std::string_view tuples, Accumulator& into) {
  return for_each_tuple(tuples, [&](std::string_view key, std::string_view value) { return into.merge(key, value); });
}

TEST_CASE("tuples are cut into documents of bounded size, and read back whole") {
  const std::size_t bytes_max = GENERATE(1, 50, 1000, 1'000'000);
  Values application(false);
  const auto table = accumulate(application);
  for (int i = 0; i < 500; ++i) {
    REQUIRE(table->merge("key " + std::to_string(i % 7), "value " + std::to_string(i)).is_ok());
  }
  TupleDocuments documents(table->drain(3), bytes_max);
  const auto back = accumulate(application);
  std::map<std::uint32_t, std::uint32_t> counters;
  while (const auto block = documents.next().value()) {
    CHECK(block->counter == counters[block->destination]++);
    if (bytes_max >= 50) CHECK(block->tuples.size() <= bytes_max);
    const auto one = accumulate(application);
    REQUIRE(add_tuples(block->tuples, *one).is_ok());
    for (const auto& [key, values] : content_of(*one)) CHECK(destination_of(key, 3) == block->destination);
    REQUIRE(add_tuples(block->tuples, *back).is_ok());
  }
  CHECK(content_of(*back) == content_of(*table));
  if (bytes_max == 1) CHECK(counters.size() <= 3);
}

/// Returns the tuple documents that the map task of citycount, or of fieldstats over `value_field`, makes of documents
/// in this order.
std::vector<std::string> tuple_documents(const std::string& value_field, const std::vector<int>& order) {
  const std::vector<std::string> schema = {
      "document place { field city type string { header } field size type long { header } field price type double { "
      "body } }"};
  const auto types = DocumentTypeRepo::build(schema);
  REQUIRE(types.has_value());
  const DocumentType& type = *(*types)->find("place");
  ApplicationRegistry applications;
  add_builtin_applications(applications);
  const auto application = value_field.empty()
                               ? applications.create("citycount", {}, type)
                               : applications.create("fieldstats", {{"group", "city"}, {"value", value_field}}, type);
  REQUIRE(application.has_value());
  const auto table = make_accumulator(**application);
  for (const int n : order) {
    Document document(type, *DocumentId::parse("id:t:place::" + std::to_string(n)));
    REQUIRE(document.set("city", "city " + std::to_string(n % 17)).is_ok());
    REQUIRE(document.set("size", std::int64_t{n} << 40).is_ok());
    REQUIRE(document.set("price", (n % 3 == 0 ? 1e50 : 1e-10) * n * (n % 2 == 0 ? -0.1 : 0.1)).is_ok());
    const EncodedDocument encoded = encode(document);
    const auto view = DocumentView::open(**types, encoded.header, encoded.body);
    REQUIRE(view.has_value());
    REQUIRE(table->map(*view).is_ok());
  }
  TupleDocuments documents(table->drain(4), 400);
  std::vector<std::string> all;
  while (const auto block = documents.next().value()) {
    all.push_back(std::to_string(block->destination) + "/" + std::to_string(block->counter) + "/" + block->tuples);
  }
  return all;
}

TEST_CASE("a map task makes the same bytes whatever order its documents come in") {
  const std::string value_field = GENERATE("", "size", "price");
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) order.push_back(i);
  const auto first = tuple_documents(value_field, order);
  CHECK(first.size() >= 4);
  std::reverse(order.begin(), order.end());
  CHECK(tuple_documents(value_field, order) == first);
  for (std::size_t i = 0; i < order.size(); ++i) std::swap(order[i], order[i * i * 31 % order.size()]);
  CHECK(tuple_documents(value_field, order) == first);
}

TEST_CASE("malformed tuples and reports are refused") {
  Values application(false);
  const auto table = accumulate(application);
  CHECK_FALSE(add_tuples("", *table).is_ok());
  CHECK_FALSE(add_tuples("\x09", *table).is_ok());
  CHECK_FALSE(add_tuples(std::string("\1\3key\xff\xff\xff\x7f", 9), *table).is_ok());
  CHECK_FALSE(TupleChunk::decode("").has_value());
  CHECK_FALSE(TupleChunk::decode(std::string("\1\0", 2)).has_value());
  CHECK(TupleChunk::decode(TupleChunk::encode(7, "abc"))->tuples == "abc");
  TaskReport report;
  report.documents = 1000;
  report.tuple_documents = {{0, 3}, {7, 1}};
  const std::string bytes = report.encode();
  REQUIRE(TaskReport::decode(bytes).has_value());
  CHECK(TaskReport::decode(bytes)->tuple_documents == report.tuple_documents);
  CHECK_FALSE(TaskReport::decode(bytes.substr(0, bytes.size() - 1)).has_value());
  report.unit = 0x8000'0000'0000'0001;
  report.unit_chunks = 3;
  CHECK(TaskReport::decode(report.encode())->unit == report.unit);
  CHECK(TaskReport::decode(report.encode())->unit_chunks == 3);
}

TEST_CASE("different keys have different ids, and all of them are document ids") {
  TaskSpec spec;
  spec.job = "job";
  spec.output_namespace = "results";
  const std::vector<std::string> keys = {"",
                                         "a",
                                         "%61",
                                         "a%",
                                         std::string("\0", 1),
                                         "%00",
                                         "\xff",
                                         "%FF",
                                         "\xc3\xb8",
                                         "a/b",
                                         "a:b",
                                         "\xc2\x85",
                                         "a\n",
                                         "a%0A",
                                         "a%0a",
                                         "a\xff",
                                         "a%FF",
                                         std::string(600, 'a'),
                                         std::string(601, 'a'),
                                         std::string(300, '\xff')};
  std::set<std::string> ids;
  std::set<std::string> shown;
  for (const std::string& key : keys) {
    const auto id = DocumentId::parse(spec.result_id(key, 0));
    INFO(id.status());
    REQUIRE(id.has_value());
    ids.insert(id->str());
    shown.insert(printable_key(key));
  }
  CHECK(ids.size() == keys.size());
  CHECK(shown.size() == keys.size());
  CHECK(printable_key("a\n") == "a\n");
  CHECK(printable_key("a%0A") == "a%0A");
}

TEST_CASE("a task's parameters say the same on the other side") {
  TaskSpec spec;
  spec.job = "job-1";
  spec.application = "citycount";
  spec.document_type = "place";
  spec.output_base = 1ULL << 62;
  spec.output_buckets = 3;
  spec.parameters = {{"field", "a=b,c"}};
  spec.expected_documents = {1, 0, 20};
  spec.counts_processors = GENERATE(false, true);
  const auto back = TaskSpec::from_parameters(spec.to_parameters());
  REQUIRE(back.has_value());
  CHECK(back->to_parameters() == spec.to_parameters());
  CHECK(back->expected_documents == spec.expected_documents);
  CHECK(back->output_base == spec.output_base);
  CHECK(back->counts_processors == spec.counts_processors);
  CHECK_FALSE(TaskSpec::from_parameters({{"job", "x"}, {"output_buckets", "none"}}).has_value());
  CHECK_FALSE(TaskSpec::from_parameters({{"job", "x"}}).has_value());
}

TEST_CASE("a task's report says the same on the other side, and what it does not say takes no room") {
  TaskReport report;
  report.documents = 3;
  report.bytes = 400;
  const std::size_t least = report.encode().size();
  std::uint64_t TaskReport::*const numbers[] = {&TaskReport::spilled_bytes, &TaskReport::busy_us, &TaskReport::reused,
                                                &TaskReport::processor_us};
  for (unsigned set = 0; set < 16; ++set) {
    TaskReport one = report;
    for (unsigned i = 0; i < 4; ++i) one.*numbers[i] = (set >> i & 1) * (1000 + i);
    const std::string encoded = one.encode();
    CHECK((encoded.size() == least) == (set == 0));
    const auto back = TaskReport::decode(encoded);
    REQUIRE(back.has_value());
    CHECK(back->documents == 3);
    CHECK(back->bytes == 400);
    for (const auto number : numbers) CHECK((*back).*number == one.*number);
    CHECK_FALSE(TaskReport::decode(encoded + "x").has_value());
    CHECK_FALSE(TaskReport::decode(encoded.substr(0, encoded.size() - 1)).has_value());
  }
}

TEST_CASE("processors of a task do not count while it waits") {
  struct : Clock {
    MonotonicTime now() const override { return time; }
    WallTime wall_now() const override { return {}; }
    MonotonicTime time{};
  } clock;
  struct : visitors::VisitContext {
    const std::shared_ptr<const DocumentTypeRepo>& types() const override { return no_types; }
    visitors::Mailbox mailbox() const override { return {}; }
    void send(BucketId, std::string) override {}
    bool cancelled() const override { return false; }
    bool turn_is_over() const override { return is_over; }
    void note_processor_time(Duration worked) override { said += worked; }
    std::shared_ptr<const DocumentTypeRepo> no_types;
    bool is_over = false;
    Duration said{0};
  } context;
  struct : DocumentSink {
    void put(std::string, EncodedDocument, visitors::Mailbox, Done) override {}
    void remove(std::string, visitors::Mailbox, Done) override {}
  } sink;
  ThreadScheduler scheduler;
  const auto bulk = make_inline_bulk_executor();
  const auto env = make_posix_env();
  Random random(1);
  MetricRegistry metrics;
  TunableRegistry tunables;
  Runtime runtime{clock, scheduler, *bulk, *env, random, metrics, tunables};
  const ApplicationRegistry applications;
  TaskOptions options;
  options.counts_processors = true;
  const TaskContext shared(applications, sink, options, runtime);
  TaskReport report;
  for (const bool counts_processors : {false, true}) {
    TaskSpec spec;
    spec.counts_processors = counts_processors;
    const BusyTime busy(shared, spec, context, report);
    const Duration begin = processor_time();
    while (processor_time() - begin < milliseconds(2)) {
    }
    CHECK_FALSE(busy.is_over());
    clock.time = clock.time + seconds(3600);
    // A turn ends after an hour only to report the processor time, as no other task waits.
    CHECK(busy.is_over() == counts_processors);
    context.is_over = true;
    CHECK(busy.is_over());
    context.is_over = false;
  }
  CHECK(report.busy_us == 7'200'000'000);
  CHECK(report.processor_us >= 2'000);
  CHECK(report.processor_us < 3'600'000'000);
  CHECK(context.said == Duration(report.processor_us));
}

TEST_CASE("documents are given to an application with batches so that they take about a turn") {
  struct : Clock {
    MonotonicTime now() const override { return time; }
    WallTime wall_now() const override { return {}; }
    MonotonicTime time{};
  } clock;
  BatchSize batch(clock);
  const auto map = [&](Duration each) {
    const std::size_t documents = batch.documents();
    batch.begin();
    clock.time = clock.time + each * static_cast<std::int64_t>(documents);
    batch.end(documents);
  };
  for (int i = 0; i < 20; ++i) map(microseconds(10));
  CHECK(batch.documents() >= 500);
  CHECK(batch.documents() <= 1000);
  map(milliseconds(1));
  CHECK(batch.documents() == 10);
  map(seconds(1));
  CHECK(batch.documents() == 1);
  map(seconds(1));
  CHECK(batch.documents() == 1);
  for (int i = 0; i < 30; ++i) map(Duration(0));
  CHECK(batch.documents() == std::size_t{1} << 20);
}

TEST_CASE("the output of every job is spread evenly over the storage nodes, each job's over other buckets") {
  rpc::ClusterInfo info;
  info.state_version = 1;
  info.state = "version:1 bits:12 distributor:1 storage:3";
  const auto redundancy = GENERATE(1U, 2U);
  info.distribution = "redundancy:" + std::to_string(redundancy) + " (root 0-2)";
  info.distributor_addresses = {"d:1"};
  info.storage_addresses = {"s0:1", "s1:1", "s2:1"};
  const auto snapshot = rpc::ClusterSnapshot::update(nullptr, info);
  REQUIRE(snapshot.has_value());
  std::set<std::uint64_t> places;
  for (int job = 0; job < 50; ++job) {
    const std::uint64_t base = spread_output(**snapshot, 6, "job-" + std::to_string(job));
    places.insert(base);
    std::map<std::uint16_t, unsigned> replicas, reduced;
    std::set<BucketId> buckets;
    for (std::uint64_t i = 0; i < 6; ++i) {
      const BucketId bucket(12, base + i);
      buckets.insert(bucket);
      const NodeList nodes = (*snapshot)->ideal_nodes(bucket);
      ++reduced[nodes.front()];
      for (const std::uint16_t node : nodes) ++replicas[node];
    }
    CHECK(buckets.size() == 6);
    for (const auto& [node, count] : replicas) CHECK(count <= 2 * redundancy + 1);
    for (const auto& [node, count] : reduced) CHECK(count <= 3);
  }
  CHECK(places.size() == 50);
  CHECK(spread_output(**snapshot, 6, "job-7") == spread_output(**snapshot, 6, "job-7"));
}

/// A sink whose operations end when the test says so.
class WaitingSink final : public DocumentSink {
 public:
  void put(std::string, EncodedDocument document, visitors::Mailbox, Done done) override {
    bytes += document.size();
    waiting.emplace_back(document.size(), std::move(done));
  }
  void remove(std::string, visitors::Mailbox, Done done) override { waiting.emplace_back(0, std::move(done)); }
  void end_one(const Status& status = Status::ok()) {
    auto [size, done] = std::move(waiting.front());
    waiting.pop_front();
    bytes -= size;
    done(status);
  }

  std::deque<std::pair<std::size_t, Done>> waiting;
  std::size_t bytes = 0;  ///< Documents of operations that wait.
};

struct PumpRun {
  PumpRun(SinkLimits limits, std::size_t operations, std::size_t document_bytes) : left(operations) {
    pump = std::make_shared<SinkPump>(
        sink, visitors::Mailbox(), limits,
        [this, document_bytes](SinkOperation& operation) -> Result<bool> {
          if (left == 0) return false;
          operation.id = "id:a:b::" + std::to_string(left--);
          operation.document = EncodedDocument{std::string(document_bytes, 'x'), {}};
          return true;
        },
        [this](const Status& status) { ended = status; });
    pump->start();
  }

  std::size_t left;
  WaitingSink sink;
  std::optional<Status> ended;
  std::shared_ptr<SinkPump> pump;
};

TEST_CASE("a pump takes more when half of what it has in flight is acknowledged, and ends with the last one") {
  PumpRun run({.operations = 8, .bytes = 1000}, 20, 10);
  CHECK(run.sink.waiting.size() == 8);
  for (int i = 0; i < 3; ++i) run.sink.end_one();
  CHECK(run.sink.waiting.size() == 5);
  run.sink.end_one();
  CHECK(run.sink.waiting.size() == 8);
  while (!run.sink.waiting.empty()) {
    CHECK_FALSE(run.ended);
    CHECK(run.sink.waiting.size() <= 8);
    run.sink.end_one();
  }
  REQUIRE(run.ended);
  CHECK(run.ended->is_ok());
  CHECK(run.left == 0);
}

TEST_CASE("a pump has few large documents in flight, and at least one") {
  PumpRun run({.operations = 8, .bytes = 100}, 10, 40);
  CHECK(run.sink.bytes == 120);  // The last one exceeded the limit.
  std::size_t most = 0;
  while (!run.sink.waiting.empty()) {
    most = std::max(most, run.sink.bytes);
    run.sink.end_one();
  }
  CHECK(most == 120);
  REQUIRE(run.ended);

  PumpRun larger({.operations = 8, .bytes = 100}, 3, 500);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(larger.sink.waiting.size() == 1);
    larger.sink.end_one();
  }
  CHECK(larger.ended);
}

TEST_CASE("a pump that fails takes nothing more, and says so when nothing is in flight") {
  PumpRun run({.operations = 4, .bytes = 1000}, 20, 10);
  run.sink.end_one({StatusCode::NoSpace, "full"});
  CHECK(run.sink.waiting.size() == 3);
  while (!run.sink.waiting.empty()) {
    CHECK_FALSE(run.ended);
    run.sink.end_one();
  }
  REQUIRE(run.ended);
  CHECK(run.ended->code() == StatusCode::NoSpace);
}

}  // namespace
}  // namespace fjord::mapreduce
