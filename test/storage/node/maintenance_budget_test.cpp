#include "maintenance_budget.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "fjord/common/random.h"
#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

using storage::MaintenanceBudget;
using storage::WaitCounts;
using storage::YieldingRate;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kStepUs = 100;

/// One stripe on virtual time: a server that runs one task after the other, user operations, and merges that always
/// have more to move. A block is 1 MiB and keeps the stripe busy for 8 ms, a foreground batch for 0.3 ms.
class StripeModel {
 public:
  StripeModel(std::int64_t floor, std::int64_t ceiling) {
    REQUIRE(process_.runtime().tunables.set("maintenance.bytes_per_s", ceiling).code() == StatusCode::NotFound);
    REQUIRE(process_.runtime().tunables.set("maintenance.bytes_per_s_min", floor).code() == StatusCode::NotFound);
    budget_ = std::make_unique<MaintenanceBudget>(process_.runtime());
  }

  struct Load {
    double batches_per_s = 0;
    bool merges = true;
    Duration extra_wait{0};  ///< Additional wait of each batch, independent of merges.
  };
  struct Outcome {
    double moved_per_s = 0;
    double wait_ms = 0;  ///< 95th percentile of the waits of batches, in ms.
  };

  Outcome run(Duration duration, const Load& load) {
    std::int64_t moved = 0;
    std::vector<std::int64_t> waits;
    for (const std::int64_t end = now_ + duration.count(); now_ < end; now_ += kStepUs) {
      if (now_ % YieldingRate::kPeriod.count() == 0) budget_->end_period(true);
      if (random_.chance(load.batches_per_s * kStepUs / 1e6)) {
        const std::int64_t begin = std::max(free_at_, now_);
        waits.push_back(begin - now_ + load.extra_wait.count());
        budget_->note_foreground(Duration(waits.back()));
        free_at_ = begin + 300;
      }
      if (!load.merges || now_ < merging_until_ ||
          budget_->wait({now_}, MaintenanceBudget::Purpose::Safety) > Duration(0))
        continue;
      free_at_ = std::max(free_at_, now_) + 8000;
      merging_until_ = free_at_;
      budget_->charge({now_}, kMiB, MaintenanceBudget::Direction::In, MaintenanceBudget::Purpose::Safety);
      moved += kMiB;
    }
    std::sort(waits.begin(), waits.end());
    return {.moved_per_s = static_cast<double>(moved) * 1e6 / static_cast<double>(duration.count()),
            .wait_ms = waits.empty() ? 0 : static_cast<double>(waits[waits.size() * 95 / 100]) / 1000};
  }
  MaintenanceBudget& budget() { return *budget_; }
  Status set(const std::string& name, std::int64_t value) { return process_.runtime().tunables.set(name, value); }

 private:
  TestNetwork network_;
  sim::SimEnv env_;
  TestProcess<storage::StorageNode> process_{network_, "node", env_, 1};
  std::unique_ptr<MaintenanceBudget> budget_;
  Random random_{11};
  std::int64_t now_ = 0;
  std::int64_t free_at_ = 0;
  std::int64_t merging_until_ = 0;
};

constexpr std::int64_t kFloor = 2 * kMiB;
constexpr std::int64_t kCeiling = 64 * kMiB;

}  // namespace

