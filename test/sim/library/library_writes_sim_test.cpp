// Writes of the library on a simulated cluster: changes of many documents that are interrupted and resumed, and writes
// in doubt that are repeated with their idempotency keys, while nodes crash and messages are lost.

#include <catch2/catch.hpp>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "fjord/library/bulk.h"
#include "fjord/library/client.h"
#include "library_world.h"

namespace fjord::sim {
namespace {

/// The cursor that a program saves. The program may end between two saves.
struct Notebook {
  explicit Notebook(Random& draws) : random(draws) {}

  Status note(const std::string& cursor) {
    if (is_gone || random.chance(0.4)) {
      is_gone = true;
      return {StatusCode::Cancelled, "the program ended"};
    }
    kept = cursor;
    return Status::ok();
  }

  Random& random;
  std::string kept;
  bool is_gone = false;
};

BulkOptions bulk_options(World& world, Notebook& notebook) {
  BulkOptions options;
  options.type = "item";
  options.timeout = milliseconds(1000 + static_cast<std::int64_t>(world.random.below(3000)));
  options.in_flight = 1 + world.random.below(20);
  options.resume = notebook.kept;
  options.on_cursor = [&notebook](const std::string& cursor) { return notebook.note(cursor); };
  notebook.is_gone = false;
  return options;
}

ReadOptions newest() {
  ReadOptions options;
  options.consistency = ReadConsistency::Linearizable;
  return options;
}

std::int64_t count_of(LibraryProcess& process, unsigned n) {
  const ReadResult read = process.wait(process.client().get(id_of(n), newest()));
  INFO(id_of(n) << ": " << read.status.to_string());
  REQUIRE(read.status.is_ok());
  return read->integer("count").value_or(0);
}

}  // namespace

TEST_CASE("library: an update of many documents that is interrupted and resumed through faults changes each once") {
  int ends = 0;
  int faulty = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.slow_down(milliseconds(60));
    LibraryProcess process(world.cluster);
    Notebook notebook(world.random);
    BulkSummary summary;
    do {
      if (world.random.chance(0.5)) world.disturb();
      summary = process.client().update_where("item.value > 0", R"({"count": {"increment": 1}})",
                                              bulk_options(world, notebook));
      ends += notebook.is_gone ? 1 : 0;
      faulty += !notebook.is_gone && !summary ? 1 : 0;
    } while (!summary);
    CHECK(summary.cursor == notebook.kept);
    for (unsigned n = 0; n < kDocuments; ++n) CHECK(count_of(process, n) == 1);
  }
  // Changes were interrupted often: by the end of the process, and by errors.
  CHECK(ends > 20);
  CHECK(faulty > 5);
}

TEST_CASE(
    "library: a change with a time limit is made in parts, and each part says how many documents it has changed") {
  int parts = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.slow_down(milliseconds(60));
    LibraryProcess process(world.cluster);
    BulkOptions options;
    options.type = "item";
    options.slice = VisitSlice{1, 2};
    options.dry_run = true;
    const std::uint64_t matched = process.client().update_where("item.value > 0", "{}", options).matched;
    options.dry_run = false;
    options.time_limit = milliseconds(1 + static_cast<std::int64_t>(world.random.below(500)));
    std::uint64_t applied = 0;
    BulkSummary summary;
    do {
      summary = process.client().update_where("item.value > 0", R"({"count": {"increment": 1}})", options);
      REQUIRE(summary);
      options.resume = summary.cursor;
      applied += summary.applied;
      ++parts;
    } while (summary.has_more);
    std::uint64_t changed = 0;
    for (unsigned n = 0; n < kDocuments; ++n) {
      const std::int64_t count = count_of(process, n);
      CHECK(count <= 1);
      changed += static_cast<std::uint64_t>(count);
    }
    CHECK(changed == applied);
    CHECK(changed == matched);
    CHECK(changed > kDocuments / 4);
    CHECK(changed < kDocuments);
  }
  CHECK(parts > static_cast<int>(3 * kSeeds));
}

