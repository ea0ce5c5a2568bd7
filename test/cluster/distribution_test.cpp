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
  REQUIRE_FALSE(config);  // a name follows its bracket directly
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

}  // namespace fjord
