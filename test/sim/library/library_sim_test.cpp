// Visits and subscriptions of the library on a simulated cluster: storage nodes crash, messages are lost, documents are
// written meanwhile, and the program stops and resumes with the cursor again and again.

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "fjord/library/subscription.h"
#include "fjord/library/visit.h"
#include "library_world.h"
#include "support/detached.h"

namespace fjord::sim {
namespace {

/// Returns options with slices and snapshots for some seeds, and with a buffer of few documents.
VisitOptions visit_options_of(std::uint64_t seed) {
  VisitOptions options;
  options.slices = seed % 3 == 0 ? 3 : 1;
  options.snapshot = seed % 4 == 0;
  options.buffer_bytes = 500;
  options.priority = ClientPriority::Normal;
  return options;
}

/// What a coroutine took from its visit.
struct Taken {
  std::map<std::string, int> given;
  bool has_run = false;
  bool is_over = false;
  Status status;
  std::string cursor;
};

/// Takes up to `most` documents of a visit that the coroutine owns, and ends it on the client's thread.
Detached take(Client& client, VisitOptions options, std::uint64_t most, Taken& taken) {
  {
    Visit visit = client.visit(std::move(options));
    while (most-- > 0) {
      const Document* document = co_await visit.next();
      taken.is_over = document == nullptr;
      if (taken.is_over) break;
      ++taken.given[document->id().str()];
    }
    taken.status = visit.status();
    taken.cursor = visit.cursor();
  }
  taken.has_run = true;
}

/// Takes everything that has arrived.
template <typename Source>
Detached take_all(Source& source, Status& status) {
  while (true) {
    const auto* const value = co_await source.next();
    if (value == nullptr) break;
  }
  status = source.status();
}

}  // namespace

TEST_CASE("library: a visit that is stopped and resumed through faults gives each document once") {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    LibraryProcess process(world.cluster);
    VisitOptions options = visit_options_of(seed);
    std::map<std::string, int> given;
    int runs = 0;
    for (bool is_over = false; !is_over; ++runs) {
      Visit visit(process.core(), options);
      for (unsigned n = 0; n < 3; ++n) world.put(static_cast<unsigned>(world.random.below(kDocuments)));
      if (world.random.chance(0.3)) world.disturb();
      std::uint64_t left = 1 + world.random.below(40);
      const Document* document = nullptr;
      while (left-- > 0 && (document = visit.next()) != nullptr) ++given[document->id().str()];
      is_over = document == nullptr;
      INFO(visit.status().to_string());
      REQUIRE(visit.status().is_ok());
      options.resume = visit.cursor();
      world.settle();
    }
    CHECK(runs > 4);
    CHECK(given.size() == kDocuments);
    for (const auto& [id, times] : given) CHECK(times == 1);
  }
}

TEST_CASE("library: a copy that follows a subscription through stops and faults equals the documents") {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    LibraryProcess process(world.cluster);
    SubscribeOptions options;
    options.buffer_bytes = 500;
    options.poll_interval = milliseconds(100);
    std::map<std::string, std::int64_t> copy;
    constexpr int kRuns = 8;
    for (int run = 0; run <= kRuns; ++run) {
      // The last run has no faults and follows until it has caught up after the last write.
      const bool is_last = run == kRuns;
      if (is_last) {
        world.settle();
        REQUIRE(world.cluster.run_until_steady(seconds(300)));
      }
      Subscription changes(process.core(), options);
      if (!is_last) {
        for (unsigned n = 0; n < 5; ++n) {
          const auto number = static_cast<unsigned>(world.random.below(kDocuments));
          world.settle();
          world.random.chance(0.3) ? world.remove(number) : world.put(number);
        }
        if (world.random.chance(0.5)) world.disturb();
      }
      std::uint64_t left = is_last ? SIZE_MAX : 1 + world.random.below(100);
      while (left-- > 0) {
        const Change* change = changes.next();
        INFO(changes.status().to_string());
        REQUIRE(change != nullptr);
        REQUIRE(change->kind != Change::Kind::Resync);
        if (change->kind == Change::Kind::Put) copy[change->id] = *change->document->integer("value");
        if (change->kind == Change::Kind::Remove) copy.erase(change->id);
        if (is_last && change->kind == Change::Kind::CaughtUp) break;
      }
      options.resume = changes.cursor();
    }
    CHECK(copy == world.live);
  }
}

