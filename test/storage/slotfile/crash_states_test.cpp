#include <catch2/catch.hpp>

#include "crash_explorer.h"
#include "fjord/testing/engine.h"

namespace fjord {

namespace {

using slotfile_testing::checkpoint_step;
using slotfile_testing::compact_step;
using slotfile_testing::create_step;
using slotfile_testing::Explored;
using slotfile_testing::ExploreOptions;
using slotfile_testing::is_long_run;
using slotfile_testing::kHalf0;
using slotfile_testing::kHalf1;
using slotfile_testing::kParent;
using slotfile_testing::kThinning;
using slotfile_testing::kWhole;
using slotfile_testing::maintain_step;
using slotfile_testing::number_in;
using slotfile_testing::provider_step;
using slotfile_testing::put_step;
using slotfile_testing::restart_step;
using slotfile_testing::Step;
using testing::test_put;
using testing::test_remove;

constexpr std::uint64_t kForgetBefore = 900;

std::string text(std::size_t bytes) { return std::string(bytes, 't'); }

std::vector<Step> first_documents() {
  std::vector<Step> steps{create_step(kWhole), create_step(kHalf0), create_step(kHalf1)};
  std::vector<testing::OwnedWrite> writes;
  for (int n = 0; n < 5; ++n) writes.push_back(test_put(number_in(kWhole, n), 10 + static_cast<unsigned>(n), text(90)));
  steps.push_back(put_step(kWhole, writes));
  steps.push_back(put_step(kHalf0, {test_put(number_in(kHalf0, 0), 20), test_put(number_in(kHalf0, 1), 21)}));
  steps.push_back(put_step(kHalf1, {test_put(number_in(kHalf1, 0), 22), test_remove(number_in(kHalf1, 1), 23)}));
  return steps;
}

struct Prepared {
  std::string name;
  std::vector<Step> steps;
  SlotfileLimits limits;
};

/// Returns the starting points of the workloads: all entries in the journal; slotfiles with dead bytes; several slots
/// that share files, with a journal.
std::vector<Prepared> prepared() {
  const SlotfileLimits limits = testing::tiny_slotfile_options("/buckets").limits;
  std::vector<Prepared> all{{.name = "journal", .steps = first_documents(), .limits = limits}};

  std::vector<Step> steps = first_documents();
  steps.push_back(checkpoint_step());
  steps.push_back(put_step(kWhole, {test_put(number_in(kWhole, 1), 40, text(900))}));
  steps.push_back(checkpoint_step());
  steps.push_back(put_step(kWhole, {test_put(number_in(kWhole, 1), 41), test_remove(number_in(kWhole, 4), 42)}));
  steps.push_back(checkpoint_step());
  all.push_back({.name = "slotfiles", .steps = steps, .limits = limits});

  steps = first_documents();
  std::vector<testing::OwnedWrite> writes;
  for (int n = 5; n < 10; ++n) writes.push_back(test_put(number_in(kWhole, n), 30, text(40)));
  steps.push_back(put_step(kWhole, writes));
  steps.push_back(checkpoint_step());
  steps.push_back(put_step(kWhole, {test_put(number_in(kWhole, 0), 40), test_remove(number_in(kWhole, 1), 41)}));
  all.push_back({.name = "slots", .steps = steps, .limits = limits});
  all.back().limits.entries_max = 4;
  all.back().limits.slotfiles_max = 4;
  return all;
}

/// Returns a step of every kind. Steps at the first and at the second place of a workload have different `n`.
std::vector<Step> operations(int n) {
  const auto at = static_cast<std::uint64_t>(100 * n);
  std::vector<Step> all{
      put_step(kWhole, {test_put(number_in(kWhole, 10 + n), at)}),
      put_step(kWhole,
               {test_put(number_in(kWhole, 1), at + 1, text(300)), test_put(number_in(kWhole, 12 + n), at + 2)}),
      put_step(kWhole, {test_put(number_in(kWhole, 0), at + 3, text(700))}, spi::Durability::Sync),
      put_step(kWhole, {test_put(number_in(kWhole, 3), at + 6, text(4000))}),
      put_step(kWhole, {test_remove(number_in(kWhole, 2), at + 4)}),
      put_step(kHalf0, {test_put(number_in(kHalf0, 0), at + 5)}),
      provider_step("split", [](auto& provider) { return provider.split_bucket(kWhole); }),
      provider_step("join what was split", [](auto& provider) { return provider.join_buckets(kWhole); }),
      provider_step("join", [](auto& provider) { return provider.join_buckets(kParent); }),
      provider_step("set_replica_set",
                    [=](auto& provider) {
                      return provider.set_replica_set(kWhole, {.epoch = at, .nodes = {1, 2}});
                    }),
      provider_step("delete", [](auto& provider) { return provider.delete_bucket(kWhole); }),
      create_step(halves_of(kWhole)[n == 1 ? 0 : 1]),
      provider_step("forget", [](auto& provider) { return provider.forget_removes(kWhole, Timestamp{kForgetBefore}); }),
      compact_step(),
      maintain_step(3),
      checkpoint_step(),
      restart_step(),
  };
  return all;
}

ExploreOptions options_for(const Prepared& start, Durability durability) {
  ExploreOptions options;
  options.engine = testing::tiny_slotfile_options("/buckets");
  options.engine.limits = start.limits;
  options.engine.limits.scrub_bytes_per_second = 0;
  options.engine.durability = durability;
  options.forget_before_us = kForgetBefore;
  return options;
}

void report(const Explored& explored) {
  INFO(explored.failure);
  REQUIRE(explored.failure.empty());
  CHECK(explored.images > 50);  // With fewer images the test would show nothing.
  CHECK(explored.second_crashes > 100 / kThinning);
  if (is_long_run()) {
    WARN(explored.workloads << " workloads, " << explored.crash_points << " crash points, " << explored.images
                            << " images, " << explored.second_crashes << " second crashes, " << explored.reported_losses
                            << " reported losses");
  }
}

}  // namespace

TEST_CASE("slotfile: every crash during every one-operation workload leaves a state that the operations explain") {
  const Durability durability = GENERATE(Durability::Process, Durability::Sync);
  Explored explored;
  for (const Prepared& start : prepared()) {
    ExploreOptions options = options_for(start, durability);
    options.sample = kThinning;
    options.sample_second = is_long_run() ? 5 : 200;
    // Also explores the steps that make the starting point.
    explore(start.steps, start.steps.size(), options, explored);
    for (const Step& operation : operations(1)) {
      std::vector<Step> steps = start.steps;
      steps.push_back(operation);
      explore(steps, 1, options, explored);
    }
  }
  report(explored);
}

TEST_CASE("slotfile: what one crash took does not come back after another") {
  Explored explored;
  for (const Prepared& start : prepared()) {
    ExploreOptions options = options_for(start, Durability::Sync);
    options.sample_second = kThinning;
    std::vector<Step> steps = start.steps;
    steps.push_back(restart_step());
    steps.push_back(operations(1).front());
    steps.push_back(provider_step("split", [](auto& provider) { return provider.split_bucket(kWhole); }));
    explore(steps, 2, options, explored);
  }
  report(explored);
}

TEST_CASE("slotfile: every crash during every two-operation workload leaves a state that the operations explain") {
  const Durability durability = GENERATE(Durability::Process, Durability::Sync);
  Explored explored;
  for (const Prepared& start : prepared()) {
    ExploreOptions options = options_for(start, durability);
    options.sample = is_long_run() ? 1 : 2 * kThinning;
    options.sample_second = is_long_run() ? 50 : 2000;
    for (const Step& first : operations(1)) {
      for (const Step& second : operations(2)) {
        std::vector<Step> steps = start.steps;
        steps.push_back(first);
        steps.push_back(second);
        explore(steps, 1, options, explored);
      }
    }
  }
  report(explored);
}

}  // namespace fjord
