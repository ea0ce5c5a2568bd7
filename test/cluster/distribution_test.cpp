#include "fjord/cluster/distribution.h"

#include <catch2/catch.hpp>

namespace fjord {

TEST_CASE("distribution: the text form reads back as printed", "[cluster]") {
  for (const char* text :
       {"redundancy:2 (root 0 1 2 3)", "redundancy:1 (root)", "redundancy:16 (_r.x-1*0.25 7)",
        "redundancy:3 (root (a*2 0 1*0.5) (b 5 4) (c))", "redundancy:2 (root (a (a1 0) (a2 1 2)) (b*1.5 (b1 3)))"}) {
    INFO(text);
    const Result<DistributionConfig> config = DistributionConfig::parse(text);
    INFO(config.status());
    REQUIRE(config);
    CHECK(config->to_string() == text);
    CHECK(DistributionConfig::parse(config->to_string()).value() == *config);
  }
}

TEST_CASE("distribution: ranges, capacities and white space may be written in other ways", "[cluster]") {
  const auto config = DistributionConfig::parse("  redundancy:2 ( root  ( a 0-2*2 ) (b*1 3 )) ");
  REQUIRE_FALSE(config);  // There must be no space between a bracket and the name behind it.
  const auto ok = DistributionConfig::parse("  redundancy:2 (root  (a 0-2*2 ) (b*1 3 )) ");
  REQUIRE(ok);
  CHECK(ok->to_string() == "redundancy:2 (root (a 0*2 1*2 2*2) (b 3))");
  CHECK(ok->node_count() == 4);
  CHECK(ok->contains_node(3));
  CHECK_FALSE(ok->contains_node(4));
}

TEST_CASE("distribution: what breaks a rule is refused with the place or the name", "[cluster]") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "column 1"},
      {"redundancy:x (root)", "column 12"},
      {"redundancy:0 (root 0)", "redundancy 0"},
      {"redundancy:17 (root 0)", "redundancy 17"},
      {"redundancy:2 root", "'('"},
      {"redundancy:2 (root 0", "column 21"},
      {"redundancy:2 (root 0) 1", "column 23"},
      {"redundancy:2 (9root 0)", "name"},
      {"redundancy:2 (root 0 0)", "node 0 occurs twice"},
      {"redundancy:2 (root (a 1) (b 1))", "node 1 occurs twice"},
      {"redundancy:2 (root (a 1) (a 2))", "group 'a' occurs twice"},
      {"redundancy:2 (root 0 (a 1))", "both nodes and groups"},
      {"redundancy:2 (root 3-1)", "range"},
      {"redundancy:2 (root 0*-1)", "capacity"},
      {"redundancy:2 (root 0*1e9)", "capacity of node 0"},
      {"redundancy:2 (root 65535)", "65535"},
      {"redundancy:1 (a (b (c (d (e (f (g (h (i 0)))))))))", "levels"},
  };
  for (const auto& [text, part] : cases) {
    INFO(text);
    const Result<DistributionConfig> config = DistributionConfig::parse(text);
    REQUIRE_FALSE(config);
    CHECK(config.error().code() == StatusCode::InvalidArgument);
    CHECK_THAT(config.error().message(), Catch::Contains(part));
  }
}

TEST_CASE("distribution: flat configurations and changes of redundancy", "[cluster]") {
  const DistributionConfig config = DistributionConfig::flat(3, 2);
  CHECK(config.to_string() == "redundancy:2 (root 0 1 2)");
  CHECK(config.with_redundancy(3).to_string() == "redundancy:3 (root 0 1 2)");
  CHECK(config.with_redundancy(3) != config);
  CHECK(DistributionConfig().to_string() == "redundancy:1 (root)");
}

