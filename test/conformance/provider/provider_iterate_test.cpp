#include <algorithm>
#include <map>
#include <set>

#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"

namespace fjord::testing {

namespace {

const BucketId kBucket(8, 0x12);

std::unique_ptr<Engine> engine_with_items(int count) {
  const std::string name = GENERATE(from_range(engine_names()));
  UNSCOPED_INFO("engine: " << name);
  std::unique_ptr<Engine> engine = make_engine(name);
  REQUIRE(engine->provider().create_bucket(kBucket).is_ok());
  for (int i = 0; i < count; ++i) {
    const std::string text(static_cast<std::size_t>(i * 37 % 700), 'x');
    REQUIRE(apply(engine->provider(), kBucket, test_put(i, static_cast<std::uint64_t>(100 + i), text)).status.is_ok());
  }
  return engine;
}

std::shared_ptr<const Selection> selection(const std::string& text) {
  auto parsed = Selection::parse(text, *test_types());
  REQUIRE(parsed);
  return std::make_shared<const Selection>(*parsed);
}

std::set<std::string> ids_of(const std::vector<OwnedEntry>& entries) {
  std::set<std::string> ids;
  for (const OwnedEntry& entry : entries) ids.insert(entry.id);
  return ids;
}

}  // namespace

TEST_CASE(
    "persistence: iteration: testIterateAllDocs: an iteration gives every document once, whatever the block size") {
  const auto engine = engine_with_items(90);
  for (const std::size_t max_bytes : {std::size_t{1}, std::size_t{700}, std::size_t{1} << 20}) {
    const auto entries = iterate_all(engine->provider(), kBucket, {}, max_bytes);
    REQUIRE(entries.size() == 90);
    CHECK(ids_of(entries).size() == 90);
    for (const OwnedEntry& entry : entries) {
      const auto stored = engine->provider().get(kBucket, entry.gid);
      REQUIRE(stored);
      CHECK(entry.timestamp_us == stored->timestamp.us);
      CHECK(entry.header == stored->header);
      CHECK(entry.body == stored->body);
    }
  }
}

TEST_CASE("persistence: iteration: testIterateChunked: a block takes at least one entry and ends when it is full") {
  const auto engine = engine_with_items(20);
  auto iterator = engine->provider().iterate(kBucket, {});
  REQUIRE(iterator);
  DocBlockBuilder block;
  REQUIRE((*iterator)->next(block, 1).value());
  CHECK(block.count() == 1);
  REQUIRE((*iterator)->next(block, 1).value());  // Returns at once, because the block is full already.
  CHECK(block.count() == 2);
  std::size_t size = block.size();
  REQUIRE((*iterator)->next(block, size + 1000).value());
  CHECK(block.size() >= size + 1000);
  CHECK(block.size() < size + 1000 + 1000);  // The last entry may exceed the limit by its own size.
}

TEST_CASE("provider: an iteration over an empty bucket gives nothing, and says so again when asked again") {
  const auto engine = engine_with_items(0);
  auto iterator = engine->provider().iterate(kBucket, {});
  REQUIRE(iterator);
  DocBlockBuilder block;
  CHECK_FALSE((*iterator)->next(block, 100).value());
  CHECK_FALSE((*iterator)->next(block, 100).value());
  CHECK(block.empty());
}

TEST_CASE("provider: a selection picks by fields of the header and of the body") {
  const auto engine = engine_with_items(60);
  spi::IterateOptions options{.types = test_types(), .selection = selection("item.size >= 10 and item.size < 25")};
  REQUIRE_FALSE(options.selection->needs_body());
  const auto check_sizes = [&] {
    const auto found = iterate_all(engine->provider(), kBucket, options, 500);
    CHECK(found.size() == 15);
    for (const OwnedEntry& entry : found) CHECK(entry.body == engine->provider().get(kBucket, entry.gid)->body);
  };
  check_sizes();
  engine->checkpoint();  // From here on entries are read from files, many at a time.
  check_sizes();

  apply(engine->provider(), kBucket, test_put(200, 500, "needle"));
  options.selection = selection("item.text = \"needle\"");
  REQUIRE(options.selection->needs_body());
  const auto entries = iterate_all(engine->provider(), kBucket, options);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].id == test_id(200).str());

  options.selection = selection("true");
  CHECK(iterate_all(engine->provider(), kBucket, options).size() == 61);
  options.selection = selection("item.size == 1000");
  CHECK(iterate_all(engine->provider(), kBucket, options).empty());
}

