#include <catch2/catch.hpp>

#include "api_calls.h"
#include "fjord/rpc/codec.h"
#include "random_message.h"
#include "stock_thrift.h"

/// Compares the codec with the code that the Thrift compiler generates from api/fjord.thrift.
namespace fjord::rpc {
namespace {

using test::dump;
using test::for_each_call;
using test::random_alternative;

/// Reads a frame of the codec as a stock Thrift program does, and writes it again as such a program does.
template <typename Generated>
std::string through_stock(const std::string& frame, WireProtocol kind, std::int16_t field) {
  return test::write_stock(test::read_stock<Generated>(frame, kind, field), kind, field);
}

template <std::size_t I>
void check_call(Random& random) {
  const std::string method = std::variant_alternative_t<I, Request>::kName;
  INFO(method);
  for (const WireProtocol kind : {WireProtocol::Compact, WireProtocol::Binary}) {
    for (int round = 0; round < 50; ++round) {
      const Request request = random_alternative<Request, I>(random);
      const auto decoded = decode_request(
          through_stock<std::tuple_element_t<I, ApiRequests>>(encode_request(request, 5, kind), kind, 1));
      REQUIRE(decoded);
      REQUIRE(decoded->request);
      CHECK(dump(*decoded->request) == dump(request));

      const Reply reply = random_alternative<Reply, I>(random);
      const CallHeader call{name_of(request), 6, kind};
      const auto answer =
          decode_reply(through_stock<std::tuple_element_t<I, ApiReplies>>(encode_reply(call, reply), kind, 0));
      REQUIRE(answer);
      REQUIRE(answer->reply);
      CHECK(dump(*answer->reply) == dump(reply));
    }
  }
}

TEST_CASE("codec: stock Thrift code reads all that we write and we read what it writes", "[rpc]") {
  Random random(5);
  for_each_call([&]<std::size_t I>() { check_call<I>(random); });
}

TEST_CASE("codec: the status codes of the IDL are those of the program", "[rpc]") {
  for (const auto& [number, name] : api::_StatusCode_VALUES_TO_NAMES) {
    CHECK(to_string(static_cast<StatusCode>(number)) == name);
  }
  CHECK(api::_StatusCode_VALUES_TO_NAMES.size() == 22);
}

}  // namespace
}  // namespace fjord::rpc
