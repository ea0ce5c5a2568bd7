#include "fjord/library/detail/cluster_health.h"

#include <catch2/catch.hpp>

namespace fjord {
namespace {

rpc::NodeStatus node_that_is_up(std::string name) {
  rpc::NodeStatus node;
  node.node = std::move(name);
  node.state = "up";
  node.last.state_version = 4;
  return node;
}

/// Returns a cluster of one distributor and two storage nodes without any trouble.
rpc::GetStatusReply healthy() {
  rpc::GetStatusReply status;
  status.info.state_version = 4;
  status.info.state = "version:4 distributor:1 .0.v:1 storage:2 .0.v:1 .1.v:1";
  status.info.distribution = "redundancy:2 (root 0 1)";
  for (const char* name : {"distributor.0", "storage.0", "storage.1"}) {
    status.nodes.push_back(node_that_is_up(name));
    status.nodes.back().last.buckets = 8;
  }
  return status;
}

void check(const rpc::GetStatusReply& status, int level, const std::string& reason) {
  const ClusterHealth health = health_of(status);
  CHECK(health.level == level);
  CHECK_THAT(health.reasons, Catch::VectorContains(reason));
}

}  // namespace

TEST_CASE("cluster health: a node says that it comes near the largest number of buckets") {
  for (const std::size_t node : {0, 1}) {
    rpc::GetStatusReply status = healthy();
    status.nodes[node].last.buckets = 80'000;
    CHECK(health_of(status).level == 0);
    status.nodes[node].last.buckets = 80'001;
    check(status, 1,
          status.nodes[node].node +
              " has 80001 buckets, and repairs are slow with more than 100000: add nodes, or "
              "lower cluster.distribution_bits");
  }
}

TEST_CASE("cluster health: without any trouble there is no reason") {
  const ClusterHealth health = health_of(healthy());
  CHECK(health.level == 0);
  CHECK(health.reasons.empty());
  CHECK(health.buckets_in_sync == 8);
}

TEST_CASE("cluster health: a node without space, and a cluster without any, are unavailable") {
  rpc::GetStatusReply status = healthy();
  status.nodes[1].last.space_stage = 3;
  status.nodes[1].last.space = "97.0 % used";
  check(status, 2, "storage.0 has no space and refuses puts: 97.0 % used");
  CHECK(health_of(status).nodes_without_space == 1);
  status.nodes[2].last.space_stage = 4;
  check(status, 2, "no storage node has space: every put is refused");
  status.nodes.erase(status.nodes.begin() + 2);
  status.nodes[1].last.space_stage = 2;
  check(status, 1, "storage.0 throttles puts: 97.0 % used");
}

TEST_CASE("cluster health: a full node without buckets refuses no put, so that nothing is unavailable") {
  rpc::GetStatusReply status = healthy();
  status.nodes.push_back(node_that_is_up("storage.2"));
  status.nodes.back().last.space_stage = 4;
  status.nodes.back().last.space = "99.0 % used";
  check(status, 1, "storage.2 has no space, and no bucket that a put could go to: 99.0 % used");
  CHECK(health_of(status).nodes_without_space == 1);
  status.nodes.back().state = "retired";
  check(status, 1, "storage.2 has no space, and no bucket that a put could go to: 99.0 % used");
}

TEST_CASE("cluster health: buckets with too few replicas are not in sync, and their next loss is told") {
  rpc::GetStatusReply status = healthy();
  status.nodes[0].last.buckets_under_replicated = 3;
  check(
      status, 1,
      "3 buckets have too few replicas: `fjord bucket list`; they have only one current replica: if it is lost, their "
      "documents are lost");
  CHECK(health_of(status).buckets_in_sync == 5);
  status.nodes[0].last.buckets_out_of_sync = 3;  // They are being filled.
  CHECK(health_of(status).buckets_in_sync == 5);
  status.info.distribution = "redundancy:3 (root 0 1)";
  check(status, 1,
        "3 buckets have too few replicas: `fjord bucket list`; they have fewer current replicas than "
        "cluster.redundancy=3 asks for");
}

TEST_CASE("cluster health: a cluster that is down says why") {
  rpc::GetStatusReply status = healthy();
  status.info.state = R"(version:4 cluster:d m:1\x20of\x202 distributor:1 .0.v:1 storage:2 .0.v:1 .1.s:d)";
  check(status, 2, "the cluster is down: 1 of 2");
}

TEST_CASE("cluster health: nothing is served, or nothing has a place") {
  rpc::GetStatusReply status = healthy();
  status.nodes[0].last.buckets_unavailable = 3;
  CHECK(health_of(status).level == 2);
  CHECK(health_of(status).reasons == std::vector<std::string>{"3 buckets cannot be served: `fjord bucket list`"});
  status.nodes[1].state = "down";
  check(status, 2, "3 buckets cannot be served: `fjord bucket list`; away: storage.0");
  status.nodes[1].state = "up";
  status.nodes[0].last.buckets_unavailable = 8;
  check(status, 2, "none of the 8 buckets is served");
  status.nodes[0].last.buckets_unplaced = 8;
  check(status, 2, "8 buckets have no storage node that they belong on");
  status.nodes[0].state = "down";
  check(status, 2, "no distributor is up");
}

TEST_CASE("cluster health: buckets that are being collected degrade it and are told apart") {
  rpc::GetStatusReply status = healthy();
  status.nodes[0].last.buckets_collecting = 3;
  status.nodes[0].last.buckets_out_of_sync = 3;
  check(status, 1, "3 buckets are being collected: storage nodes are asked for them since the cluster state changed");
  CHECK(health_of(status).reasons.size() == 1);
  CHECK(health_of(status).buckets_in_sync == 5);
  status.nodes[0].last.buckets_out_of_sync = 4;
  check(status, 1, "1 buckets are out of sync");
}

TEST_CASE("cluster health: a feature that some nodes do not announce is no trouble and is noted") {
  rpc::GetStatusReply status = healthy();
  for (rpc::NodeStatus& node : status.nodes) node.last.features = {"forget"};
  CHECK(health_of(status).notes.empty());
  status.nodes[1].last.features = {"forget", "newer"};
  status.nodes[2].last.features = {};
  const ClusterHealth health = health_of(status);
  CHECK(health.level == 0);
  CHECK(health.notes == std::vector<std::string>{"feature forget is not used until storage.1 announces it, too",
                                                 "feature newer is not used until distributor.0, storage.1 announce "
                                                 "it, too"});
  status.nodes[2].state = "down";
  CHECK(health_of(status).notes.size() == 1);
}

TEST_CASE("cluster health: merges that fail again and again degrade it") {
  rpc::GetStatusReply status = healthy();
  status.nodes[0].last.buckets_failing = 2;
  status.nodes[0].last.failing = "IO_ERROR: no";
  check(status, 1, "distributor.0: the merges of 2 buckets fail again and again, last IO_ERROR: no");
}

TEST_CASE("cluster health: a retired node says how far it is, and an empty one is no trouble") {
  rpc::GetStatusReply status = healthy();
  status.nodes[2].state = "retired";
  check(status, 1, "storage.1 is retired: 8 buckets are still on it");
  status.nodes[2].last.buckets = 0;
  CHECK(health_of(status).level == 0);
  CHECK(health_of(status).notes ==
        std::vector<std::string>{"storage.1 is retired and empty: `fjord node remove storage.1` takes it out"});
  // What it has in the new state is not known yet.
  status.nodes[2].last.state_version = 3;
  check(status, 1, "storage.1 is retired: 0 buckets are still on it");
}

TEST_CASE("cluster health: all nodes retired go on serving, which an operator has to know") {
  rpc::GetStatusReply status = healthy();
  status.nodes[1].state = status.nodes[2].state = "retired";
  check(status, 1,
        "all 2 storage nodes that are there are retired: they go on serving, as there is nowhere to move their buckets "
        "to: `fjord node add` or `fjord node up`");
}

TEST_CASE("cluster health: maintenance says how long, and when it ends") {
  rpc::GetStatusReply status = healthy();
  status.nodes[2].state = "maintenance";
  status.nodes[2].maintenance_us = 300'000'000;
  status.nodes[2].maintenance_left_us = 3'300'000'000;
  check(status, 1, "storage.1 is maintenance for 5 min, counts as down in 55 min");
}

}  // namespace fjord
