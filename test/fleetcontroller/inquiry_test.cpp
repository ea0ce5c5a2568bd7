#include "fleet_world.h"

namespace fjord::fleetcontroller {
namespace {

rpc::ChangeNodes add(const std::string& address) {
  rpc::ChangeNodes request = change(rpc::NodeAction::Add, "storage");
  request.address = address;
  return request;
}

std::string only_refusal(const rpc::ChangeNodesReply& reply) {
  if (reply.status && reply.refusals.size() == 1) return reply.refusals[0];
  return reply.status.to_string() + ", " + std::to_string(reply.refusals.size()) + " refusals";
}

}  // namespace

TEST_CASE("fleet controller: a node is added when its process answers under the name that it will have") {
  Fleet fleet;
  fleet.start_all();
  CHECK_THAT(only_refusal(fleet.caller.ask(kController, add("storage.3:1"))),
             Catch::StartsWith("no answer from storage.3:1") &&
                 Catch::EndsWith("start the process with --node storage.3 first"));
  fleet.start_node("storage.3");
  fleet.node("storage.3").says_it_is = "storage.2";
  CHECK(only_refusal(fleet.caller.ask(kController, add("storage.3:1"))) ==
        "the process at storage.3:1 was started as storage.2, and the cluster would call it storage.3: start it with "
        "--node storage.3");
  CHECK(fleet.caller.ask(kController, rpc::GetStatus{}).nodes.size() == 4);

  // A forced request adds storage.3, which stays down as long as its process says that it is another node.
  rpc::ChangeNodes forced = add("storage.3:1");
  forced.force = true;
  CHECK(fleet.caller.ask(kController, forced).nodes == std::vector<std::string>{"storage.3"});
  fleet.world.scheduler.run_for(seconds(3));
  CHECK_FALSE(fleet.state().is_up(NodeId::storage(3)));
  fleet.node("storage.3").says_it_is = "storage.3";
  REQUIRE(fleet.world.scheduler.run_until([&] { return fleet.state().is_up(NodeId::storage(3)); }, seconds(5)));
}

TEST_CASE("fleet controller: the new process of a node that is replaced has to answer, and not to be of a cluster") {
  Fleet fleet;
  fleet.start_all();
  fleet.stop_node("storage.2");
  REQUIRE(fleet.world.scheduler.run_until([&] { return !fleet.state().is_up(NodeId::storage(2)); }, seconds(5)));
  fleet.world.scheduler.run_for(seconds(2));
  rpc::ChangeNodes request = change(rpc::NodeAction::Replace, "storage.2");
  request.address = "storage.9:1";
  CHECK_THAT(only_refusal(fleet.caller.ask(kController, request)), Catch::Contains("no answer from storage.9:1"));
  fleet.start_node("storage.9");
  rpc::ClusterInfo other;
  other.state_version = 1000;
  other.state = "version:1000 bits:4 distributor:1 storage:3";
  other.distribution = "redundancy:2 (root 0 1 2)";
  REQUIRE(fleet.node("storage.9").snapshots.update(other));
  CHECK_THAT(only_refusal(fleet.caller.ask(kController, request)), Catch::Contains("it belongs to another one"));
  fleet.start_node("storage.9");
  fleet.node("storage.9").says_it_is = "storage.2";
  CHECK(fleet.caller.ask(kController, request).refusals.empty());
}

TEST_CASE("fleet controller: a storage node is not replaced while buckets cannot be served, which it alone may have") {
  Fleet fleet;
  fleet.start_all();
  fleet.start_node("storage.9");
  fleet.stop_node("storage.2");
  fleet.node("distributor.0").unavailable = 5;
  REQUIRE(fleet.world.scheduler.run_until([&] { return !fleet.state().is_up(NodeId::storage(2)); }, seconds(5)));
  fleet.world.scheduler.run_for(seconds(2));
  rpc::ChangeNodes request = change(rpc::NodeAction::Replace, "storage.2");
  request.address = "storage.9:1";
  CHECK(only_refusal(fleet.caller.ask(kController, request)) ==
        "distributor.0 has 5 buckets that cannot be served, which may be there only");
  fleet.node("distributor.0").unavailable = 0;
  fleet.world.scheduler.run_for(seconds(1));
  CHECK(fleet.caller.ask(kController, request).refusals.empty());
}

TEST_CASE("fleet controller: distributors are asked what they could serve without a node") {
  Fleet fleet;
  fleet.start_all();
  fleet.world.scheduler.run_for(seconds(1));
  AnsweringNode& distributor = fleet.node("distributor.0");
  distributor.without = rpc::CheckWithoutReply{};
  distributor.without->buckets = 16;
  const rpc::ChangeNodes stop = change(rpc::NodeAction::Stop, "storage.0");
  CHECK(fleet.caller.ask(kController, stop).refusals.empty());
  CHECK(distributor.asked_without == std::vector<std::uint16_t>{0});

  distributor.without->unavailable = 5;
  distributor.without->reasons = {"b: storage.1 does not report it"};
  CHECK(only_refusal(fleet.caller.ask(kController, stop)) ==
        "distributor.0: 5 of 16 buckets could not be served without storage.0: b: storage.1 does not report it");
  CHECK(fleet.caller.ask(kController, change(rpc::NodeAction::Maintenance, "storage.0")).refusals.size() == 1);
  CHECK(fleet.state().is_up(NodeId::storage(0)));
  distributor.without->status = Status(StatusCode::NotReady, "busy");
  CHECK_THAT(only_refusal(fleet.caller.ask(kController, stop)), Catch::Contains("does not say what it could serve"));
  // A request that takes no node away asks no distributor.
  distributor.asked_without.clear();
  CHECK(fleet.caller.ask(kController, change(rpc::NodeAction::Up, "storage.0")).status);
  CHECK(distributor.asked_without.empty());
  // Distributors of earlier versions do not know CheckWithout.
  distributor.without.reset();
  CHECK(fleet.caller.ask(kController, stop).refusals.empty());
}

}  // namespace fjord::fleetcontroller
