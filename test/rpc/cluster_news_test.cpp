#include "fjord/rpc/cluster_news.h"

#include <catch2/catch.hpp>
#include <set>

#include "fjord/rpc/gated_transport.h"
#include "fjord/sim/sim_clock.h"
#include "fjord/sim/sim_scheduler.h"
#include "support/scripted_transport.h"

namespace fjord::rpc {
namespace {

ClusterInfo info_of(std::uint64_t version, const std::string& nodes) {
  ClusterInfo info;
  info.state_version = version;
  info.state = "version:" + std::to_string(version) + " " + nodes;
  info.distribution = DistributionConfig::flat(1, 1).to_string();
  info.distributor_addresses = {"d0:1", "d1:1", "d2:1"};
  info.storage_addresses = {"s0:1"};
  return info;
}

std::set<Address> drawn(const ClusterSnapshot* snapshot) {
  Random random(5);
  std::set<Address> found;
  for (int i = 0; i < 100; ++i) found.insert(any_distributor(snapshot, {"boot:1", "boot:2"}, random));
  return found;
}

}  // namespace

TEST_CASE("cluster news: the question names what is known, and only newer information changes the snapshot", "[rpc]") {
  SnapshotHolder holder;
  CHECK(question_for_news(holder).known_state_version == 0);
  GetClusterInfoReply reply;
  CHECK_FALSE(*take_news(holder, reply));  // The answer had no news.
  reply.info = info_of(4, "distributor:3 storage:1");
  CHECK(*take_news(holder, reply));
  CHECK_FALSE(*take_news(holder, reply));
  CHECK(question_for_news(holder).known_state_version == 4);
}

TEST_CASE("cluster news: a failed call and a refusal are errors", "[rpc]") {
  SnapshotHolder holder;
  CHECK(take_news(holder, Status(StatusCode::Timeout, "no answer")).error().code() == StatusCode::Timeout);
  GetClusterInfoReply reply;
  reply.status = Status(StatusCode::NotReady, "no state yet");
  CHECK(take_news(holder, reply).error().code() == StatusCode::NotReady);
}

TEST_CASE("cluster news: a distributor that is up is asked, else any, and without a state one of the user's", "[rpc]") {
  CHECK(drawn(nullptr) == std::set<Address>{"boot:1", "boot:2"});
  SnapshotHolder holder;
  REQUIRE(holder.update(info_of(4, "distributor:3 .1.s:d storage:1")));
  CHECK(drawn(holder.get().get()) == std::set<Address>{"d0:1", "d2:1"});
  CHECK(distributors_up(*holder.get()) == std::vector<std::uint16_t>{0, 2});
  REQUIRE(holder.update(info_of(5, "distributor:3 .0.s:d .1.s:d .2.s:d storage:1")));
  CHECK(drawn(holder.get().get()) == std::set<Address>{"d0:1", "d1:1", "d2:1"});
  Random random(1);
  CHECK(any_distributor(nullptr, {}, random).empty());
}

TEST_CASE("gated transport: after its end the transport is not called, and calls before are answered", "[rpc]") {
  sim::SimScheduler scheduler{1};
  const auto process = scheduler.make_node_scheduler("client");
  const auto executor = process->make_executor("client");
  test::ScriptedTransport inner;
  inner.set_script([](const Address&, Request&) { return Result<Reply>(GetClusterInfoReply{}); });
  GatedTransport gate(inner);
  int answers = 0;
  const auto ask = [&] {
    gate.call("d0:1", GetClusterInfo{}, seconds(1), *executor, [&](Result<Reply>) { ++answers; });
  };
  ask();
  gate.close();
  ask();
  scheduler.run_for(seconds(2));
  CHECK(inner.sent().size() == 1);
  CHECK(answers == 1);
}

}  // namespace fjord::rpc
