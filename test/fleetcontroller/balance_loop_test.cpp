// The balancer in the leading fleet controller, against nodes whose loads follow the cluster state.

#include <fmt/format.h>

#include "fjord/cluster/feature.h"
#include "fleet_world.h"

namespace fjord::fleetcontroller {
namespace {

/// Three or more storage nodes, which count operations on the buckets that the cluster state gives them.
class LoadedFleet {
 public:
  explicit LoadedFleet(unsigned storage = 4, std::vector<std::string> all_know = {}) : features(std::move(all_know)) {
    fleet.options.storage.clear();
    for (unsigned i = 0; i < storage; ++i) fleet.options.storage.push_back(fmt::format("storage.{}:1", i));
    fleet.options.distribution = DistributionConfig::flat(static_cast<std::uint16_t>(storage), 2).to_string();
    fleet.options.distribution_bits = 5;
    for (unsigned i = 0; i < storage; ++i) start(i);
    fleet.start_node("distributor.0");
    fleet.node("distributor.0").features = features;
    REQUIRE(fleet.start_controller());
    REQUIRE(fleet.run_until_all_know(1, seconds(5)));
    rate.assign(32, 10);
  }

  void start(unsigned i) {
    const std::string name = fmt::format("storage.{}", i);
    fleet.start_node(name);
    AnsweringNode& node = fleet.node(name);
    node.features = features;
    node.loads = [this, i, &node, counts = std::vector<rpc::BucketLoad>(32),
                  at = now_us()](std::uint64_t incarnation) mutable {
      const double elapsed_s = static_cast<double>(now_us() - std::exchange(at, now_us())) / 1e6;
      rpc::GetLoadsReply reply;
      reply.incarnation = incarnation;
      reply.bits = 5;
      reply.now_us = now_us();
      const auto snapshot = node.snapshots.get();
      for (std::uint64_t bucket = 0; bucket < 32; ++bucket) {
        counts[bucket].bucket = bucket;
        const bool holds = snapshot->ideal_nodes(BucketId(5, bucket)).contains(static_cast<std::uint16_t>(i));
        counts[bucket].stored_bytes = holds ? 1000 : 0;
        const double part = holds ? read_part(snapshot->state(), bucket, static_cast<std::uint16_t>(i)) : 0;
        counts[bucket].reads += static_cast<std::uint64_t>(rate[bucket] * 2 * part * elapsed_s);
        reply.total.reads += counts[bucket].reads;
      }
      reply.buckets = counts;
      return reply;
    };
  }

  /// Returns the part of a bucket's reads that goes to `node`, one of its two replicas.
  static double read_part(const ClusterState& state, std::uint64_t bucket, std::uint16_t node) {
    const auto shares = state.read_shares_of(bucket);
    for (const ReadShare& share : shares) {
      if (share.node == node) return share.permille / 1000.0;
    }
    return shares.empty() ? 0.5 : 0;
  }

  void configure(const std::string& mode) {
    REQUIRE(fleet.caller
                .ask(kController, set({"balancer.mode=" + mode, "balancer.load=operations", "balancer.round=1s",
                                       "balancer.bytes_part=0.05", "balancer.operations_min=10"}))
                .status);
  }
  /// Makes the buckets of storage.0 hot: much read.
  void heat() {
    const auto snapshot = fleet.node("storage.0").snapshots.get();
    for (std::uint64_t bucket = 0; bucket < 32; ++bucket) {
      rate[bucket] = snapshot->ideal_nodes(BucketId(5, bucket)).contains(0) ? 40 : 10;
    }
  }
  rpc::BalanceReply ask(rpc::BalanceAction action) {
    rpc::Balance request;
    request.action = action;
    return fleet.caller.ask(kController, request);
  }
  rpc::BalanceReply status() { return ask(rpc::BalanceAction::Status); }
  std::vector<rpc::BalanceStep> steps() { return ask(rpc::BalanceAction::History).steps; }
  bool run_until(const std::function<bool()>& done, Duration limit) {
    for (Duration spent{0}; spent < limit; spent += milliseconds(250)) {
      if (done()) return true;
      fleet.world.scheduler.run_for(milliseconds(250));
    }
    return done();
  }
  std::int64_t now_us() { return fleet.world.scheduler.clock().now().us; }

