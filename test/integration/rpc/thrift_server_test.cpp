#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <mutex>
#include <poll.h>
#include <thread>

#include "fjord/common/scheduler.h"
#include "fjord/rpc/codec.h"
#include "fjord/rpc/refusal.h"
#include "fjord/rpc/thrift_transport.h"

/// Tests that need real sockets: invalid bytes, limits, lost connections.
namespace fjord::rpc {
namespace {

namespace asio = boost::asio;

class HoldingService final : public Service {
 public:
  bool handle(Request& request, Responder& respond) override {
    if (!std::holds_alternative<CancelJob>(request) && !std::holds_alternative<Execute>(request)) return false;
    std::lock_guard lock(mutex_);
    if (echo) {
      respond(CancelJobReply{});
    } else {
      held_.push_back(std::move(respond));
    }
    return true;
  }
  std::size_t held() {
    std::lock_guard lock(mutex_);
    return held_.size();
  }
  std::vector<Responder> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(held_, {});
  }
  std::atomic<bool> echo{true};

 private:
  std::mutex mutex_;
  std::vector<Responder> held_;
};

/// A client that sends arbitrary bytes.
class RawClient {
 public:
  explicit RawClient(const Address& address) : socket_(context_) {
    asio::ip::tcp::resolver resolver(context_);
    const auto colon = address.rfind(':');
    asio::connect(socket_, resolver.resolve(address.substr(0, colon), address.substr(colon + 1)));
  }
  void send(const std::string& bytes) {
    boost::system::error_code ignored;
    asio::write(socket_, asio::buffer(bytes), ignored);
  }
  static std::string framed(const std::string& frame) {
    std::string result;
    for (int shift = 24; shift >= 0; shift -= 8) result.push_back(static_cast<char>(frame.size() >> shift));
    return result + frame;
  }
  /// Returns true if the connection has ended or ends now, in order or not.
  bool is_closed() {
    boost::system::error_code error;
    char byte = 0;
    asio::read(socket_, asio::buffer(&byte, 1), error);
    return error.failed();
  }
  /// Waits until the server sends something or closes the connection; returns false if it did not.
  bool has_news_within(std::chrono::milliseconds time) {
    pollfd one{socket_.native_handle(), POLLIN, 0};
    return ::poll(&one, 1, static_cast<int>(time.count())) == 1;
  }
  /// Returns the next frame; empty if the connection has ended.
  std::string receive() {
    boost::system::error_code error;
    unsigned char length[4];
    asio::read(socket_, asio::buffer(length), error);
    if (error) return {};
    std::string frame(
        (std::size_t{length[0]} << 24) | (std::size_t{length[1]} << 16) | (std::size_t{length[2]} << 8) | length[3],
        '\0');
    asio::read(socket_, asio::buffer(frame), error);
    return error ? std::string() : frame;
  }

