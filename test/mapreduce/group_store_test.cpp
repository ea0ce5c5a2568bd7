#include "task/group_store.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <set>

#include "fjord/common/check.h"
#include "fjord/sim/sim_env.h"
#include "incremental/partials.h"
#include "mapreduce/aggregate_world.h"
#include "task/key_reducer.h"
#include "task/task.h"

namespace fjord::mapreduce {
namespace {

/// Joins values that begin with +, and keeps other values apart.
class Joining final : public Application {
 public:
  Status configure(const ApplicationParameters&, const DocumentType&) override { return Status::ok(); }
  Status map(const DocumentView&, Emitter&) override { return Status::ok(); }
  bool combine(std::string_view, std::string& into, std::string_view value) override {
    if (into[0] != '+' || value[0] != '+') return false;
    into = "+" + std::to_string(std::stoi(into) + std::stoi(std::string(value)));
    return true;
  }
  Status reduce(std::string_view, std::span<const std::string_view>, ResultEmitter&) override { return Status::ok(); }
};

/// Joins values as Joining does, but takes many keys in one call. `most`: largest number of values of a key in a call.
class JoiningMany final : public Application, private BatchFunctions {
 public:
  Status configure(const ApplicationParameters&, const DocumentType&) override { return Status::ok(); }
  Status map(const DocumentView&, Emitter&) override { return Status::ok(); }
  Status reduce(std::string_view, std::span<const std::string_view>, ResultEmitter&) override { return Status::ok(); }
  BatchFunctions* batches() override { return this; }
  Result<MappedDocuments> map(std::span<const DocumentView>, const std::function<bool()>&) override {
    return MappedDocuments{};
  }
  Status combine(std::span<const KeyedValues> keys,
                 const std::function<void(std::size_t, std::string_view)>& on_value) override {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::string into(keys[i].values.front());
      for (const std::string_view value : keys[i].values.subspan(1)) one_.combine(keys[i].key, into, value);
      most = std::max(most, keys[i].values.size());
      on_value(i, into);
    }
    return Status::ok();
  }
  Result<std::vector<std::optional<std::string>>> reduce(std::span<const KeyedValues>) override {
    return std::vector<std::optional<std::string>>();
  }
  std::size_t most = 0;