TEST_CASE(
    "persistence: iteration: metadata_iteration_includes_doctype_and_gid: id-only gives gid, type and id, no fields "
    "and no body") {
  const auto engine = engine_with_items(30);
  apply(engine->provider(), kBucket, test_put(200, 500, "needle"));
  spi::IterateOptions options{.types = test_types(), .selection = nullptr, .parts = spi::Parts::IdOnly};
  const auto entries = iterate_all(engine->provider(), kBucket, options);
  REQUIRE(entries.size() == 31);
  for (const OwnedEntry& entry : entries) {
    const std::string whole(engine->provider().get(kBucket, entry.gid)->header);
    CHECK(entry.body.empty());
    CHECK(entry.header.ends_with(entry.id));
    CHECK(whole.starts_with(entry.header));
    CHECK(entry.header.size() < whole.size());
    CHECK(DocumentView::open(*test_types(), entry.header, {})->type_id() == test_types()->find("item")->id());
  }
  options.selection = selection("item.text = \"needle\"");
  const auto selected = iterate_all(engine->provider(), kBucket, options);
  REQUIRE(selected.size() == 1);
  CHECK(selected[0].id == test_id(200).str());
  CHECK(selected[0].body.empty());
}

TEST_CASE(
    "persistence: iteration: testIterateRemoves: removed entries are given only when asked for, and no selection is "
    "applied to them") {
  const auto engine = engine_with_items(30);
  for (int i = 0; i < 10; ++i) apply(engine->provider(), kBucket, test_remove(i, static_cast<std::uint64_t>(500 + i)));
  spi::IterateOptions options{.types = test_types(), .selection = nullptr};
  CHECK(iterate_all(engine->provider(), kBucket, options).size() == 20);
  options.include_removed = true;
  auto entries = iterate_all(engine->provider(), kBucket, options);
  CHECK(entries.size() == 30);
  CHECK(std::count_if(entries.begin(), entries.end(), [](const OwnedEntry& e) { return e.removed; }) == 10);
  options.selection = selection("item.size == 12");
  entries = iterate_all(engine->provider(), kBucket, options);
  REQUIRE(entries.size() == 11);
  for (const OwnedEntry& entry : entries) {
    CHECK(entry.removed == (entry.id != test_id(12).str()));
    CHECK(entry.header.empty() == entry.removed);
  }
}

TEST_CASE(
    "persistence: iteration: testIterateMatchTimestampRange: the time range includes both ends, for documents and "
    "removed entries") {
  const auto engine = engine_with_items(30);
  apply(engine->provider(), kBucket, test_remove(5, 112));
  spi::IterateOptions options{.types = nullptr, .selection = nullptr};
  options.include_removed = true;
  options.from = Timestamp{110};
  options.to = Timestamp{112};
  const auto entries = iterate_all(engine->provider(), kBucket, options);
  CHECK(ids_of(entries) ==
        std::set<std::string>{test_id(10).str(), test_id(11).str(), test_id(12).str(), test_id(5).str()});
}

