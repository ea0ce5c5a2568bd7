#include "http/transport/http1_session.h"

#include <catch2/catch.hpp>
#include <ctime>
#include <fmt/format.h>

#include "session_world.h"

namespace fjord::gateway {
namespace {

constexpr const char* kGet = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

struct Http1World : SessionWorld {
  explicit Http1World(HttpGatewayOptions options = {}) : SessionWorld(std::move(options)) { open<Http1Session>(); }
};

/// Returns the status of the first answer; 0 if there is none.
int status_of(const std::string& sent) { return sent.starts_with("HTTP/1.1 ") ? std::stoi(sent.substr(9, 3)) : 0; }

std::string body_of(const std::string& sent) { return sent.substr(sent.find("\r\n\r\n") + 4); }

TEST_CASE("http1: a streamed answer is sent piece by piece, and the next may come when one is taken") {
  Http1World world;
  CHECK(world.exchange(kGet).empty());
  REQUIRE(world.given.size() == 1);
  const HttpReply reply = world.given[0].reply;
  reply.begin({.status = 200, .content_type = "text/x"});
  const std::string head = world.pump();
  CHECK(head.find("Transfer-Encoding: chunked\r\n") != std::string::npos);
  CHECK(body_of(head).empty());
  int calls = 0;
  reply.write("hello", [&](bool is_open) { calls += is_open ? 1 : 100; });
  CHECK(calls == 0);
  CHECK(world.pump() == "5\r\nhello\r\n");
  CHECK(calls == 1);
  reply.end();
  CHECK(world.pump() == "0\r\n\r\n");
  CHECK(world.exchange(kGet).empty());
  CHECK(world.given.size() == 2);
}

TEST_CASE("http1: a piece beyond what may wait does not ask for the next one") {
  Http1World world;
  world.exchange(kGet);
  const HttpReply reply = world.given[0].reply;
  reply.begin({});
  bool is_next = false;
  reply.write(std::string(1 << 20, 'x'), [&](bool) { is_next = true; });
  for (const auto& one : std::exchange(world.host->changed, {})) world.session->answer_changed(*one);
  std::string sent;
  world.session->produce(sent, 100'000);
  CHECK(sent.size() > 90'000);
  CHECK(sent.size() < 200'000);
  CHECK_FALSE(is_next);
  world.pump();
  CHECK(is_next);
}

TEST_CASE("http1: a cut answer has no last chunk and ends the connection") {
  Http1World world;
  world.exchange(kGet);
  world.given[0].reply.begin({.body = "some"});
  CHECK(body_of(world.pump()) == "4\r\nsome\r\n");
  world.given.clear();  // Destroys the last copy of the reply, before its end.
  CHECK(world.pump().empty());
  CHECK(world.session->is_over());
}

TEST_CASE("http1: a target with the host of the request is served, and no cache keeps the answer") {
  Http1World world;
  CHECK(world.exchange("GET HTTP://X:80/a?b HTTP/1.1\r\nHost: x:80\r\n\r\n").empty());
  REQUIRE(world.given.size() == 1);
  CHECK(world.given[0].request.target == "/a?b");
  world.given[0].reply({.body = "x", .headers = {{"X-Content-Type-Options", "nosniff"}}});
  const std::string sent = world.pump();
  CHECK(sent.find("\r\nCache-Control: no-store\r\n") != std::string::npos);
  const std::size_t at = sent.find("\r\nX-Content-Type-Options: nosniff\r\n");
  REQUIRE(at != std::string::npos);
  CHECK(sent.find("X-Content-Type-Options", at + 10) == std::string::npos);
  Http1World kept;
  kept.exchange(kGet);
  kept.given[0].reply({.headers = {{"Cache-Control", "max-age=5"}}});
  CHECK(kept.pump().find("no-store") == std::string::npos);
}

TEST_CASE("http1: a request that nobody answers gets 500") {
  Http1World world;
  world.exchange(kGet);
  world.given.clear();
  CHECK(status_of(world.pump()) == 500);
  CHECK_FALSE(world.session->is_over());
}

TEST_CASE("http1: a handler learns that the client is away") {
  Http1World world;
  world.exchange(kGet);
  const HttpReply reply = world.given[0].reply;
  int stops = 0;
  reply.on_stop([&] { ++stops; });
  reply.begin({});
  bool is_open = true;
  world.pump();
  SECTION("between two pieces") {
    world.session->receive_end();
    CHECK(stops == 1);
    reply.write("x", [&](bool open) { is_open = open; });
    CHECK_FALSE(is_open);
  }
  SECTION("while a piece waits") {
    reply.write("x", [&](bool open) { is_open = open; });
    CHECK(is_open);
    world.session->abandon();
    CHECK_FALSE(is_open);
    CHECK(stops == 1);
  }
  CHECK_FALSE(reply.is_open());
  bool is_stopped = false;
  reply.on_stop([&] { is_stopped = true; });
  CHECK(is_stopped);
}

TEST_CASE("http1: a whole answer still reaches a client that only ended its side") {
  Http1World world;
  world.exchange(kGet);
  world.session->receive_end();
  world.given[0].reply({.body = "late"});
  CHECK(body_of(world.pump()) == "late");
  CHECK(world.session->is_over());
}

TEST_CASE("http1: requests that came together are answered one after the other") {
  Http1World world;
  world.exchange(
      std::string("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc") +
      kGet);
  REQUIRE(world.given.size() == 1);
  world.given[0].reply({.body = "1"});
  CHECK(body_of(world.pump()) == "1");
  REQUIRE(world.given.size() == 2);
  CHECK(world.given[1].request.body == "abc");
  world.given[1].reply({.body = "2"});
  CHECK(body_of(world.pump()) == "2");
  REQUIRE(world.given.size() == 3);
  CHECK(world.given[2].request.target == "/a");
}

TEST_CASE("http1: bytes of later requests are bounded") {
  Http1World world;
  world.exchange(kGet);
  CHECK(world.session->wants_input());
  world.exchange(std::string(64 << 10, 'x'));
  CHECK_FALSE(world.session->wants_input());
}

TEST_CASE("http1: a body in chunks of any cut is the same body") {
  const std::string sent =
      "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;name=value\r\nhello\r\nA\r\n, "
      "world...\r\n0\r\nT: t\r\n\r\n";
  for (std::size_t step = 1; step < sent.size(); step += 3) {
    Http1World world;
    for (std::size_t at = 0; at < sent.size(); at += step) world.exchange(sent.substr(at, step));
    REQUIRE(world.given.size() == 1);
    CHECK(world.given[0].request.body == "hello, world...");
  }
}

TEST_CASE("http1: requests that others may read differently are refused") {
  const std::string post = "POST /a HTTP/1.1\r\nHost: x\r\n";
  const std::pair<std::string, int> cases[] = {
      {"no http\r\n\r\n", 400},
      {"\x16\x03\x01 hello of TLS", 400},
      {"GET /a HTTP/2.0\r\nHost: x\r\n\r\n", 400},
      {"GET /a HTTP/1.1\r\n\r\n", 400},
      {"GET http://y/a HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET http://x:81/a HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET http://u@x/a HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /a HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400},
      {"GET /a HTTP/1.1\r\nHost: x y\r\n\r\n", 400},
      {"GET a HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /a HTTP/1.1\nHost: x\n\n", 400},
      {"GET /a HTTP/1.1\r\nHost : x\r\n\r\n", 400},
      {"GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400},
      {post + "Content-Length: x\r\n\r\n", 400},
      {post + "Content-Length: -1\r\n\r\n", 400},
      {post + "Content-Length: +1\r\n\r\na", 400},
      {post + "Content-Length: 1, 1\r\n\r\na", 400},
      {post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400},
      {post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
      {post + "Content-Length: 99999999999999999999999\r\n\r\n", 400},
      {post + "Content-Length: 999999999999\r\n\r\n", 413},
      {post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: identity\r\n\r\n", 400},
      {post + "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n0\r\n\r\n",
       400},
      {"POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n00000000000000000001\r\na\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n0\r\nT: t\r\n folded\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n0\r\nT: t\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n1;a\nb\r\na\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffff\r\n", 413},
      {post + "Expect: more\r\n\r\n", 417},
      {post + "X: " + std::string(300 << 10, 'y') + "\r\n\r\n", 431},
      {post + "X: " + std::string(300 << 10, 'y'), 431},
  };
  for (const auto& [bytes, status] : cases) {
    INFO(bytes.substr(0, 200));
    Http1World world;
    const std::string sent = world.exchange(bytes);
    CHECK(status_of(sent) == status);
    CHECK(sent.find("Connection: close\r\n") != std::string::npos);
    CHECK(world.session->is_over());
    CHECK(world.given.empty());
  }
}

/// Returns a request with this many headers besides Host.
std::string get_with_headers(int headers, const std::string& name) {
  std::string request = "GET /a HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < headers; ++i) request += fmt::format("{}{}: y\r\n", name, i);
  return request + "\r\n";
}

TEST_CASE("http1: the number of headers is bounded") {
  Http1World world;
  CHECK(world.exchange(get_with_headers(199, "a")).empty());
  REQUIRE(world.given.size() == 1);
  CHECK(world.given[0].request.headers.size() == 200);
  Http1World full;
  CHECK(status_of(full.exchange(get_with_headers(200, "a"))) == 431);
  CHECK(full.given.empty());
  // A header that has not ended yet is refused without its rest.
  Http1World open;
  const std::string many = get_with_headers(41'000, "");
  CHECK(status_of(open.exchange(std::string_view(many).substr(0, 8'000))) == 431);
}

TEST_CASE("http1: many headers and many empty lines take little processor time") {
  const auto seconds_of = [](const std::string& bytes, std::size_t part) {
    Http1World world;
    const std::clock_t begin = std::clock();
    for (std::size_t at = 0; at < bytes.size() && !world.session->is_over(); at += part) {
      world.exchange(std::string_view(bytes).substr(at, part));
    }
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  constexpr std::size_t kRead = 64 << 10;
  constexpr double kSecondsMax = 0.5;
  std::string same = "GET /a HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 40'000; ++i) same += "aaa:\r\n";
  CHECK(seconds_of(same + "\r\n", kRead) < kSecondsMax);
  CHECK(seconds_of(get_with_headers(25'000, ""), kRead) < kSecondsMax);
  std::string empty_lines;
  for (int i = 0; i < (8 << 20); ++i) empty_lines += "\r\n";
  CHECK(seconds_of(empty_lines, kRead) < kSecondsMax);
}

TEST_CASE("http1: chunks that are mostly their lengths are refused") {
  Http1World world;
  std::string sent = world.exchange("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  SECTION("extensions") {
    const std::string chunk = "1;" + std::string(1000, 'e') + "\r\nx\r\n";
    for (int i = 0; i < 100 && sent.empty(); ++i) sent = world.exchange(chunk);
  }
  SECTION("one length that does not end") {
    for (int i = 0; i < 100 && sent.empty(); ++i) sent = world.exchange("1;" + std::string(1000, 'e'));
  }
  CHECK(status_of(sent) == 400);
}

TEST_CASE("http1: a header and a body have to arrive in time") {
  Http1World world;
  SECTION("header") { world.exchange("GET /a HT"); }
  SECTION("body") { world.exchange("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc"); }
  world.session->on_time(HttpClock::now());
  CHECK(world.pump().empty());
  world.session->on_time(world.session->deadline());
  CHECK(status_of(world.pump()) == 408);
  CHECK(world.session->is_over());
  CHECK(world.refusals("slow") == 1);
}

TEST_CASE("http1: a large body has more time") {
  Http1World world;
  world.exchange("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n");
  const auto before = world.session->deadline();
  for (int i = 0; i < 16; ++i) world.exchange(std::string(64 << 10, 'x'));
  CHECK(world.session->deadline() - before == std::chrono::seconds(64));
}

TEST_CASE("http1: an idle connection ends without a word") {
  Http1World world;
  world.session->on_time(world.session->deadline());
  CHECK(world.pump().empty());
  CHECK(world.session->is_over());
}

TEST_CASE("http1: bodies of all requests are bounded") {
  HttpGatewayOptions options;
  options.waiting_bytes_max = 10'000;
  Http1World world(options);
  world.exchange("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n" + std::string(15'000, 'x'));
  REQUIRE(world.host->waiting.size() == 1);
  world.host->waiting[0]();
  CHECK(status_of(world.pump()) == 429);
}

TEST_CASE("http1: requests in progress are bounded, and an answer makes room") {
  HttpGatewayOptions options;
  options.requests_max = 1;
  Http1World world(options);
  world.exchange(kGet);
  auto other = std::make_unique<Http1Session>(world.server, *world.host);
  other->receive(kGet);
  CHECK(world.given.size() == 1);
  CHECK(world.host->waiting.size() == 1);
  world.given[0].reply({});
  world.session = std::make_unique<Http1Session>(world.server, *world.host);
  world.exchange(kGet);
  CHECK(world.given.size() == 2);
}

TEST_CASE("http1: 100 Continue is sent once, and only if the body has not begun") {
  Http1World world;
  CHECK(world.exchange("POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n") ==
        "HTTP/1.1 100 Continue\r\n\r\n");
  CHECK(world.exchange("ab").empty());
  CHECK(world.given.size() == 1);
  Http1World eager;
  CHECK(eager.exchange("POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab").empty());
}

TEST_CASE("http1: HTTP/1.0 gets a streamed answer without chunks, up to the end of the connection") {
  Http1World world;
  world.exchange("GET /a HTTP/1.0\r\n\r\n");
  REQUIRE(world.given.size() == 1);
  world.given[0].reply.begin({.body = "one"});
  world.given[0].reply.write("two", [](bool) {});
  world.given[0].reply.end();
  const std::string sent = world.pump();
  CHECK(body_of(sent) == "onetwo");
  CHECK(sent.find("Transfer-Encoding") == std::string::npos);
  CHECK(world.session->is_over());
}

TEST_CASE("http1: HEAD has the header of the answer and no body") {
  Http1World world;
  world.exchange("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
  world.given[0].reply({.body = "hello"});
  const std::string sent = world.pump();
  CHECK(sent.find("Content-Length: 5\r\n") != std::string::npos);
  CHECK(body_of(sent).empty());
}

TEST_CASE("http1: answers are compressed for clients that take it") {
  const std::string get = "GET /a HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n";
  const std::string text = fmt::format("{:0>3000}", 7);
  const auto is_text = [&](const std::string& packed) {
    const auto unpacked = gunzip(packed, 1 << 20, [](std::size_t) { return true; });
    return unpacked.has_value() && *unpacked == text;
  };
  Http1World world;
  world.exchange(get);
  world.given[0].reply({.body = text});
  const std::string sent = world.pump();
  CHECK(sent.find("Content-Encoding: gzip\r\n") != std::string::npos);
  CHECK(sent.find(fmt::format("Content-Length: {}\r\n", body_of(sent).size())) != std::string::npos);
  CHECK(is_text(body_of(sent)));
  world.exchange(get);
  world.given[1].reply({.body = "small"});
  CHECK(body_of(world.pump()) == "small");
  world.exchange(get);
  world.given[2].reply({.body = text, .content_type = "image/png"});
  CHECK(body_of(world.pump()) == text);
}

TEST_CASE("http1: a stop waits for the request in progress and takes no other") {
  Http1World world;
  world.exchange(kGet);
  bool is_told = false;
  world.given[0].reply.on_stop([&] { is_told = true; });
  world.session->drain();
  CHECK(is_told);
  CHECK(world.given[0].reply.is_open());
  CHECK_FALSE(world.session->is_over());
  world.given[0].reply({.body = "last"});
  CHECK(body_of(world.pump()) == "last");
  CHECK(world.session->is_over());
  Http1World idle;
  idle.session->drain();
  CHECK(idle.session->is_over());
}

}  // namespace
}  // namespace fjord::gateway