 private:
  asio::io_context context_;
  asio::ip::tcp::socket socket_;
};

struct Fixture {
  explicit Fixture(ThriftServerOptions options = {}) {
    auto listening = ThriftServer::listen(options, {&service}, metrics);
    REQUIRE(listening);
    server = std::move(*listening);
  }
  std::uint64_t counter(const std::string& name, const std::string& side = "server") {
    return metrics.counter(name, "", {{"side", side}}).value();
  }
  template <typename F>
  static bool eventually(F done) {
    for (int i = 0; i < 5000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return done();
  }
  StatusCode call(Transport& transport, const Address& to, Duration timeout = seconds(5)) {
    std::atomic<int> code{-1};
    rpc::call(transport, to, CancelJob{"a"}, timeout, *executor, [&](Result<CancelJobReply> result) {
      code = static_cast<int>(result ? result->status.code() : result.error().code());
    });
    REQUIRE(eventually([&] { return code != -1; }));
    return static_cast<StatusCode>(code.load());
  }

  MetricRegistry metrics;
  ThreadScheduler scheduler;
  std::unique_ptr<Executor> executor = scheduler.make_executor("test");
  HoldingService service;
  std::unique_ptr<ThriftServer> server;
};

TEST_CASE("thrift server: bytes that are no call close their connection and disturb nobody else", "[rpc]") {
  ThriftServerOptions options;
  options.max_frame_bytes = 10'000;
  Fixture f(options);
  RawClient survivor(f.server->address());
  const auto ask = [&](std::int32_t seqid) {
    survivor.send(RawClient::framed(encode_request(CancelJob{"a"}, seqid)));
    const auto reply = decode_reply(survivor.receive());
    REQUIRE(reply);
    CHECK(reply->seqid == seqid);
  };
  ask(1);
  const std::string hostile[] = {std::string("\x7f\xff\xff\xff") + "abc",
                                 RawClient::framed(std::string(10'001, 'a')),
                                 "GET / HTTP/1.1\r\n\r\n",
                                 RawClient::framed("hello"),
                                 RawClient::framed("\x82\x21\x01\x7f"),
                                 RawClient::framed("")};
  std::uint64_t closed = 0;
  for (const std::string& bytes : hostile) {
    RawClient attacker(f.server->address());
    attacker.send(bytes);
    CHECK(attacker.receive().empty());
    CHECK(f.eventually([&] { return f.counter("fjord_rpc_bad_frames_total") == closed + 1; }));
    ++closed;
    ask(static_cast<std::int32_t>(closed) + 1);
  }
  CHECK(f.metrics.gauge("fjord_rpc_connections", "", {{"side", "server"}}).value() == 1);
}

TEST_CASE("thrift server: answers in the protocol of the request, frames cut anywhere", "[rpc]") {
  Fixture f;
  RawClient client(f.server->address());
  const std::string bytes = RawClient::framed(encode_request(CancelJob{"a"}, 1, WireProtocol::Binary)) +
                            RawClient::framed(encode_request(CancelJob{"b"}, 2, WireProtocol::Compact));
  for (const char c : bytes) client.send(std::string(1, c));
  const std::string first = client.receive();
  const std::string second = client.receive();
  CHECK(first[0] == '\x80');
  CHECK(second[0] == '\x82');
  CHECK(decode_reply(first)->seqid == 1);
  CHECK(decode_reply(second)->seqid == 2);
}

TEST_CASE("thrift server: a connection with too much unanswered is not read from until it has less", "[rpc]") {
  ThriftServerOptions options;
  options.unanswered_max = 10;
  Fixture f(options);
  f.service.echo = false;
  RawClient client(f.server->address());
  std::string calls;
  for (int i = 0; i < 35; ++i) calls += RawClient::framed(encode_request(CancelJob{"a"}, i));
  client.send(calls);
  std::size_t answered = 0;
  while (answered < 35) {
    const std::size_t expected = std::min<std::size_t>(10, 35 - answered);
    REQUIRE(f.eventually([&] { return f.service.held() == expected; }));
    // Long enough for the eleventh to arrive if the connection were read.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(f.service.held() == expected);
    auto held = f.service.take();
    answered += held.size();

    for (Responder& respond : held) respond(CancelJobReply{});
    for (std::size_t i = 0; i < held.size(); ++i) CHECK_FALSE(client.receive().empty());
  }
  CHECK(f.metrics.counter("fjord_rpc_reading_paused_total", "").value() >= 1);
}

TEST_CASE("thrift transport: refused connects are NotReady at once, and a new server is found again", "[rpc]") {
  Fixture f;
  ThriftTransportOptions options;
  options.back_off_min = milliseconds(20);
  options.back_off_max = milliseconds(20);
  ThriftTransport transport(options, f.metrics);
  const Address address = f.server->address();
  CHECK(f.call(transport, address) == StatusCode::Ok);
  f.server.reset();
  CHECK(f.eventually([&] { return f.call(transport, address) == StatusCode::NotReady; }));
  CHECK(f.call(transport, address) == StatusCode::NotReady);
  ThriftServerOptions again;
  again.address = address;
  auto listening = ThriftServer::listen(again, {&f.service}, f.metrics);
  REQUIRE(listening);
  CHECK(f.eventually([&] { return f.call(transport, address) == StatusCode::Ok; }));
  CHECK(f.call(transport, "no port here") == StatusCode::NotReady);
}

TEST_CASE("thrift transport: a refusal is told from silence, and a call that was not tried from both", "[rpc]") {
  Fixture f;
  ThriftTransportOptions options;
  options.back_off_min = seconds(60);
  options.back_off_max = seconds(60);
  options.connect_timeout = milliseconds(300);
  ThriftTransport transport(options, f.metrics);
  const auto failure = [&](const Address& address) {
    Status status = Status::ok();
    std::atomic<bool> ended{false};
    call(transport, address, CancelJob{"a"}, seconds(20), *f.executor, [&](Result<CancelJobReply> result) {
      if (!result) status = result.error();
      ended = true;
    });
    REQUIRE(f.eventually([&] { return ended.load(); }));
    return status;
  };
  const Address address = f.server->address();
  f.server.reset();
  CHECK(is_refusal(failure(address)));
  const Status not_tried = failure(address);
  CHECK(not_tried.code() == StatusCode::NotReady);
  CHECK_FALSE(is_refusal(not_tried));

  // Accepts no connection, like a suspended process: the kernel accepts the first ones, later ones get no answer.
  boost::asio::io_context context;
  boost::asio::ip::tcp::acceptor stopped(context);
  const boost::asio::ip::tcp::endpoint any(boost::asio::ip::address_v4::loopback(), 0);
  stopped.open(any.protocol());
  stopped.bind(any);
  stopped.listen(0);
  std::vector<boost::asio::ip::tcp::socket> queue;
  for (int i = 0; i < 4; ++i) {
    queue.emplace_back(context);
    queue.back().async_connect(stopped.local_endpoint(), [](const boost::system::error_code&) {});
  }
  context.poll();
  const Status full = failure("127.0.0.1:" + std::to_string(stopped.local_endpoint().port()));
  CHECK_FALSE(full.is_ok());
  CHECK_FALSE(is_refusal(full));
}

TEST_CASE("thrift server: one that ends in order answers what it took up, and the rest was certainly not", "[rpc]") {
  Fixture f;
  f.service.echo = false;
  ThriftTransport transport({}, f.metrics);
  std::atomic<int> taken_up{-1};
  std::atomic<int> late{-1};
  const auto send = [&](std::atomic<int>& code) {
    call(transport, f.server->address(), CancelJob{"a"}, seconds(60), *f.executor, [&](Result<CancelJobReply> result) {
      code = static_cast<int>(result ? result->status.code() : result.error().code());
    });
  };
  send(taken_up);
  REQUIRE(f.eventually([&] { return f.service.held() == 1; }));
  const std::uint64_t received = f.counter("fjord_rpc_bytes_received_total");
  std::atomic<bool> drained{false};
  std::thread draining([&] {
    f.server->drain(seconds(60));
    drained = true;
  });
  const auto is_refused = [&] {
    try {
      RawClient(f.server->address());
      return false;
    } catch (const boost::system::system_error&) {
      return true;
    }
  };
  CHECK(f.eventually(is_refused));
  send(late);
  CHECK(f.eventually([&] { return f.counter("fjord_rpc_bytes_received_total") > received; }));
  CHECK_FALSE(drained);
  CHECK(taken_up == -1);
  for (Responder& respond : f.service.take()) respond(CancelJobReply{});
  draining.join();
  CHECK(f.eventually([&] { return taken_up != -1 && late != -1; }));
  CHECK(taken_up == static_cast<int>(StatusCode::Ok));
  CHECK(late == static_cast<int>(StatusCode::NotReady));
  CHECK(f.service.held() == 0);
}

TEST_CASE("thrift transport: a request longer than a frame may be is TooLarge", "[rpc]") {
  Fixture f;
  ThriftTransportOptions options;
  options.max_frame_bytes = 1000;
  ThriftTransport transport(options, f.metrics);
  std::atomic<int> code{-1};
  call(transport, f.server->address(), CancelJob{std::string(2000, 'a')}, seconds(5), *f.executor,
       [&](Result<CancelJobReply> result) { code = result ? -2 : static_cast<int>(result.error().code()); });
  CHECK(f.eventually([&] { return code == static_cast<int>(StatusCode::TooLarge); }));
  CHECK(f.call(transport, f.server->address()) == StatusCode::Ok);
}

TEST_CASE("thrift transport: many threads call at once over several loops", "[rpc]") {
  ThriftServerOptions server_options;
  server_options.io_threads = 2;
  Fixture f(server_options);
  ThriftTransportOptions options;
  options.io_threads = 2;
  ThriftTransport transport(options, f.metrics);
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        call(transport, f.server->address(), CancelJob{"a"}, seconds(20), *f.executor,
             [&](Result<CancelJobReply> result) {
               if (result && result->status.is_ok()) ++good;
             });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(f.eventually([&] { return good == 8000; }));
  CHECK(f.counter("fjord_rpc_frames_received_total", "client") == 8000);
}

std::uint64_t ended(Fixture& f, const std::string& reason) {
  return f.metrics.counter("fjord_rpc_ended_connections_total", "", {{"reason", reason}}).value();
}

double connections(Fixture& f) { return f.metrics.gauge("fjord_rpc_connections", "", {{"side", "server"}}).value(); }

std::string length_of_frame(std::size_t bytes) { return RawClient::framed(std::string(bytes, 'x')).substr(0, 4); }

TEST_CASE("thrift server: idle connections keep no other out", "[rpc]") {
  ThriftServerOptions options;
  options.connections_max = 20;
  options.io_threads = 2;
  Fixture f(options);
  ThriftTransport transport({}, f.metrics);
  CHECK(f.call(transport, f.server->address()) == StatusCode::Ok);
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(std::make_unique<RawClient>(f.server->address()));
  CHECK(f.eventually([&] { return ended(f, "full") >= 173 && connections(f) <= 28; }));
  // The client that has called before is still there, and another one comes in.
  CHECK(f.call(transport, f.server->address()) == StatusCode::Ok);
  CHECK(f.counter("fjord_rpc_broken_connections_total", "client") == 0);
  ThriftTransport other({}, f.metrics);
  CHECK(f.call(other, f.server->address()) == StatusCode::Ok);
}

TEST_CASE("thrift server: clients that wait for answers do not keep nodes out", "[rpc]") {
  ThriftServerOptions options;
  options.connections_max = 16;
  Fixture f(options);
  f.service.echo = false;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 16; ++i) {
    clients.push_back(std::make_unique<RawClient>(f.server->address()));
    clients.back()->send(RawClient::framed(encode_request(CancelJob{"a"}, 1)));
  }
  REQUIRE(f.eventually([&] { return f.service.held() == 16; }));
  // The empty frame says that the call was not begun.
  RawClient one_more(f.server->address());
  one_more.send(RawClient::framed(encode_request(CancelJob{"a"}, 1)));
  CHECK(one_more.receive().empty());
  CHECK(ended(f, "full") == 1);
  RawClient node(f.server->address());
  node.send(RawClient::framed(encode_request(Poll{}, 7)));
  CHECK(decode_reply(node.receive())->seqid == 7);
  CHECK(f.service.held() == 16);
  // With an answer in hand the longest idle client makes room.
  for (Responder& respond : f.service.take()) respond(CancelJobReply{});
  for (const auto& client : clients) CHECK_FALSE(client->receive().empty());
  f.service.echo = true;
  RawClient next(f.server->address());
  next.send(RawClient::framed(encode_request(CancelJob{"a"}, 3)));
  CHECK(decode_reply(next.receive())->seqid == 3);
}

TEST_CASE("thrift server: the rest of a frame has to come in time", "[rpc]") {
  ThriftServerOptions options;
  options.frame_timeout = milliseconds(100);
  Fixture f(options);
  const std::string whole = RawClient::framed(encode_request(CancelJob{"a"}, 5));
  SECTION("a length alone") {
    RawClient client(f.server->address());
    client.send(length_of_frame(1000));
    CHECK(client.is_closed());
  }
  SECTION("a half frame behind whole ones") {
    RawClient client(f.server->address());
    client.send(whole + whole + whole.substr(0, whole.size() - 1));
    CHECK_FALSE(client.receive().empty());
    CHECK_FALSE(client.receive().empty());
    CHECK(client.is_closed());
  }
  SECTION("one byte after the other") {
    RawClient client(f.server->address());
    client.send(length_of_frame(1'000'000));
    while (!client.has_news_within(std::chrono::milliseconds(5))) client.send("x");
    CHECK(client.is_closed());
  }
  CHECK(f.eventually([&] { return ended(f, "slow") == 1 && connections(f) == 0; }));
}

TEST_CASE("thrift server: a client without calls is told goodbye, and finds its way back", "[rpc]") {
  ThriftServerOptions options;
  options.idle_timeout = milliseconds(100);
  options.frame_timeout = milliseconds(100);
  Fixture f(options);
  f.service.echo = false;
  RawClient silent(f.server->address());
  RawClient waiting(f.server->address());
  waiting.send(RawClient::framed(encode_request(CancelJob{"a"}, 5)));
  RawClient node(f.server->address());
  node.send(RawClient::framed(encode_request(Poll{}, 7)));
  CHECK_FALSE(node.receive().empty());
  CHECK(silent.receive().empty());
  CHECK(f.eventually([&] { return connections(f) == 2; }));  // The node's, and the one whose answer is due.
  for (Responder& respond : f.service.take()) respond(CancelJobReply{});
  CHECK_FALSE(waiting.receive().empty());
  f.service.echo = true;
  ThriftTransport transport({}, f.metrics);
  for (int i = 0; i < 2; ++i) {
    CHECK(f.call(transport, f.server->address()) == StatusCode::Ok);
    CHECK(f.eventually([&] { return connections(f) == 1; }));
  }
  // A server with retired connections still ends in order.
  f.server->drain(seconds(60));
}

TEST_CASE("thrift server: frames that do not become whole take a bounded part of the memory", "[rpc]") {
  ThriftServerOptions options;
  options.received_bytes_max = 16u << 20;
  options.max_frame_bytes = 4u << 20;
  Fixture f(options);
  ThriftTransport transport({}, f.metrics);
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<RawClient>(f.server->address()));
  for (const auto& client : clients) {
    threads.emplace_back([&client] { client->send(length_of_frame(4u << 20) + std::string(3u << 20, 'x')); });
  }
  for (std::thread& thread : threads) thread.join();
  // 4 MiB are enough for one of them.
  CHECK(f.eventually([&] { return ended(f, "memory") >= 7; }));
  CHECK(f.call(transport, f.server->address()) == StatusCode::Ok);
}

TEST_CASE("thrift server: requests in work count with the memory that they take", "[rpc]") {
  // 3 KB of a list with empty operations take a megabyte.
  Execute execute;
  execute.operations.resize(3000);
  const std::string frame = encode_request(execute, 1);
  const std::size_t bytes = decode_request(frame)->bytes;
  CHECK(frame.size() < 4000);
  CHECK(bytes >= 3000 * sizeof(Operation));
  constexpr std::size_t kConnections = 4;
  ThriftServerOptions options;
  options.received_bytes_max = 8 * bytes;
  options.max_frame_bytes = 10'000;
  Fixture f(options);
  f.service.echo = false;
  std::vector<std::unique_ptr<RawClient>> clients;
  std::string calls;
  for (int i = 0; i < 100; ++i) calls += RawClient::framed(frame);
  for (std::size_t i = 0; i < kConnections; ++i) {
    clients.push_back(std::make_unique<RawClient>(f.server->address()));
    clients.back()->send(calls);
  }
  const auto paused = [&] { return f.metrics.counter("fjord_rpc_reading_paused_total", "").value(); };
  CHECK(f.eventually([&] { return paused() >= kConnections; }));
  CHECK(f.service.held() >= 8);
  CHECK(f.service.held() <= 8 + kConnections);
  // Memory that comes free is used, also by connections whose own requests were not answered.
  std::size_t answered = 0;
  CHECK(f.eventually([&] {
    auto held = f.service.take();
    answered += held.size();
    CHECK(held.size() <= 8 + kConnections);
    for (Responder& respond : held) respond(ExecuteReply{});
    return answered == 100 * kConnections;
  }));
}

TEST_CASE("thrift server: an address that cannot be had is an error", "[rpc]") {
  Fixture f;
  ThriftServerOptions options;
  options.address = f.server->address();
  CHECK(ThriftServer::listen(options, {&f.service}, f.metrics).status().code() == StatusCode::IoError);
  options.address = "nonsense";
  CHECK(ThriftServer::listen(options, {&f.service}, f.metrics).status().code() == StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace fjord::rpc