TEST_CASE("provider: writes during an iteration neither hide what stays nor give a version twice") {
  const int count = GENERATE(15, 80);  // With fewer documents more splits happen during the iteration.
  const auto engine = engine_with_items(count);
  auto& provider = engine->provider();
  auto iterator = provider.iterate(kBucket, {});
  REQUIRE(iterator);
  std::set<std::pair<std::string, std::uint64_t>> given;
  std::set<std::string> ids;
  bool more = true;
  std::uint64_t timestamp = 1000;
  for (int step = 0; more; ++step) {
    DocBlockBuilder block;
    const Result<bool> result = (*iterator)->next(block, 300);
    REQUIRE(result);
    more = *result;
    for (const OwnedEntry& entry : entries_of(block.take())) {
      const auto stored = provider.get(kBucket, entry.gid);
      REQUIRE(stored);
      CHECK(entry.timestamp_us == stored->timestamp.us);  // The entry is the version at the time of the read.
      CHECK(entry.body == stored->body);
      CHECK(given.emplace(entry.id, entry.timestamp_us).second);
      ids.insert(entry.id);
    }
    if (step > 100) continue;
    // Replaces some documents and adds others; meanwhile slotfiles are appended to, compacted, enlarged and split.
    apply(provider, kBucket, test_put(step * 7 % count, ++timestamp, std::string(200, 'y')));
    for (int i = 0; i < 5; ++i) {
      apply(provider, kBucket, test_put(1000 + step * 5 + i, ++timestamp, std::string(300, 'z')));
    }
    apply(provider, kBucket, test_remove(9000 + step, ++timestamp));
  }
  for (int i = 0; i < count; ++i) CHECK(ids.contains(test_id(i).str()));
}

TEST_CASE("provider: header-only gives whole headers and no body, also under a selection on the body") {
  const auto engine = engine_with_items(30);
  apply(engine->provider(), kBucket, test_put(200, 500, "needle"));
  spi::IterateOptions options{.types = test_types(), .selection = nullptr, .parts = spi::Parts::HeaderOnly};
  for (const char* text : {"", "item.size >= 10 and item.size < 25", "item.text = \"needle\""}) {
    CAPTURE(text);
    options.selection = *text == 0 ? nullptr : selection(text);
    options.parts = spi::Parts::All;
    auto expected = iterate_all(engine->provider(), kBucket, options);
    REQUIRE_FALSE(expected.empty());
    REQUIRE(std::any_of(expected.begin(), expected.end(), [](const OwnedEntry& e) { return !e.body.empty(); }));
    for (OwnedEntry& entry : expected) entry.body.clear();
    options.parts = spi::Parts::HeaderOnly;
    CHECK((iterate_all(engine->provider(), kBucket, options) == expected));
  }
}

TEST_CASE("provider: an iteration without blocks gives the same, and goes on where its sink stopped it") {
  const auto engine = engine_with_items(40);
  for (int i = 0; i < 5; ++i) apply(engine->provider(), kBucket, test_remove(i, static_cast<std::uint64_t>(500 + i)));
  spi::IterateOptions options{.types = test_types(), .selection = selection("item.size < 30")};
  options.include_removed = true;
  std::vector<OwnedEntry> expected = iterate_all(engine->provider(), kBucket, options);
  REQUIRE(expected.size() == 30);
  for (OwnedEntry& entry : expected) {
    if (!entry.removed) entry.id.clear();  // The id is in the header; engines need not return it in the view as well.
  }

  const auto iterator = engine->provider().iterate(kBucket, options);
  REQUIRE(iterator);
  std::vector<OwnedEntry> given;
  const auto take_up_to = [&](std::size_t count) {
    return [&given, count](const EntryView& entry) {
      const std::string_view id = entry.removed ? entry.id : std::string_view{};
      given.push_back({.gid = entry.gid,
                       .timestamp_us = entry.timestamp.us,
                       .removed = entry.removed,
                       .id = std::string(id),
                       .header = std::string(entry.header),
                       .body = std::string(entry.body)});
      return given.size() < count;
    };
  };
  CHECK((*iterator)->visit(take_up_to(1)).value());
  CHECK(given.size() == 1);
  CHECK((*iterator)->visit(take_up_to(12)).value());
  CHECK(given.size() == 12);
  CHECK_FALSE((*iterator)->visit(take_up_to(1000)).value());
  std::sort(given.begin(), given.end());
  CHECK((given == expected));
}