TEST_CASE("maintenance budget: the quantile of waits is right to a quarter, and forgets") {
  WaitCounts waits;
  CHECK_FALSE(waits.take_quantile());
  for (std::int64_t us = 1; us <= 1000; ++us) waits.add(Duration(us));
  const Duration quantile = *waits.take_quantile();
  CHECK(quantile >= Duration(950));
  CHECK(quantile <= Duration(1190));
  CHECK_FALSE(waits.take_quantile());
  for (const std::int64_t us : {0, 1, 3, 4, 7, 8, 100, 5000, 123'456, 60'000'000}) {
    waits.add(Duration(us));
    const std::int64_t said = waits.take_quantile()->count();
    CHECK(said >= us);
    CHECK(static_cast<double>(said) <= static_cast<double>(us) * 1.25 + 1);
  }
}

TEST_CASE("maintenance budget: while nobody waits, the ceiling is reached and kept within some percent") {
  StripeModel stripe(kFloor, kCeiling);
  stripe.run(seconds(10), {});
  const StripeModel::Outcome quiet = stripe.run(seconds(20), {});
  CHECK(quiet.moved_per_s == Approx(kCeiling).epsilon(0.03));
  CHECK(stripe.budget().bytes_per_s() == kCeiling);
}

TEST_CASE("maintenance budget: it yields while users wait for merges, and comes back when they are gone") {
  StripeModel stripe(kFloor, kCeiling);
  const StripeModel::Load users{.batches_per_s = 500};
  const StripeModel::Outcome alone = stripe.run(seconds(10), {.batches_per_s = 500, .merges = false});
  stripe.run(seconds(3), users);
  const StripeModel::Outcome both = stripe.run(seconds(30), users);
  // Merges at full speed would keep the stripe busy for half of the time.
  CHECK(both.moved_per_s < kCeiling / 4.0);
  CHECK(both.moved_per_s > kFloor * 0.95);
  CHECK(both.wait_ms < alone.wait_ms + 5);
  stripe.run(seconds(8), {});
  CHECK(stripe.budget().bytes_per_s() == kCeiling);
  CHECK(stripe.run(seconds(10), {}).moved_per_s == Approx(kCeiling).epsilon(0.03));
}

TEST_CASE("maintenance budget: it falls to the floor in a few periods, and no lower") {
  StripeModel stripe(kFloor, kCeiling);
  stripe.run(seconds(10), {});
  const StripeModel::Load overload{.batches_per_s = 500, .extra_wait = seconds(1)};
  stripe.run(6 * YieldingRate::kPeriod, overload);
  CHECK(stripe.budget().bytes_per_s() == kFloor);
  CHECK(stripe.run(seconds(30), overload).moved_per_s == Approx(kFloor).epsilon(0.03));
  CHECK(stripe.budget().bytes_per_s() == kFloor);
}

TEST_CASE("maintenance budget: waits that were there before are not its fault") {
  StripeModel stripe(kFloor, kCeiling);
  const Duration usual = milliseconds(20);
  stripe.run(seconds(20), {.batches_per_s = 100, .merges = false, .extra_wait = usual});
  const StripeModel::Outcome outcome = stripe.run(seconds(20), {.batches_per_s = 100, .extra_wait = usual});
  CHECK(outcome.moved_per_s > kCeiling / 2.0);
}

TEST_CASE("maintenance budget: what comes after a pause begins at a quarter of the ceiling") {
  StripeModel stripe(kFloor, kCeiling);
  CHECK(stripe.budget().bytes_per_s() == kCeiling / 4.0);
  stripe.run(seconds(10), {});
  stripe.run(seconds(6), {.merges = false});
  CHECK(stripe.budget().bytes_per_s() == kCeiling / 4.0);
}

TEST_CASE("maintenance budget: while users' operations come, what only moves has a budget besides") {
  using Purpose = MaintenanceBudget::Purpose;
  StripeModel stripe(kFloor, kCeiling);
  MaintenanceBudget& budget = stripe.budget();  // The budget is a quarter of the ceiling: 16 MiB per second.
  REQUIRE(stripe.set("maintenance.moves_bytes_per_s", kMiB).is_ok());
  const auto wait_ms = [&](std::int64_t at_ms, Purpose purpose) {
    return budget.wait({at_ms * 1000}, purpose).count() / 1000;
  };

  budget.end_period(false);
  budget.charge({0}, kMiB / 4, MaintenanceBudget::Direction::In, Purpose::Move);
  CHECK(wait_ms(0, Purpose::Move) == wait_ms(0, Purpose::Safety));
  CHECK(wait_ms(50, Purpose::Move) == 0);

  budget.end_period(true);
  CHECK(wait_ms(50, Purpose::Move) == 0);  // Moves in earlier periods leave no debt.
  budget.charge({1'000'000}, kMiB / 8, MaintenanceBudget::Direction::Out, Purpose::Move);
  CHECK(wait_ms(1050, Purpose::Safety) == 0);
  CHECK(wait_ms(1050, Purpose::Move) == 75);
  budget.charge({1'050'000}, kMiB / 8, MaintenanceBudget::Direction::In, Purpose::Safety);
  CHECK(wait_ms(1050, Purpose::Move) == 75);  // Merges for safety add no debt to moves.
  CHECK(wait_ms(1130, Purpose::Move) == 0);

  budget.charge({2'000'000}, kMiB, MaintenanceBudget::Direction::In, Purpose::Move);
  CHECK(wait_ms(2100, Purpose::Move) == 200);  // A wait is at most one period long,
  budget.end_period(false);
  CHECK(wait_ms(2100, Purpose::Move) == 0);  // as users may have gone by then: now nothing waits.
}

// --- Merges on storage nodes -----------------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t kState = 4;
const BucketId kBucket = get_of(id_in(1, 0)).bucket;

class BudgetWorld : public NodeWorld {
 public:
  explicit BudgetWorld(std::int64_t bytes_per_s) : NodeWorld(3, {.merge_page_entries = 50, .merge_block_bytes = 2000}) {
    give_state(kState);
    for (std::uint16_t node = 0; node < 3; ++node) REQUIRE(install(node, kState, kBucket, {}));
    set_tunable("maintenance.bytes_per_s", bytes_per_s);
    set_tunable("maintenance.bytes_per_s_min", bytes_per_s);
    world.scheduler.run_for(seconds(1));
  }
  void fill(std::uint16_t node) {
    for (int number = 0; number < 400; ++number) {
      const std::string id = id_in(1, number);
      REQUIRE(
          apply_one(node, kState, put_of(id, 1000u + static_cast<unsigned>(number), std::string(1000, 'x'))).status);
    }
  }
  rpc::MergeBucket request(std::uint16_t source) {
    rpc::MergeBucket merge;
    merge.state_version = kState;
    merge.distributor = owner(kBucket);
    merge.bucket = kBucket;
    merge.sources = {source};
    merge.only_moves = only_moves;
    return merge;
  }
  /// Lets nodes merge from node 1 at the same time. Returns the duration.
  Duration merge(const std::vector<std::uint16_t>& targets) {
    auto process = world.scheduler.make_node_scheduler("distributor");
    auto executor = process->make_executor("merges");
    auto transport = world.network.transport_for("distributor");
    std::size_t done = 0;
    const MonotonicTime begin = world.scheduler.clock().now();
    for (std::uint16_t target : targets) {
      rpc::call(*transport, storage_address(target), request(1), seconds(600), *executor,
                [&](Result<rpc::MergeBucketReply> reply) {
                  REQUIRE(reply);
                  REQUIRE(reply->status);
                  ++done;
                });
    }
    REQUIRE(world.scheduler.run_until([&] { return done == targets.size(); }, seconds(600)));
    return world.scheduler.clock().now() - begin;
  }
  bool only_moves = false;

  double moved(const char* direction) {
    return metric("fjord_storage_maintenance_bytes_total", {{"direction", direction}});
  }
};

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

TEST_CASE("merge: a node takes no more bytes a second than its budget, and says how long it waited") {
  constexpr std::int64_t kRate = 40'000;
  BudgetWorld nodes(kRate);
  nodes.fill(1);
  const double took = seconds_of(nodes.merge({0}));
  const double moved = nodes.moved("in");
  CHECK(moved > 400'000);
  CHECK(moved == nodes.moved("out"));
  CHECK(took == Approx(moved / kRate).epsilon(0.05));
  CHECK(nodes.metric("fjord_storage_maintenance_throttled_ms_total") > took * 800);
  CHECK(nodes.metric("fjord_storage_maintenance_bytes_per_second") == 3 * kRate);  // The sum of the three nodes.
}

TEST_CASE("merge: a source has a budget too, which all that merge from it share") {
  constexpr std::int64_t kRate = 40'000;
  BudgetWorld nodes(kRate);
  nodes.fill(1);
  const double took = seconds_of(nodes.merge({0, 2}));
  CHECK(took >= nodes.moved("out") / kRate * 0.97);
  CHECK(took <= nodes.moved("out") / kRate * 1.1);
}

TEST_CASE("merge: one that only moves is slower while users' operations come, by what target and source allow") {
  constexpr std::int64_t kRate = 100'000;
  BudgetWorld nodes(1 << 30);
  nodes.fill(1);  // Makes enough operations that the node counts as busy for 10 s.
  nodes.only_moves = true;
  nodes.set_tunable("maintenance.moves_bytes_per_s", kRate);
  SECTION("one target") {
    const double took = seconds_of(nodes.merge({0}));
    CHECK(took == Approx(nodes.moved("in") / kRate).epsilon(0.05));
  }
  SECTION("a source of two") {
    const double took = seconds_of(nodes.merge({0, 2}));
    CHECK(took >= nodes.moved("out") / kRate * 0.97);
    CHECK(took <= nodes.moved("out") / kRate * 1.1);
  }
  SECTION("no users") {
    nodes.world.scheduler.run_for(seconds(11));
    CHECK(seconds_of(nodes.merge({0})) < 1);
  }
  SECTION("not only a move") {
    nodes.only_moves = false;
    CHECK(seconds_of(nodes.merge({0})) < 1);
  }
  CHECK(nodes.moved("in") > 400'000);
}

TEST_CASE("merge: another rate takes effect in the middle of it") {
  BudgetWorld nodes(1024);
  nodes.fill(1);
  auto process = nodes.world.scheduler.make_node_scheduler("distributor");
  auto executor = process->make_executor("merges");
  auto transport = nodes.world.network.transport_for("distributor");
  bool done = false;
  rpc::call(*transport, storage_address(0), nodes.request(1), seconds(600), *executor,
            [&](Result<rpc::MergeBucketReply> reply) { done = reply && reply->status; });
  nodes.world.scheduler.run_for(seconds(20));
  CHECK_FALSE(done);
  CHECK(nodes.moved("in") > 10'000);
  CHECK(nodes.moved("in") < 40'000);
  nodes.set_tunable("maintenance.bytes_per_s", 100 << 20);
  nodes.set_tunable("maintenance.bytes_per_s_min", 100 << 20);
  nodes.world.scheduler.run_for(seconds(10));
  CHECK(done);
}

}  // namespace fjord::test