TEST_CASE("distribution: the arrays list parents before children and nodes in groups", "[cluster]") {
  const auto config = DistributionConfig::parse("redundancy:2 (root (a (a1 4) (a2 1 2)) (b 0))").value();
  const auto groups = config.flat_groups();
  REQUIRE(groups.size() == 5);
  CHECK(groups[0].group_end == 5);
  CHECK(groups[1].group_end == 4);
  CHECK(groups[1].first_node == 0);
  CHECK(groups[1].node_end == 3);
  CHECK(groups[4].is_leaf);
  CHECK(config.flat_nodes()[groups[4].first_node].index == 0);
}

TEST_CASE("distribution: the algorithm and its rule are part of the text", "[cluster]") {
  for (const char* text :
       {"redundancy:2 algorithm:tree (root 0 1)", "redundancy:2 algorithm:straw2,list,uniform (root (a 0) (b 1))",
        "redundancy:2 algorithm:consistent (root 0)", "redundancy:2 algorithm:consistent*50 (root 0)",
        "redundancy:3 rule:take(a);select(2,node);emit;take(root);select(1,2);select(0,node);emit (root (a 0) (b (c "
        "1)))",
        "redundancy:3 algorithm:list rule:take(root);select(1,node);emit (root 0)"}) {
    INFO(text);
    const Result<DistributionConfig> config = DistributionConfig::parse(text);
    INFO(config.status());
    REQUIRE(config);
    CHECK(config->to_string() == text);
    CHECK(DistributionConfig::parse(config->to_string()).value() == *config);
    CHECK(*config != DistributionConfig::make(config->redundancy(), config->root()).value());
    CHECK(config->with_redundancy(5).placement() == config->placement());
  }
  CHECK(DistributionConfig::parse("redundancy:2 algorithm:straw2 (root 0)")->to_string() == "redundancy:2 (root 0)");
  CHECK(DistributionConfig::parse("redundancy:2 algorithm:consistent*200 (root 0)")->to_string() ==
        "redundancy:2 algorithm:consistent (root 0)");
  for (const PlacementKind kind : kPlacementKinds) CHECK(placement_kind_of(to_string(kind)).value() == kind);

  const std::vector<std::pair<std::string, std::string>> cases = {
      {"algorithm:magic (root 0)", "no algorithm 'magic'"},
      {"algorithm: (root 0)", "no algorithm ''"},
      {"algorithm:modulo,list (root 0)", "goes with no other"},
      {"algorithm:list,modulo (root 0)", "goes with no other"},
      {"algorithm:tree*5 (root 0)", "consistent*N"},
      {"algorithm:consistent*0 (root 0)", "tokens"},
      {"algorithm:consistent*x (root 0)", "consistent*N"},
      {"colour:red (root 0)", "column 14: expected '('"},
      {"rule:emit (root 0)", "only storage nodes"},
      {"rule:take(root) (root 0)", "does not end"},
      {"rule:take(root);emit (root 0)", "only storage nodes"},
      {"rule:take(rack);select(1,node);emit (root 0)", "no group 'rack'"},
      {"rule:select(1,node);emit (root 0)", "before it takes"},
      {"rule:take(root);take(root);emit (root 0)", "before it has emitted"},
      {"rule:take(root);select(1,node);select(1,node);emit (root 0)", "below storage nodes"},
      {"rule:take(root);select(1,2);select(1,1);emit (root (a 0))", "level 1 is not below level 2"},
      {"rule:take(root);select(17,node);emit (root 0)", "more than 16"},
      {"rule:take(root);select(1);emit (root 0)", "none of take"},
      {"algorithm:modulo rule:take(root);select(1,node);emit (root 0)", "knows no rules"},
  };
  for (const auto& [text, part] : cases) {
    INFO(text);
    const Result<DistributionConfig> config = DistributionConfig::parse("redundancy:2 " + text);
    REQUIRE_FALSE(config);
    CHECK(config.error().code() == StatusCode::InvalidArgument);
    CHECK_THAT(config.error().message(), Catch::Contains(part));
  }
}

}  // namespace fjord