TEST_CASE("provider: a snapshot gives what there was when it was made, whatever becomes of the bucket") {
  const auto engine = engine_with_items(60);
  auto& provider = engine->provider();
  apply(provider, kBucket, test_remove(3, 400));
  spi::IterateOptions options{.types = test_types(), .selection = nullptr};
  options.include_removed = true;
  const std::vector<OwnedEntry> expected = iterate_all(provider, kBucket, options);
  REQUIRE(expected.size() == 60);
  options.snapshot = true;
  const auto iterator = provider.iterate(kBucket, options);
  REQUIRE(iterator);
  DocBlockBuilder block;
  REQUIRE((*iterator)->next(block, 2000).value());
  std::vector<OwnedEntry> given = entries_of(block.take());
  REQUIRE(given.size() < 30);

  std::uint64_t timestamp = 1000;
  for (int i = 0; i < 60; i += 2) apply(provider, kBucket, test_put(i, ++timestamp, std::string(900, 'n')));
  for (int i = 1; i < 60; i += 4) apply(provider, kBucket, test_remove(i, ++timestamp));
  for (int i = 100; i < 160; ++i) apply(provider, kBucket, test_put(i, ++timestamp, std::string(300, 'm')));
  const auto clean_up = [&] {
    MonotonicTime now(1'000'000);
    for (int i = 0; i < 500 && provider.maintain(now).more; ++i) now = now + std::chrono::seconds(1);
  };
  clean_up();  // Replaced versions may be removed from the disk here.
  SECTION("written to") {}
  SECTION("split") { REQUIRE(provider.split_bucket(kBucket).is_ok()); }
  SECTION("deleted") { REQUIRE(provider.delete_bucket(kBucket).is_ok()); }
  SECTION("made anew") {
    REQUIRE(provider.delete_bucket(kBucket).is_ok());
    REQUIRE(provider.create_bucket(kBucket).is_ok());
    apply(provider, kBucket, test_put(7, ++timestamp));
  }
  clean_up();

  for (bool more = true; more;) {
    DocBlockBuilder rest;
    const Result<bool> result = (*iterator)->next(rest, 2000);
    REQUIRE(result);
    more = *result;
    for (OwnedEntry& entry : entries_of(rest.take())) given.push_back(std::move(entry));
  }
  std::sort(given.begin(), given.end());
  CHECK((given == expected));
}

TEST_CASE("provider: what is removed before its turn is not given") {
  const auto engine = engine_with_items(50);
  auto& provider = engine->provider();
  auto iterator = provider.iterate(kBucket, {});
  REQUIRE(iterator);
  DocBlockBuilder first;
  REQUIRE((*iterator)->next(first, 1).value());
  const std::string given = entries_of(first.take()).front().id;
  for (int i = 0; i < 50; ++i) apply(provider, kBucket, test_remove(i, 1000));
  DocBlockBuilder rest;
  CHECK_FALSE((*iterator)->next(rest, 1 << 20).value());
  CHECK(rest.empty());
}

TEST_CASE("provider: an iteration over a bucket that was deleted says so, even when it was made again") {
  const auto engine = engine_with_items(50);
  auto& provider = engine->provider();
  auto iterator = provider.iterate(kBucket, {});
  REQUIRE(iterator);
  DocBlockBuilder block;
  REQUIRE((*iterator)->next(block, 1).value());
  REQUIRE(provider.delete_bucket(kBucket).is_ok());
  CHECK((*iterator)->next(block, 1).status().code() == StatusCode::NotFound);
  REQUIRE(provider.create_bucket(kBucket).is_ok());
  CHECK((*iterator)->next(block, 1).status().code() == StatusCode::NotFound);
}

}  // namespace fjord::testing