 private:
  Joining one_;
};

using Content = std::vector<std::pair<std::pair<std::uint32_t, std::string>, std::vector<std::string>>>;

Content content_of(GroupStore& store) {
  Content content;
  auto source = store.finish();
  REQUIRE(source);
  Tuple tuple;
  for (;;) {
    const auto more = (*source)->next(tuple);
    INFO(more.status());
    REQUIRE(more);
    if (!*more) return content;
    content.push_back({{tuple.destination, std::string(tuple.key)}, {tuple.values.begin(), tuple.values.end()}});
  }
}

void fill(GroupStore& store, unsigned seed) {
  for (unsigned i = 0; i < 30'000; ++i) {
    const unsigned n = (i * 7919 + seed) % 30'000;
    const std::string value = n % 997 % 3 == 0 ? "value " + std::to_string(n) : "+1";
    REQUIRE(store.table().merge("key " + std::to_string(n % 997), value).is_ok());
    REQUIRE(store.keep_within_memory().is_ok());
  }
}

TEST_CASE("what comes out does not depend on how much was written to disk, nor on the order it came in") {
  sim::SimEnv env;
  SpillArea area(env, "/spill");
  Joining application;
  GroupStoreOptions options{.memory_bytes = 64 << 20, .spill_bytes = 1 << 30, .destinations = 5};
  GroupStore in_memory(application, area, options);
  fill(in_memory, 0);
  CHECK(in_memory.spilled_bytes() == 0);
  const Content expected = content_of(in_memory);
  CHECK(expected.size() == 997);
  CHECK(std::is_sorted(expected.begin(), expected.end()));
  for (const std::size_t memory : {150'000u, 300'000u}) {
    options.memory_bytes = memory;
    GroupStore store(application, area, options);
    fill(store, 17);
    CHECK(store.spilled_bytes() > 0);
    CHECK(content_of(store) == expected);
  }
}

TEST_CASE("a key with a million values among others is combined as they come, in memory as on disk") {
  sim::SimEnv env;
  SpillArea area(env, "/spill");
  Joining joining;
  JoiningMany joining_many;
  const bool many = GENERATE(false, true);
  Application& application = many ? static_cast<Application&>(joining_many) : joining;
  constexpr int kValues = 1'000'000, kOthers = 20'000;
  constexpr std::size_t kMemory = 1 << 20;
  GroupStore store(application, area, {.memory_bytes = kMemory, .spill_bytes = 1 << 30});
  for (int i = 0; i < kValues; ++i) {
    REQUIRE(store.table().merge("hot", "+1").is_ok());
    if (i % (kValues / kOthers) == 0) REQUIRE(store.table().merge("key " + std::to_string(i), "+1").is_ok());
    REQUIRE(store.keep_within_memory().is_ok());
  }
  // The other keys were spilled to disk, but hardly any value of the hot key.
  CHECK(store.spilled_bytes() > 0);
  CHECK(store.spilled_bytes() < std::size_t{30} * kOthers);
  const Content content = content_of(store);
  REQUIRE(content.size() == kOthers + 1);
  CHECK(content[0] == Content::value_type{{0, "hot"}, {"+1000000"}});
  CHECK(joining_many.most < kMemory / 10);
}

TEST_CASE("files are removed with their task, and what an earlier process left by clean()") {
  sim::SimEnv env;
  SpillArea area(env, "/spill");
  Joining application;
  {
    GroupStore store(application, area, {.memory_bytes = 200'000, .spill_bytes = 1 << 30});
    fill(store, 0);
    CHECK(env.list_directory("/spill").value().size() > 1);
  }
  CHECK(env.list_directory("/spill").value().empty());
  REQUIRE(env.create_random_access("/spill/groups-7").has_value());
  REQUIRE(area.clean().is_ok());
  CHECK_FALSE(env.exists("/spill/groups-7").value());
}

TEST_CASE("a flipped bit in a file is an error and no wrong group") {
  sim::SimEnv env;
  SpillArea area(env, "/spill");
  Joining application;
  GroupStore store(application, area, {.memory_bytes = 200'000, .spill_bytes = 1 << 30});
  fill(store, 0);
  auto file = env.open_random_access("/spill/groups-1");
  REQUIRE(file);
  char byte = 0;
  REQUIRE((*file)->read(5000, {&byte, 1}).has_value());
  byte = static_cast<char>(byte ^ 4);
  REQUIRE((*file)->write(5000, {&byte, 1}).is_ok());
  auto source = store.finish();
  REQUIRE(source);
  Tuple tuple;
  Result<bool> more = true;
  while (more && *more) more = (*source)->next(tuple);
  CHECK(more.status().code() == StatusCode::Corruption);
}

TEST_CASE("without a folder a task that outgrows its memory fails and names the setting") {
  sim::SimEnv env;
  SpillArea area(env, "");
  Joining application;
  GroupStore store(application, area, {.memory_bytes = 1000});
  Status status;
  for (int i = 0; i < 1000 && status; ++i) {
    REQUIRE(store.table().merge("key " + std::to_string(i), "+1").is_ok());
    status = store.keep_within_memory();
  }
  CHECK(status.code() == StatusCode::TooLarge);
  CHECK(status.message().find("mapreduce.task_memory_bytes") != std::string::npos);
}

TEST_CASE("300,000 different keys are counted exactly in 2 MiB a task") {
  const auto types = test::sale_types();
  AggregateSpec spec;
  spec.type = "sale";
  spec.group_by = {"cents"};
  spec.aggregates = {"count()", "sum(year)"};
  ApplicationRegistry registry;
  add_builtin_applications(registry);
  const auto application = registry.create("aggregate", {{"spec", spec.to_json()}}, *types->find("sale"), types.get());
  REQUIRE(application);
  sim::SimEnv env;
  SpillArea area(env, "/spill");
  constexpr int kKeys = 300'000;
  constexpr std::uint32_t kDestinations = 4;
  const GroupStoreOptions options{.memory_bytes = 2 << 20, .spill_bytes = 1 << 30, .destinations = kDestinations};
  // Each of two map tasks has all keys; their tuples are reduced destination by destination.
  std::vector<std::vector<std::string>> tuples(kDestinations);
  for (int task = 0; task < 2; ++task) {
    GroupStore store(**application, area, options);
    Document document(*types->find("sale"), *DocumentId::parse("id:t:sale::1"));
    std::size_t bytes_max = 0;
    for (int i = 0; i < kKeys; ++i) {
      const int n = task == 0 ? i : kKeys - 1 - i;
      FJORD_CHECK(document.set("cents", n * std::int64_t{1'000'003}).is_ok());
      FJORD_CHECK(document.set("year", task + n % 10).is_ok());
      const EncodedDocument encoded = encode(document);
      FJORD_CHECK(store.table().map(*DocumentView::open(*types, encoded.header, encoded.body)).is_ok());
      FJORD_CHECK(store.keep_within_memory().is_ok());
      bytes_max = std::max(bytes_max, store.table().bytes());
    }
    CHECK(bytes_max <= options.memory_bytes);
    CHECK(store.spilled_bytes() > options.memory_bytes);
    auto source = store.finish();
    REQUIRE(source);
    TupleDocuments documents(std::move(*source), 100'000);
    while (auto block = documents.next().value()) tuples[block->destination].push_back(std::move(block->tuples));
  }
  int rows = 0;
  bool are_right = true;
  for (const auto& of_destination : tuples) {
    GroupStoreOptions reduce = options;
    reduce.destinations = 1;
    GroupStore store(**application, area, reduce);
    for (const std::string& block : of_destination) {
      const Status status = for_each_tuple(block, [&](std::string_view key, std::string_view value) {
        FJORD_TRY(store.table().merge(key, value));
        return store.keep_within_memory();
      });
      REQUIRE(status.is_ok());
    }
    CHECK(store.spilled_bytes() > 0);
    auto source = store.finish();
    REQUIRE(source);
    Tuple tuple;
    while ((*source)->next(tuple).value()) {
      const std::string row = reduce_key(**application, tuple).value().value();
      const std::int64_t n = std::strtoll(row.c_str() + 1, nullptr, 10) / 1'000'003;
      are_right =
          are_right && row == "[" + std::to_string(n * 1'000'003) + ",2," + std::to_string(2 * (n % 10) + 1) + "]";
      ++rows;
    }
  }
  CHECK(rows == kKeys);
  CHECK(are_right);
}

TEST_CASE("of what is known of documents, those that have one of some keys are found, however many keys they have") {
  const auto tuples = [](std::initializer_list<const char*> keys) {
    std::string text;
    for (const char* key : keys) {
      put_string(text, key);
      put_string(text, "1");
    }
    return text;
  };
  BucketPartial partial;
  std::uint64_t number = 0;
  for (const std::string& own : {tuples({"a"}), tuples({"b"}), tuples({"b", "a"}), tuples({}), tuples({"c", "c"})}) {
    ++number;
    const GlobalId gid = DocumentId::parse("id:t:x::" + std::to_string(number))->gid();
    partial.add({.gid = gid, .timestamp = Timestamp{number}, .removed = false}, true, own);
  }
  KeyMarks marks;
  marks.add("a");
  std::set<std::string> found;
  const Status status = partial.for_each_tuples(&marks, [&](std::string_view own) {
    found.emplace(own);
    return Status::ok();
  });
  REQUIRE(status.is_ok());
  CHECK(found == std::set<std::string>{tuples({"a"}), tuples({"b", "a"}), tuples({"c", "c"})});
}

}  // namespace
}  // namespace fjord::mapreduce