  std::vector<std::string> features;
  Fleet fleet;
  std::vector<double> rate;
};

}  // namespace

TEST_CASE("balancer: in mode on buckets leave the hot node, within the budget and the cool-down") {
  LoadedFleet loaded;
  loaded.heat();
  loaded.configure("on");
  loaded.fleet.world.scheduler.run_for(seconds(3));
  const std::uint32_t before = loaded.status().imbalance;
  CHECK(before > 1100);
  REQUIRE(loaded.run_until([&] { return !loaded.fleet.state().exceptions().empty(); }, seconds(10)));
  REQUIRE(loaded.run_until([&] { return loaded.status().imbalance < 1100; }, seconds(60)));

  const auto steps = loaded.steps();
  std::map<std::uint64_t, std::uint64_t> moved_in;
  for (const rpc::BalanceStep& step : steps) {
    CHECK(step.kind == "load");
    CHECK(step.bytes <= step.bytes_total / 20);
    // The plan expects 0.02 less, of the loads to come; these figures are of the loads at that time.
    CHECK(step.imbalance_after + 15 <= step.imbalance_before);
    for (const rpc::BalanceMove& move : step.moves) {
      if (moved_in.contains(move.bucket)) CHECK(step.round >= moved_in[move.bucket] + 6);
      moved_in[move.bucket] = step.round;
    }
  }
  // At least one step was made. Each is in the state after the one that it was made for.
  REQUIRE_FALSE(steps.empty());
  CHECK(loaded.fleet.metric("fjord_fleetcontroller_balance_steps_total") == static_cast<double>(steps.size()));
  CHECK(loaded.fleet.metric("fjord_fleetcontroller_override_rows") > 0);
  const rpc::BalanceReply status = loaded.status();
  CHECK(status.mode == "on");
  CHECK(status.unit == "operations");
  REQUIRE(status.nodes.size() == 4);
  for (const rpc::BalanceNode& node : status.nodes) CHECK(node.counted > 0);
  CHECK(status.slices.size() == 10);
}

TEST_CASE("balancer: a node that is far too hot is left alone for one round and not for two") {
  LoadedFleet loaded;
  loaded.heat();
  loaded.configure("on");
  REQUIRE(loaded.run_until([&] { return loaded.status().imbalance > 1300; }, seconds(10)));
  // The first round with an imbalance carries its step out.
  CHECK(loaded.run_until([&] { return !loaded.steps().empty(); }, milliseconds(500)));
}

TEST_CASE("balancer: reads go to cooler replicas before replicas move, and a revert takes their rows away") {
  LoadedFleet loaded(4, {std::string(feature::kReadShares)});
  loaded.heat();
  loaded.configure("on");
  REQUIRE(loaded.run_until([&] { return !loaded.fleet.state().read_shares().empty(); }, seconds(15)));
  REQUIRE(loaded.run_until([&] { return loaded.status().imbalance < 1100; }, seconds(60)));
  const auto steps = loaded.steps();
  REQUIRE_FALSE(steps.empty());
  REQUIRE_FALSE(steps[0].moves.empty());
  CHECK(steps[0].moves[0].read_permille > 0);
  CHECK(steps[0].moves[0].source == 0);
  for (const rpc::BalanceMove& move : steps[0].moves) CHECK((move.read_permille == 0) == (move.bytes > 0));
  // The read shares of a bucket add up to 1000 permille.
  std::map<std::uint64_t, unsigned> sums;
  const ClusterState state = loaded.fleet.state();
  for (const ReadShare& row : state.read_shares()) sums[row.bucket] += row.permille;
  for (const auto& [bucket, sum] : sums) CHECK(sum == 1000);
  CHECK(loaded.status().rows == state.exceptions().size() + sums.size());

  REQUIRE(loaded.fleet.caller.ask(kController, set({"balancer.mode=advise"})).status);
  rpc::Balance revert;
  revert.action = rpc::BalanceAction::Revert;
  revert.step = 1;
  revert.dry_run = true;
  const rpc::BalancePlan shown = loaded.fleet.caller.ask(kController, revert).plan;
  CHECK(std::any_of(shown.moves.begin(), shown.moves.end(), [](const auto& move) { return move.read_permille > 0; }));
  for (const rpc::BalanceMove& move : shown.moves) CHECK(move.reason == "as before step 1");
  CHECK(shown.imbalance_after > shown.imbalance_before);
  revert.dry_run = false;
  REQUIRE(loaded.fleet.caller.ask(kController, revert).status);
  REQUIRE(loaded.run_until([&] { return loaded.fleet.state().read_shares().empty(); }, seconds(5)));
  CHECK(loaded.steps().back().imbalance_after == shown.imbalance_after);
}

TEST_CASE("balancer: advice moves nothing, and is carried out on the state that it was made on alone") {
  LoadedFleet loaded;
  loaded.heat();
  loaded.configure("advise");
  loaded.fleet.world.scheduler.run_for(seconds(8));
  CHECK(loaded.fleet.state().exceptions().empty());
  CHECK(loaded.status().doing.find("advises") != std::string::npos);

  const rpc::BalanceReply plan = loaded.ask(rpc::BalanceAction::Plan);
  REQUIRE(plan.status);
  REQUIRE(plan.refusals.empty());
  REQUIRE_FALSE(plan.plan.moves.empty());
  CHECK(plan.plan.imbalance_after < plan.plan.imbalance_before);
  CHECK(plan.plan.bytes > 0);

  rpc::Balance apply;
  apply.action = rpc::BalanceAction::Apply;
  apply.state_version = plan.plan.state_version - 1;
  apply.moves = plan.plan.moves;
  rpc::BalanceReply reply = loaded.fleet.caller.ask(kController, apply);
  CHECK(reply.status.code() == StatusCode::TestAndSetFailed);
  CHECK(reply.status.message().find(std::to_string(plan.plan.state_version)) != std::string::npos);
  CHECK(reply.status.message().find(std::to_string(plan.plan.state_version - 1)) != std::string::npos);

  apply.state_version = plan.plan.state_version;
  apply.dry_run = true;
  CHECK(loaded.fleet.caller.ask(kController, apply).status);
  CHECK(loaded.steps().empty());
  apply.dry_run = false;
  REQUIRE(loaded.fleet.caller.ask(kController, apply).status);
  // The table is stored, and the next state has all of its rows; a second plan for the same state is too late.
  reply = loaded.fleet.caller.ask(kController, apply);
  CHECK(reply.status.code() == StatusCode::TestAndSetFailed);
  REQUIRE(loaded.run_until([&] { return !loaded.fleet.state().exceptions().empty(); }, seconds(5)));
  CHECK(loaded.fleet.state().version() == plan.plan.state_version + 1);
  CHECK(loaded.fleet.state().exceptions().size() == plan.plan.moves.size());
  REQUIRE(loaded.steps().size() == 1);

  // A restarted controller knows the step, moves nothing by itself, and reverts the step exactly when it is told to.
  REQUIRE(loaded.fleet.start_controller());
  loaded.fleet.world.scheduler.run_for(seconds(8));
  REQUIRE(loaded.steps().size() == 1);
  rpc::Balance revert;
  revert.action = rpc::BalanceAction::Revert;
  revert.step = 1;
  REQUIRE(loaded.fleet.caller.ask(kController, revert).status);
  REQUIRE(loaded.run_until([&] { return loaded.fleet.state().exceptions().empty(); }, seconds(5)));
  CHECK(loaded.steps().back().reverts == 1);
  revert.step = 77;
  CHECK(loaded.fleet.caller.ask(kController, revert).status.code() == StatusCode::NotFound);
}

TEST_CASE("balancer: placement by bytes or at random moves what an operator asks for, and nothing by itself") {
  LoadedFleet loaded;
  loaded.heat();
  loaded.configure("advise");
  REQUIRE(loaded.fleet.caller.ask(kController, set({"balancer.bytes_part=1"})).status);
  loaded.fleet.world.scheduler.run_for(seconds(8));
  for (const std::string name : {"bin-packing", "random"}) {
    CAPTURE(name);
    rpc::Balance request;
    request.action = rpc::BalanceAction::Plan;
    request.algorithm = name;
    const rpc::BalanceReply reply = loaded.fleet.caller.ask(kController, request);
    REQUIRE(reply.status);
    CHECK(reply.plan.algorithm == name);
    REQUIRE_FALSE(reply.plan.moves.empty());
    CHECK(reply.plan.moves[0].reason == name + ": the rule of the algorithm");
  }
  rpc::Balance request;
  request.action = rpc::BalanceAction::Plan;
  request.algorithm = "topic-spread";
  const rpc::BalanceReply none = loaded.fleet.caller.ask(kController, request);
  CHECK(none.plan.moves.empty());
  CHECK(none.plan.notes.at(0).starts_with("topic-spread moves nothing for these loads"));
  CHECK(loaded.steps().empty());
}

TEST_CASE("balancer: a sample places buckets before there are documents, and its step is not taken back") {
  LoadedFleet loaded;
  loaded.rate.assign(32, 0);
  loaded.configure("on");
  loaded.fleet.world.scheduler.run_for(seconds(4));
  const auto holders = loaded.fleet.node("storage.0").snapshots.get();
  rpc::Balance request;
  request.action = rpc::BalanceAction::Plan;
  std::vector<std::uint64_t> bytes(32);
  for (std::uint64_t bucket = 0; bucket < 32; ++bucket) {
    bytes[bucket] = holders->ideal_nodes(BucketId(5, bucket)).contains(0) ? 400 : 100;
    // Two parts of one bucket by 16 bits. The second ones are alike, so that only both together are uneven.
    request.sample.push_back({.bucket = bucket, .bytes = bytes[bucket] - 100});
    request.sample.push_back({.bucket = bucket + (1U << 15), .bytes = 100});
  }
  const rpc::BalanceReply planned = loaded.fleet.caller.ask(kController, request);
  REQUIRE(planned.status);
  REQUIRE(planned.refusals.empty());
  CHECK(planned.plan.is_initial);
  CHECK(planned.plan.imbalance_before > 1300);
  CHECK(planned.plan.imbalance_after < 1100);
  CHECK(planned.plan.moves.at(0).reason.find("would be fuller than storage.") != std::string::npos);

  rpc::Balance apply;
  apply.action = rpc::BalanceAction::Apply;
  apply.state_version = planned.plan.state_version;
  apply.is_initial = planned.plan.is_initial;
  // The nodes of this test store something already, so one move is all that a step may have.
  apply.moves = {planned.plan.moves.at(0)};
  REQUIRE(loaded.fleet.caller.ask(kController, apply).refusals.empty());
  REQUIRE(loaded.run_until([&] { return !loaded.fleet.state().exceptions().empty(); }, seconds(5)));
  CHECK(loaded.steps().back().kind == "initial");
  // Loads that are uneven from then on are no reason to take it back.
  loaded.rate.assign(32, 10);
  loaded.rate[apply.moves[0].bucket] = 2000;
  loaded.fleet.world.scheduler.run_for(seconds(10));
  for (const rpc::BalanceStep& step : loaded.steps()) CHECK(step.kind != "revert");
}

TEST_CASE("balancer: a plan from a sample waits for a round with the nodes that are up") {
  LoadedFleet loaded;
  loaded.configure("advise");
  for (unsigned i = 0; i < 4; ++i) loaded.fleet.stop_node(fmt::format("storage.{}", i));
  loaded.fleet.world.scheduler.run_for(seconds(6));
  for (unsigned i = 0; i < 4; ++i) loaded.start(i);
  rpc::Balance request;
  request.action = rpc::BalanceAction::Plan;
  request.sample = {{.bucket = 1, .bytes = 100}};
  // In some of these moments the nodes are up, and the last round has seen none of them.
  std::size_t refused = 0;
  rpc::BalanceReply reply;
  for (int i = 0; i < 400 && !reply.plan.is_initial; ++i) {
    loaded.fleet.world.scheduler.run_for(milliseconds(25));
    reply = loaded.fleet.caller.ask(kController, request);
    refused += reply.refusals.empty() && reply.status ? 0 : 1;
  }
  CHECK(refused > 0);
  CHECK(reply.plan.is_initial);
}

TEST_CASE("balancer: of two plans for one state that arrive together one is carried out") {
  LoadedFleet loaded;
  loaded.heat();
  loaded.configure("advise");
  loaded.fleet.world.scheduler.run_for(seconds(8));
  const rpc::BalanceReply plan = loaded.ask(rpc::BalanceAction::Plan);
  REQUIRE(plan.plan.moves.size() >= 2);
  std::vector<rpc::BalanceReply> replies;
  for (std::size_t i = 0; i < 2; ++i) {
    rpc::Balance apply;
    apply.action = rpc::BalanceAction::Apply;
    apply.state_version = plan.plan.state_version;
    apply.moves = {plan.plan.moves[i]};
    rpc::Request request = apply;
    rpc::Responder respond = [&replies](rpc::Reply reply) {
      replies.push_back(std::get<rpc::BalanceReply>(std::move(reply)));
    };
    REQUIRE(loaded.fleet.controller().handle(request, respond));
  }
  REQUIRE(loaded.run_until([&] { return replies.size() == 2; }, seconds(5)));
  CHECK(replies[0].status);
  CHECK(replies[1].status.code() == StatusCode::TestAndSetFailed);
  CHECK(replies[1].status.message().find("another change on its way") != std::string::npos);
  loaded.fleet.world.scheduler.run_for(seconds(2));
  CHECK(loaded.steps().size() == 1);
}

TEST_CASE("balancer: nothing moves without loads of all nodes, with few operations, while paused, or in mode off") {
  LoadedFleet loaded;
  loaded.heat();
  loaded.configure("on");
  loaded.fleet.node("storage.2").loads = nullptr;
  loaded.fleet.world.scheduler.run_for(seconds(6));
  CHECK(loaded.status().waits_for.size() == 1);
  CHECK(loaded.status().waits_for[0].find("storage.2") != std::string::npos);
  loaded.start(2);
  REQUIRE(loaded.fleet.caller.ask(kController, set({"balancer.operations_min=1000000"})).status);
  loaded.fleet.world.scheduler.run_for(seconds(8));
  const rpc::BalanceReply waiting = loaded.status();
  CHECK(waiting.waits_for.at(0).find("operations_min") != std::string::npos);
  for (const rpc::BalanceSlice& slice : waiting.slices) CHECK(slice.why_not == "the balancer waits");
  REQUIRE(loaded.fleet.caller.ask(kController, set({"balancer.operations_min=10", "maintenance.paused=true"})).status);
  loaded.fleet.world.scheduler.run_for(seconds(5));
  CHECK(loaded.status().waits_for.at(0).find("paused") != std::string::npos);
  REQUIRE(loaded.fleet.caller.ask(kController, set({"maintenance.paused=false", "balancer.mode=off"})).status);
  loaded.fleet.world.scheduler.run_for(seconds(5));
  CHECK(loaded.status().nodes.at(0).counted == 0);
  CHECK(loaded.ask(rpc::BalanceAction::Plan).status.code() == StatusCode::InvalidArgument);
  CHECK(loaded.steps().empty());
  CHECK(loaded.fleet.state().exceptions().empty());
}

TEST_CASE("balancer: a step that makes things worse is taken back") {
  LoadedFleet loaded;
  loaded.heat();
  loaded.configure("on");
  REQUIRE(loaded.run_until([&] { return loaded.steps().size() == 1; }, seconds(20)));
  // The moved buckets become the hottest of all, so the node that received them is worse off than storage.0 was.
  const rpc::BalanceStep first = loaded.steps()[0];
  for (const rpc::BalanceMove& move : first.moves) loaded.rate[move.bucket] = 900;
  REQUIRE(loaded.run_until([&] { return loaded.steps().back().kind == "revert"; }, seconds(30)));
  const auto steps = loaded.steps();
  const rpc::BalanceStep& last = steps.back();
  CHECK(last.reverts == steps[steps.size() - 2].step);
  CHECK(last.why.find("above that before") != std::string::npos);
  CHECK(last.added == steps[steps.size() - 2].removed);
  CHECK(last.removed == steps[steps.size() - 2].added);
}

TEST_CASE("balancer: a bucket that moved while loads were not collected rests like any other") {
  LoadedFleet loaded;
  loaded.heat();
  loaded.configure("on");
  REQUIRE(loaded.run_until([&] { return loaded.steps().size() == 1; }, seconds(20)));
  REQUIRE(loaded.fleet.caller.ask(kController, set({"balancer.mode=off"})).status);
  loaded.fleet.world.scheduler.run_for(seconds(3));
  rpc::Balance revert;
  revert.action = rpc::BalanceAction::Revert;
  revert.step = 1;
  REQUIRE(loaded.fleet.caller.ask(kController, revert).status);
  REQUIRE(loaded.run_until([&] { return loaded.fleet.state().exceptions().empty(); }, seconds(5)));
  REQUIRE(loaded.fleet.caller.ask(kController, set({"balancer.mode=advise"})).status);
  loaded.fleet.world.scheduler.run_for(seconds(4));
  const rpc::BalanceStep last = loaded.steps().back();
  REQUIRE_FALSE(last.moves.empty());
  const std::uint64_t bucket = last.moves[0].bucket;
  for (const rpc::BalanceSlice& slice : loaded.ask(rpc::BalanceAction::Slices).slices) {
    if (slice.bucket == bucket) CHECK(slice.why_not.find("rests") != std::string::npos);
  }
}

TEST_CASE("balancer: its settings are chosen by name") {
  LoadedFleet loaded;
  const auto ask = [&](const std::string& value) { return loaded.fleet.caller.ask(kController, set({value})); };
  REQUIRE(ask("balancer.algorithm=weighted-move").status);
  CHECK(loaded.status().algorithm == "weighted-move");
  const rpc::ChangeConfigReply wrong = ask("balancer.algorithm=best");
  CHECK(wrong.status.code() == StatusCode::InvalidArgument);
  CHECK(wrong.status.message().find("descent|weighted-move") != std::string::npos);
  const rpc::GetConfigReply config = loaded.fleet.caller.ask(kController, rpc::GetConfig{});
  for (const rpc::Setting& setting : config.settings) {
    if (setting.name != "balancer.mode") continue;
    CHECK(setting.type == "off|advise|on");
    CHECK(setting.default_value == "advise");
  }
}

}  // namespace fjord::fleetcontroller
