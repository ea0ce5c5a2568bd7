#include "fjord/balancer/plan.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "fjord/balancer/simulator.h"

namespace fjord::balancer {
namespace {

/// Four nodes in groups 0, 0, 1, 2; two slices of two replicas on nodes 0 and 2.
BalanceModel two_slices() {
  BalanceModel model;
  model.redundancy = 2;
  model.nodes = {{.group = 0}, {.group = 0}, {.group = 1}, {.capacity = 2.0, .group = 2}};
  for (std::uint32_t i = 0; i < 2; ++i) {
    Slice slice;
    slice.range = {4 * i, 4 * (i + 1)};
    slice.reads = 100.0;
    slice.writes = 10.0;
    slice.bytes = 1000;
    slice.holders.push_back({0, 0.5});
    slice.holders.push_back({2, 0.5});
    model.slices.push_back(slice);
  }
  return model;
}

Plan plan_of(Move move) { return Plan{.moves = {move}}; }

TEST_CASE("loads are divided by capacity, writes go to every holder, reads by their shares") {
  BalanceModel model = two_slices();
  model.slices[0].holders[0].read_share = 0.8;
  model.slices[0].holders[1].read_share = 0.2;
  model.slices[1].holders[1].node = 3;
  const std::vector<double> loads = node_loads(model);
  CHECK(loads[0] == Approx(90.0 + 60.0));
  CHECK(loads[1] == 0.0);
  CHECK(loads[2] == Approx(30.0));
  CHECK(loads[3] == Approx(60.0 / 2.0));
  CHECK(imbalance(model, loads) == Approx(150.0 / (240.0 / 5.0)));
  model.nodes[1].usable = false;
  CHECK(imbalance(model, loads) == Approx(150.0 / (240.0 / 4.0)));
}

TEST_CASE("a move to a node is refused that takes nothing or is beside another replica") {
  const BalanceModel model = two_slices();
  const Move good{.kind = MoveKind::Place, .range = {0, 4}, .from = 0, .to = 3, .bytes = 1000};
  CHECK(check(plan_of(good), model) == Status::ok());

  SECTION("the group of the replica that stays") {
    Move move = good;
    move.from = 2;
    move.to = 1;
    CHECK(check(plan_of(move), model).code() == StatusCode::InvalidArgument);
    // A replica may move to another node of the group that it leaves.
    move.from = 0;
    CHECK(check(plan_of(move), model) == Status::ok());
  }
  SECTION("a node that accepts nothing, or is gone") {
    BalanceModel full = model;
    full.nodes[3].accepts = false;
    CHECK(!check(plan_of(good), full).is_ok());
    full.nodes[3] = {.group = 2, .usable = false};
    CHECK(!check(plan_of(good), full).is_ok());
  }
  SECTION("a slice in transfer, unless its node is gone") {
    BalanceModel moving = model;
    moving.slices[0].in_transfer = true;
    CHECK(!check(plan_of(good), moving).is_ok());
    moving.nodes[0].usable = false;
    CHECK(check(plan_of(good), moving) == Status::ok());
  }
  SECTION("more bytes than the step may move") {
    BalanceModel tight = model;
    tight.step_bytes_max = 1500;
    Plan plan = plan_of(good);
    CHECK(check(plan, tight) == Status::ok());
    plan.moves.push_back(good);
    plan.moves.back().range = {4, 8};
    CHECK(!check(plan, tight).is_ok());
  }
  SECTION("a slice that is not there, a source that does not hold it, a node that does not exist") {
    Move move = good;
    move.range = {0, 3};
    CHECK(!check(plan_of(move), model).is_ok());
    move = good;
    move.from = 1;
    CHECK(!check(plan_of(move), model).is_ok());
    move = good;
    move.to = 9;
    CHECK(!check(plan_of(move), model).is_ok());
  }
}

TEST_CASE("a plan is refused that needs more rows of the table of overrides than there are") {
  BalanceModel model;
  for (std::uint32_t node = 0; node < 3; ++node) model.nodes.push_back({.group = node});
  for (std::uint32_t bucket = 0; bucket < 2; ++bucket) {
    Slice slice;
    slice.range = {bucket, bucket + 1};
    slice.holders.push_back({.node = 0, .read_share = 1.0});
    model.slices.push_back(slice);
  }
  model.homes = std::make_shared<std::vector<NodeList>>(2, NodeList{0});
  model.rows_max = 1;
  const Move away{.range = {0, 1}, .from = 0, .to = 1};
  const Move other_away{.range = {1, 2}, .from = 0, .to = 1};
  const Move home{.range = {0, 1}, .from = 1, .to = 0};
  CHECK(check({.moves = {away}}, model));
  CHECK_FALSE(check({.moves = {away, other_away}}, model));
  CHECK(check({.moves = {away, home, other_away}}, model));
  CHECK(check({.moves = {away, {.range = {0, 1}, .from = 1, .to = 2}}}, model));
  model.nodes[0].usable = false;
  CHECK(check({.moves = {away, other_away}}, model));
}

TEST_CASE("a slice that is split and merged again is what it was") {
  BalanceModel model = two_slices();
  REQUIRE(apply({.kind = MoveKind::Split, .range = {0, 4}, .at = 1}, model) == Status::ok());
  REQUIRE(model.slices.size() == 3);
  CHECK(model.slices[0].reads == Approx(25.0));
  CHECK(model.slices[1].reads == Approx(75.0));
  CHECK(model.slices[0].bytes + model.slices[1].bytes == 1000);
  REQUIRE(apply({.kind = MoveKind::Merge, .range = {0, 1}}, model) == Status::ok());
  CHECK(model.slices.size() == 2);
  CHECK(model.slices[0].reads == Approx(100.0));
  CHECK(!apply({.kind = MoveKind::Split, .range = {0, 4}, .at = 4}, model).is_ok());
  CHECK(!apply({.kind = MoveKind::Merge, .range = {4, 8}}, model).is_ok());
  model.slices[1].holders[0].node = 1;
  CHECK(!apply({.kind = MoveKind::Merge, .range = {0, 4}}, model).is_ok());
}

TEST_CASE("no more reads are shifted than there are") {
  BalanceModel model = two_slices();
  REQUIRE(apply({.kind = MoveKind::ReadShare, .range = {0, 4}, .from = 0, .to = 2, .share = 0.3}, model) ==
          Status::ok());
  CHECK(model.slices[0].holders[0].read_share == Approx(0.2));
  CHECK(model.slices[0].holders[1].read_share == Approx(0.8));
  CHECK(!apply({.kind = MoveKind::ReadShare, .range = {0, 4}, .from = 0, .to = 2, .share = 0.3}, model).is_ok());
  CHECK(!apply({.kind = MoveKind::ReadShare, .range = {0, 4}, .from = 0, .to = 3, .share = 0.1}, model).is_ok());
}

}  // namespace
}  // namespace fjord::balancer