TEST_CASE("library: a change whose stop is requested ends soon, and its cursor continues it") {
  World world(1);
  world.slow_down(milliseconds(60));
  LibraryProcess process(world.cluster);
  std::stop_source stop;
  BulkOptions options;
  options.all_types = true;
  options.stop = stop.get_token();
  options.on_progress = [&](const BulkProgress&) { stop.request_stop(); };
  BulkSummary summary = process.client().update_where("true", R"({"count": {"increment": 1}})", options);
  CHECK(summary.status.code() == StatusCode::Cancelled);
  CHECK(summary.applied < kDocuments);
  BulkOptions rest;
  rest.all_types = true;
  // A cursor that was damaged where it is kept is refused. Another name of the run would change documents twice.
  constexpr const char* kIncrement = R"({"count": {"increment": 1}})";
  const std::string kept = summary.cursor;
  for (std::size_t i = 0; i + 1 < kept.size(); ++i) {
    rest.resume = kept;
    rest.resume[i] = kept[i] == '1' ? '2' : '1';
    const Status changed = process.client().update_where("true", kIncrement, rest).status;
    rest.resume = kept.substr(0, i);
    const Status cut = i == 0 ? changed : process.client().update_where("true", kIncrement, rest).status;
    INFO(i);
    CHECK(changed.code() == StatusCode::InvalidArgument);
    CHECK(cut.code() == StatusCode::InvalidArgument);
  }
  rest.resume = kept;
  summary = process.client().update_where("true", R"({"count": {"increment": 1}})", rest);
  CHECK(summary);
  for (unsigned n = 0; n < kDocuments; ++n) CHECK(count_of(process, n) == 1);
}

TEST_CASE("library: a remove of many documents that is resumed takes none that was written again after its remove") {
  std::size_t written_again = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.slow_down(milliseconds(60));
    LibraryProcess process(world.cluster);
    Notebook notebook(world.random);
    // Document n has the value n + 1; the selection matches half of them.
    constexpr unsigned kRemoved = kDocuments / 2;
    std::set<unsigned> again;
    BulkSummary summary;
    do {
      if (world.random.chance(0.5)) world.disturb();
      summary = process.client().remove_where("item.value <= 100", bulk_options(world, notebook));
      for (unsigned n = 0; n < 10; ++n) {
        const auto number = static_cast<unsigned>(world.random.below(kRemoved));
        const ReadResult read = process.wait(process.client().get(id_of(number), newest()));
        if (read.status.code() != StatusCode::NotFound) continue;
        world.put(number, number + 1);
        world.settle();
        again.insert(number);
      }
    } while (!summary);
    written_again += again.size();
    for (unsigned n = 0; n < kDocuments; ++n) {
      const ReadResult read = process.wait(process.client().get(id_of(n), newest()));
      INFO(id_of(n) << ": " << read.status.to_string());
      CHECK(read.status.code() == (n < kRemoved && !again.contains(n) ? StatusCode::NotFound : StatusCode::Ok));
    }
  }
  CHECK(written_again > 50);
}

TEST_CASE("library: a write in doubt that is repeated with its key until it is applied is applied once") {
  int doubts = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    LibraryProcess process(world.cluster);
    constexpr unsigned kCounters = 5;
    std::vector<std::int64_t> applied(kCounters);
    for (int round = 0; round < 60; ++round) {
      if (world.random.chance(0.2)) world.disturb();
      if (world.random.chance(0.1)) {
        world.cluster.crash_distributor(0);
        world.cluster.scheduler().outside().post_after(milliseconds(700),
                                                       [&world] { world.cluster.restart_distributor(0); });
      }
      const auto n = static_cast<unsigned>(world.random.below(kCounters));
      const std::string changes = R"({"count": {"increment": 1}})";
      WriteOptions options;
      options.timeout = milliseconds(20 + static_cast<std::int64_t>(world.random.below(1500)));
      WriteResult result = process.wait(process.client().update_json(id_of(n), changes, options));
      while (result.outcome == WriteOutcome::InDoubt) {
        ++doubts;
        REQUIRE_FALSE(result.status.idempotency_key().empty());
        REQUIRE(result.status.idempotency_key() == result.idempotency_key);
        options.idempotency_key = result.status.idempotency_key();
        result = process.wait(process.client().update_json(id_of(n), changes, options));
      }
      if (result) ++applied[n];
    }
    REQUIRE(world.cluster.run_until_steady(seconds(300)));
    for (unsigned n = 0; n < kCounters; ++n) CHECK(count_of(process, n) == applied[n]);
  }
  CHECK(doubts > 100);
}

}  // namespace fjord::sim
