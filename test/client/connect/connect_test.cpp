#include "fjord/client/connect.h"

namespace fjord {

TEST_CASE("addresses are read from one text", "[connect]") {
  REQUIRE(parse_addresses("a:1").value() == std::vector<std::string>{"a:1"});
  REQUIRE(parse_addresses(" a:1 , b.example:65535,[::1]:7 ").value() ==
          std::vector<std::string>{"a:1", "b.example:65535", "[::1]:7"});
}

TEST_CASE("a bad address is named with what is wrong", "[connect]") {
  const auto [text, part, reason] = GENERATE(table<std::string, std::string, std::string>({
      {"", "\"\"", "empty"},
      {"a:1,", "\"\"", "empty"},
      {"a:1,b", "\"b\"", "no port"},
      {":5", "\":5\"", "no host"},
      {"a:0", "\"a:0\"", "not a port"},
      {"a:65536", "\"a:65536\"", "not a port"},
      {"a:7x", "\"a:7x\"", "not a port"},
      {"a:", "\"a:\"", "not a port"},
      {"a b:1", "\"a b:1\"", "space"},
      {"::1:7", "\"::1:7\"", "brackets"},
  }));
  CAPTURE(text);
  const auto parsed = parse_addresses(text);
  REQUIRE(!parsed);
  CHECK(parsed.error().code() == StatusCode::InvalidArgument);
  CHECK_THAT(parsed.error().message(), Catch::Contains(part) && Catch::Contains(reason));
  CHECK(open_connection(text).status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("connecting to nobody is refused at once", "[connect]") {
  REQUIRE(open_connection(std::vector<std::string>{}).status().code() == StatusCode::InvalidArgument);
}

TEST_CASE("a lazy connection is made without any distributor and cleaned up with operations pending", "[connect]") {
  ConnectOptions options;
  options.ready_timeout = Duration(0);
  auto connection = open_connection("127.0.0.1:1", std::move(options));
  REQUIRE(connection);
  REQUIRE((*connection)->client().snapshot() == nullptr);
  (*connection)->client().get("id:n:t::1", Duration(0), [](OperationOutcome) {});
}

}  // namespace fjord
