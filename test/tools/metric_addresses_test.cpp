#include "tune/metric_addresses.h"

#include <catch2/catch.hpp>

namespace fjord::cli {

TEST_CASE("tune metrics: addresses are those of the option, or of the lines http of a file") {
  CHECK(metric_addresses("a:1,b:2,", "").value() == std::vector<std::string>{"a:1", "b:2"});
  CHECK(metric_addresses("", "").value().empty());
  CHECK_FALSE(metric_addresses("", "no-such-file.yaml"));
}

}  // namespace fjord::cli