TEST_CASE("library: coroutines that own their visits, and end and resume them through faults, get each document once") {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    LibraryProcess process(world.cluster);
    VisitOptions options = visit_options_of(seed);
    std::map<std::string, int> given;
    for (bool is_over = false; !is_over;) {
      if (world.random.chance(0.3)) world.disturb();
      Taken taken;
      take(process.client(), options, 1 + world.random.below(80), taken);
      REQUIRE(world.cluster.run_until([&] { return taken.has_run; }, kCallLimit));
      INFO(taken.status.to_string());
      REQUIRE(taken.status.is_ok());
      for (const auto& [id, times] : taken.given) given[id] += times;
      is_over = taken.is_over;
      options.resume = taken.cursor;
    }
    CHECK(given.size() == kDocuments);
    for (const auto& [id, times] : given) CHECK(times == 1);
  }
}

TEST_CASE("library: the wait of a coroutine ends when its visit or subscription is stopped or destroyed") {
  for (const bool is_stopped : {true, false}) {
    World world(1);
    LibraryProcess process(world.cluster);
    auto changes = std::make_unique<Subscription>(process.core(), SubscribeOptions{});
    Status end_of_changes;
    Status end_of_visit;
    take_all(*changes, end_of_changes);
    world.cluster.scheduler().run_for(seconds(20));  // By then all documents were taken.
    auto visit = std::make_unique<Visit>(process.core(), VisitOptions{});
    take_all(*visit, end_of_visit);  // The visit has received nothing yet.
    if (is_stopped) {
      changes->stop();
      visit->stop();
      world.cluster.scheduler().run_for(seconds(1));
    } else {
      changes.reset();
      visit.reset();
    }
    CHECK(end_of_changes.code() == StatusCode::Cancelled);
    CHECK(end_of_visit.code() == StatusCode::Cancelled);
  }
}

TEST_CASE("library: a copy whose cursor is older than what the cluster remembers of removes is made anew") {
  int resyncs = 0;
  int resumes = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds / 2; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    world.configure("documents.remove_retention=1s");
    LibraryProcess process(world.cluster);
    SubscribeOptions options;
    options.buffer_bytes = 500;
    options.poll_interval = milliseconds(100);
    std::map<std::string, std::int64_t> copy;
    constexpr int kRuns = 6;
    for (int run = 0; run < kRuns; ++run) {
      // The last run follows until it has caught up after the last write.
      const bool is_last = run == kRuns - 1;
      Subscription changes(process.core(), options);
      std::uint64_t left = is_last || run == 0 ? SIZE_MAX : 1 + world.random.below(100);
      while (left-- > 0) {
        const Change* change = changes.next();
        INFO(changes.status().to_string());
        REQUIRE(change != nullptr);
        if (change->kind == Change::Kind::Resync) {
          CHECK(change->version.us > 0);
          CHECK(changes.is_over());
          break;
        }
        if (change->kind == Change::Kind::Put) copy[change->id] = *change->document->integer("value");
        if (change->kind == Change::Kind::Remove) copy.erase(change->id);
        if (change->kind == Change::Kind::CaughtUp && (is_last || run == 0)) break;
      }
      if (changes.is_over()) {
        // Subscribes without a cursor: the old cursor would get RESYNC again.
        ++resyncs;
        copy.clear();
        options.resume.clear();
        if (is_last) --run;
        continue;
      }
      ++resumes;
      options.resume = changes.cursor();
      if (is_last) break;
      for (unsigned n = 0; n < 5; ++n) {
        const auto number = static_cast<unsigned>(world.random.below(kDocuments));
        world.random.chance(0.5) ? world.remove(number) : world.put(number);
        world.settle();
      }
      if (world.random.chance(0.3)) world.disturb();
      // Sometimes the program is away for so long that the removes are dropped.
      if (world.random.chance(0.5)) world.cluster.scheduler().run_for(seconds(60));
    }
    CHECK(copy == world.live);
  }
  CHECK(resyncs > 5);
  CHECK(resumes > 40);
}

}  // namespace fjord::sim
