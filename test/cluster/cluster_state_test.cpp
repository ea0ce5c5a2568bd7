#include "fjord/cluster/cluster_state.h"

#include <catch2/catch.hpp>

namespace fjord {

TEST_CASE("cluster state: a default state is empty and equals the empty text", "[cluster]") {
  const ClusterState state;
  CHECK(state.to_string().empty());
  CHECK(ClusterState::parse("").value() == state);
  CHECK(state.node(NodeId::storage(0)).state == NodeState::Down);
  CHECK(state.bits() == 16);
}

TEST_CASE("cluster state: the design's example reads back and prints the same", "[cluster]") {
  const std::string text = "version:7 bits:8 distributor:3 storage:6 .2.s:d .4.s:r";
  const ClusterState state = ClusterState::parse(text).value();
  CHECK(state.version() == 7);
  CHECK(state.bits() == 8);
  CHECK(state.is_up(NodeId::distributor(2)));
  CHECK_FALSE(state.is_up(NodeId::distributor(3)));
  CHECK(state.node(NodeId::storage(2)).state == NodeState::Down);
  CHECK(state.node(NodeId::storage(4)).state == NodeState::Retired);
  CHECK(state.to_string() == text);
}

TEST_CASE("cluster state: versions have 64 bits", "[cluster]") {
  const std::string text = "version:18446744073709551615 storage:1";
  CHECK(ClusterState::parse(text).value().to_string() == text);
  CHECK_FALSE(ClusterState::parse("version:18446744073709551616"));
}

TEST_CASE("cluster state: the version in which a node came up is kept and counts as news", "[cluster]") {
  const std::string text = "version:9 storage:3 .1.t:1700000000 .1.v:8";
  const ClusterState state = ClusterState::parse(text).value();
  CHECK(state.node(NodeId::storage(1)).up_since_version == 8);
  CHECK(state.to_string() == text);
  ClusterState later = state;
  NodeStateInfo node = state.node(NodeId::storage(1));
  node.up_since_version = 9;
  later.set_node(NodeId::storage(1), node);
  CHECK_FALSE(state.is_similar(later));
  CHECK(state.diff(later) == "storage: [1: up since version: 8 => 9]");
}

TEST_CASE("cluster state: the floor of timestamps travels with the state and is no news by itself", "[cluster]") {
  const ClusterState state = *ClusterState::parse("version:7 bits:8 floor:1763751600000000 storage:2");
  CHECK(state.time_floor_us() == 1'763'751'600'000'000);
  CHECK(*ClusterState::parse(state.to_string()) == state);
  ClusterState other = state;
  other.set_time_floor_us(0);
  CHECK(other.to_string() == "version:7 bits:8 storage:2");
  CHECK(other != state);
  CHECK(other.is_similar(state));
  CHECK(other.diff(state).empty());
  CHECK_FALSE(ClusterState::parse("version:7 floor:-5 storage:2"));
}

TEST_CASE("cluster state: versions that were never in force lie between a state and the one that it follows",
          "[cluster]") {
  ClusterState state = *ClusterState::parse("version:7 storage:2");
  CHECK(state.follows() == 6);
  state.set_follows(4);
  CHECK(state.to_string() == "version:7 skipped:2 storage:2");
  CHECK(*ClusterState::parse(state.to_string()) == state);
  CHECK(state.is_similar(*ClusterState::parse("version:7 storage:2")));
  state.set_version(8);
  CHECK(state.follows() == 7);
  state.set_follows(0);
  CHECK(ClusterState::parse(state.to_string())->follows() == 0);
  CHECK_FALSE(ClusterState::parse("version:7 skipped:7 storage:2"));
  CHECK_FALSE(ClusterState::parse("version:7 skipped:-1 storage:2"));
}

TEST_CASE("cluster state: the number of assured replicas travels with the state and is news", "[cluster]") {
  const ClusterState state = *ClusterState::parse("version:7 bits:8 copies:1 storage:2");
  CHECK(state.replicas_assured() == 1);
  CHECK(*ClusterState::parse(state.to_string()) == state);
  ClusterState other = state;
  other.set_replicas_assured(2);
  CHECK(other.to_string() == "version:7 bits:8 copies:2 storage:2");
  CHECK_FALSE(other.is_similar(state));
  CHECK_FALSE(other.is_similar_ignoring_progress(state));
  CHECK(state.diff(other) == "assured replicas: 1 => 2");
  CHECK_FALSE(ClusterState::parse("version:7 copies:x storage:2"));
}

TEST_CASE("cluster state: features are names in order, and what is no name is dropped") {
  const std::string text = "version:7 bits:8 features:a,forget storage:1";
  const ClusterState state = *ClusterState::parse(text);
  CHECK(state.to_string() == text);
  CHECK(state.announces("forget"));
  CHECK_FALSE(state.announces("b"));
  ClusterState other = state;
  other.set_features({"forget", "b", "forget", "No", "", "a b", "a"});
  CHECK(other.features() == std::vector<std::string>{"a", "b", "forget"});
  CHECK_FALSE(state.is_similar(other));
  CHECK_FALSE(state.is_similar_ignoring_progress(other));
  CHECK(state.diff(other) == "features: a forget => a b forget");
  CHECK(ClusterState::parse("version:7 features:,x!,ok storage:1")->features() == std::vector<std::string>{"ok"});
}

TEST_CASE("cluster state: the capacity of a last node that is down is not lost", "[cluster]") {
  const std::string text = "storage:3 .2.s:d .2.c:2";
  const ClusterState state = ClusterState::parse(text).value();
  CHECK(state.node(NodeId::storage(2)).capacity == 2.0);
  CHECK(state.to_string() == text);
}

TEST_CASE("cluster state: the past of storage nodes travels with the state and is no news by itself", "[cluster]") {
  constexpr std::string_view kText = "version:20 storage:3 .0.v:15 .0.h:3,10-12,13-15 .1.v:1 .2.s:d .2.h:1,12";
  ClusterState state = *ClusterState::parse(kText);
  CHECK(state.to_string() == kText);
  CHECK(state.node(NodeId::storage(0)).past == NodePast{3, {{10, 12}, {13, 15}}});
  CHECK(state.node(NodeId::storage(0)).alive_since() == 3);
  CHECK(state.node(NodeId::storage(1)).alive_since() == 1);
  CHECK(state.node(NodeId::storage(2)).past == NodePast{1, {{12, 0}}});
  ClusterState plain = state;
  NodeStateInfo info = plain.node(NodeId::storage(0));
  info.past.reset();
  plain.set_node(NodeId::storage(0), info);
  CHECK(plain.is_similar(state));
  CHECK(plain.node(NodeId::storage(0)).alive_since() == 15);

  CHECK(ClusterState::parse("distributor:1 .0.h:3")->to_string() == "distributor:1");
  CHECK(ClusterState::parse("storage:1 .0.h:3")->node(NodeId::storage(0)).past == NodePast{3, {}});
  for (const std::string wrong :
       {"", "x", "3,", "3,10-", "3,12-10", "3,10-10", "3,10,12", "3,10-12,11-14", "3,10-12-14"}) {
    INFO(wrong);
    CHECK_FALSE(ClusterState::parse("storage:1 .0.h:" + wrong));
  }
}

TEST_CASE("cluster state: of many absences the last ones are kept, and the process counts as young", "[cluster]") {
  NodePast past = {3, {}};
  for (std::uint64_t from = 10; from < 50; from += 10) past.add({from, from + 5});
  CHECK(past == NodePast{3, {{10, 15}, {20, 25}, {30, 35}, {40, 45}}});
  past.add({50, 0});
  CHECK(past == NodePast{15, {{20, 25}, {30, 35}, {40, 45}, {50, 0}}});
}

TEST_CASE("cluster state: malformed values are refused with the token", "[cluster]") {
  for (const char* text :
       {"version:-1", "version:", "bits:0", "bits:59", "storage:65536", "storage:2 .0.c:-1", "storage:2 .0.c:nan",
        "storage:2 .0.c:inf", "storage:2 .0.i:1.5", "storage:2 .0.t:x", "storage:2 .2.s:d", "storage:2 .0.s:up",
        "storage:2 .0.m:\\q", "storage:2 .0.m:\\x4", "storage:2 .:1", "storage:2 .-1.s:d"}) {
    INFO(text);
    const Result<ClusterState> state = ClusterState::parse(text);
    REQUIRE_FALSE(state);
    CHECK(state.error().code() == StatusCode::InvalidArgument);
    CHECK_FALSE(state.error().message().empty());
  }
}

TEST_CASE("cluster state: descriptions of any bytes survive the verbose text", "[cluster]") {
  std::string description;
  for (int c = 1; c < 256; ++c) description += static_cast<char>(c);
  ClusterState state;
  NodeStateInfo node;
  node.state = NodeState::Maintenance;
  node.description = description;
  state.set_node(NodeId::storage(3), node);
  state.set_description("all: of it\\");
  const std::string text = state.to_string(ClusterState::Print::WithDescriptions);
  CHECK(ClusterState::parse(text).value() == state);
  CHECK(state.to_string() == "storage:4 .0.s:d .1.s:d .2.s:d .3.s:m");
}

TEST_CASE("cluster state: a distributor has no capacity", "[cluster]") {
  ClusterState state;
  NodeStateInfo node;
  node.capacity = 3.0;
  state.set_node(NodeId::distributor(0), node);
  CHECK(state.node(NodeId::distributor(0)).capacity == 1.0);
}

TEST_CASE("cluster state: the description of the cluster may be printed without those of its nodes", "[cluster]") {
  ClusterState state = ClusterState::parse("version:3 cluster:d storage:2 .0.m:disk").value();
  state.set_description("1 of 2 is up");
  const std::string text = state.to_string(ClusterState::Print::WithClusterDescription);
  CHECK(text == "version:3 cluster:d m:1\\x20of\\x202\\x20is\\x20up storage:2");
  CHECK(ClusterState::parse(text).value().description() == "1 of 2 is up");
  CHECK(state.to_string() == "version:3 cluster:d storage:2");
}

TEST_CASE("cluster state: nodes and bits are differences also while the cluster is down", "[cluster]") {
  const auto parse = [](const char* text) { return ClusterState::parse(text).value(); };
  CHECK(parse("version:3 storage:2").is_similar(parse("version:4 storage:2")));
  CHECK(parse("version:3 cluster:d m:a storage:2").is_similar(parse("version:4 cluster:d m:b storage:2")));
  CHECK_FALSE(parse("cluster:d storage:2").is_similar(parse("cluster:d bits:20 storage:2")));
  CHECK_FALSE(parse("cluster:d storage:2").is_similar(parse("cluster:d storage:2 .1.s:d")));
  CHECK_FALSE(parse("cluster:d storage:2").is_similar_ignoring_progress(parse("cluster:d storage:2 .1.s:d")));
  CHECK_FALSE(parse("cluster:d storage:2").is_similar(parse("storage:2")));
  CHECK_FALSE(parse("bits:8 storage:2").is_similar(parse("storage:2")));
  CHECK_FALSE(parse("storage:2 .1.c:2").is_similar(parse("storage:2")));
  CHECK(parse("storage:2 .1.t:2").is_similar(parse("storage:2")));
}

TEST_CASE("node ids: names outside the range are refused", "[cluster]") {
  CHECK(NodeId::parse("storage.65534").value() == NodeId::storage(65534));
  for (const char* text : {"storage.65535", "storage.-1", "storage.", "storage.1x", ".1", "Storage.1"}) {
    INFO(text);
    CHECK_FALSE(NodeId::parse(text));
  }
  CHECK(NodeId::storage(2) < NodeId::storage(3));
}

TEST_CASE("cluster state: read shares travel with the state", "[cluster]") {
  const auto state = ClusterState::parse("version:3 bits:8 read:ff=2*1000,0=4*200+3*800 storage:6").value();
  CHECK(state.to_string() == "version:3 bits:8 read:0=3*800+4*200,ff=2*1000 storage:6");
  CHECK(ClusterState::parse(state.to_string()).value() == state);
  CHECK(state.read_shares().size() == 3);
  REQUIRE(state.read_shares_of(0).size() == 2);
  CHECK(state.read_shares_of(0)[1] == ReadShare{0, 4, 200});
  CHECK(state.read_shares_of(1).empty());
  CHECK(state.read_shares_of(0xff).size() == 1);
  CHECK(ClusterState::parse("read: storage:2").value().to_string() == "storage:2");

  ClusterState other = state;
  CHECK(other.is_similar(state));
  other.set_read_shares({{7, 1, 0}, {3, 1, 1}});
  CHECK(other.to_string() == "version:3 bits:8 read:3=1*1,7=1*0 storage:6");
  CHECK_FALSE(other.is_similar(state));
  CHECK_FALSE(other.is_similar_ignoring_progress(state));
  CHECK(state.diff(other) == "read shares: 0=3*800+4*200,ff=2*1000 => 3=1*1,7=1*0");
  other.set_bits(8);
  CHECK(other.read_shares().size() == 2);
  other.set_bits(9);
  CHECK(other.read_shares().empty());

  for (const char* text :
       {"read:100=1*2 bits:8", "bits:8 read:0=1*2,0=1*3", "read:0=1*2+1*3", "read:g=1*2", "read:1=1*1001", "read:1=1",
        "read:1", "read:1=", "read:=1*2", "read:1=1*", "read:1=70000*1", "read:1=*1"}) {
    INFO(text);
    CHECK_FALSE(ClusterState::parse(text));
  }
}

TEST_CASE("cluster state: exceptions of the placement travel with the state", "[cluster]") {
  const auto state = ClusterState::parse("version:3 bits:8 except:ff=2>1,0=4>5,0=3>1 storage:6").value();
  CHECK(state.to_string() == "version:3 bits:8 except:0=3>1,0=4>5,ff=2>1 storage:6");
  CHECK(ClusterState::parse(state.to_string()).value() == state);
  CHECK(state.exceptions().size() == 3);
  CHECK(state.exceptions_of(0).size() == 2);
  CHECK(state.exceptions_of(1).empty());
  REQUIRE(state.exceptions_of(0xff).size() == 1);
  CHECK(state.exceptions_of(0xff)[0] == PlacementException{0xff, 2, 1});
  CHECK(ClusterState::parse("except: storage:2").value().to_string() == "storage:2");

  ClusterState other = state;
  CHECK(other.is_similar(state));
  other.set_exceptions({{7, 1, 2}, {3, 1, 2}});
  CHECK(other.to_string() == "version:3 bits:8 except:3=1>2,7=1>2 storage:6");
  CHECK_FALSE(other.is_similar(state));
  CHECK_FALSE(other.is_similar_ignoring_progress(state));
  CHECK(state.diff(other) == "exceptions: 0=3>1,0=4>5,ff=2>1 => 3=1>2,7=1>2");
  other.set_bits(8);
  CHECK(other.exceptions().size() == 2);
  other.set_bits(9);
  CHECK(other.exceptions().empty());

  for (const char* text :
       {"except:100=1>2 bits:8", "bits:8 except:0=1>2,0=1>3", "except:g=1>2", "except:1=1>1", "except:1=1", "except:1",
        "except:=1>2", "except:1=>2", "except:1>2=3", "except:1=70000>1"}) {
    INFO(text);
    CHECK_FALSE(ClusterState::parse(text));
  }
}

}  // namespace fjord
