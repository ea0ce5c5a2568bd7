#include "http/transport/request_check.h"

#include <catch2/catch.hpp>

namespace fjord::gateway {
namespace {

TEST_CASE("request check: hosts are names or addresses with a port at most") {
  for (const auto* good : {"x", "a-b.example:8080", "127.0.0.1", "[::1]:80", "under_score", "x:"}) CHECK(is_host(good));
  for (const auto* bad :
       {"", ":80", "a b", "a/b", "a@b", "a:b", "a:123456", "[::1", "[]", "[x y]", "a,b", "a\tb", "[::1]x"}) {
    INFO(bad);
    CHECK_FALSE(is_host(bad));
  }
}

TEST_CASE("request check: a target with a host becomes a path") {
  const auto path_of = [](std::string target) { return to_path(target) ? target : std::string("refused"); };
  CHECK(path_of("/a?b") == "/a?b");
  CHECK(path_of("*") == "*");
  CHECK(path_of("http://host:80/a?b") == "/a?b");
  CHECK(path_of("HTTPS://host") == "/");
  CHECK(path_of("http://host?a=1") == "/?a=1");
  CHECK(path_of("host:80") == "refused");
  CHECK(path_of("a/b") == "refused");
  CHECK(path_of("") == "refused");
}

TEST_CASE("request check: bytes of a header that others read differently are refused") {
  CHECK(check_head_bytes("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0));
  CHECK_FALSE(check_head_bytes("GET / HTTP/1.1\nHost: x\r\n\r\n", 0));
  CHECK_FALSE(check_head_bytes("GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 0));
  CHECK_FALSE(check_head_bytes("GET / HTTP/1.1\r\nHost: x\rY: z\r\n\r\n", 0));
  CHECK_FALSE(check_head_bytes(std::string_view("GET /\0 HTTP/1.1\r\n", 17), 0));
  CHECK(check_head_bytes("bad\nGET", 4));
}

TEST_CASE("request check: headers are joined and their names are in lower case") {
  std::vector<HttpHeader> headers;
  add_header(headers, "Accept", "a");
  add_header(headers, "ACCEPT", "b");
  add_header(headers, "Host", "x");
  REQUIRE(headers.size() == 2);
  CHECK(headers[0].name == "accept");
  CHECK(headers[0].value == "a, b");
}

}  // namespace
}  // namespace fjord::gateway
