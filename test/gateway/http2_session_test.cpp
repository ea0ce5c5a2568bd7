#include "http/transport/http2_session.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <nghttp2/nghttp2.h>

#include "session_world.h"

namespace fjord::gateway {
namespace {

/// An HTTP/2 client of a session, and what it has received.
class Http2World : public SessionWorld {
 public:
  explicit Http2World(HttpGatewayOptions options = {}, std::int32_t window = 65'535)
      : SessionWorld(std::move(options)) {
    open<Http2Session>();
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_option* option = nullptr;
    nghttp2_option_new(&option);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_session_client_new2(&client, callbacks, this, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(window)}};
    nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, settings, 1);
    talk();
  }
  ~Http2World() { nghttp2_session_del(client); }
  Http2World(const Http2World&) = delete;
  Http2World& operator=(const Http2World&) = delete;

  std::int32_t send(const std::string& method, const std::string& path, const std::string& body = {},
                    bool is_whole = true, const std::string& extra = {}, int extras = 1) {
    std::vector<std::pair<std::string, std::string>> fields = {
        {":method", method}, {":scheme", "http"}, {":path", path}, {":authority", "x"}};
    for (int i = 0; i < extras && !extra.empty(); ++i) fields.emplace_back("extra", extra);
    std::vector<nghttp2_nv> values;
    for (const auto& [name, value] : fields) {
      values.push_back({const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(name.data())),
                        const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(value.data())), name.size(),
                        value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    nghttp2_data_provider source{};
    bodies.push_back(std::make_unique<Body>(Body{body, is_whole}));
    source.source.ptr = bodies.back().get();
    source.read_callback = read;
    const bool has_body = !body.empty() || !is_whole;
    const std::int32_t id =
        nghttp2_submit_request(client, nullptr, values.data(), values.size(), has_body ? &source : nullptr, nullptr);
    talk();
    return id;
  }

  /// Carries bytes both ways until neither side has more.
  void talk() {
    while (true) {
      const std::uint8_t* data = nullptr;
      std::string bytes;
      for (ssize_t size = 0; (size = nghttp2_session_mem_send(client, &data)) > 0;) {
        bytes.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
      }
      const std::string answer = exchange(bytes);
      if (answer.empty() && bytes.empty()) return;
      nghttp2_session_mem_recv(client, reinterpret_cast<const std::uint8_t*>(answer.data()), answer.size());
    }
  }

  struct Answer {
    std::map<std::string, std::string> headers;
    std::string body;
    bool is_closed = false;
    std::uint32_t error = 0;
  };
  struct Body {
    std::string text;
    bool is_whole;
  };

  std::string status(std::int32_t id) { return answers[id].headers[":status"]; }

  nghttp2_session* client = nullptr;
  std::map<std::int32_t, Answer> answers;
  std::vector<std::unique_ptr<Body>> bodies;
  bool has_goaway = false;
  std::uint32_t goaway_error = 0;

 private:
  static Http2World& of(void* user) { return *static_cast<Http2World*>(user); }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                       const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
    of(user).answers[frame->hd.stream_id].headers[{reinterpret_cast<const char*>(name), name_size}] = {
        reinterpret_cast<const char*>(value), value_size};
    return 0;
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data, std::size_t size,
                     void* user) {
    of(user).answers[id].body.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }
  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
    of(user).answers[id].is_closed = true;
    of(user).answers[id].error = error;
    return 0;
  }
  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_GOAWAY) return 0;
    of(user).has_goaway = true;
    of(user).goaway_error = frame->goaway.error_code;
    return 0;
  }
  static ssize_t read(nghttp2_session*, std::int32_t, std::uint8_t* to, std::size_t size, std::uint32_t* flags,
                      nghttp2_data_source* source, void*) {
    Body& body = *static_cast<Body*>(source->ptr);
    const std::size_t bytes = std::min(size, body.text.size());
    std::memcpy(to, body.text.data(), bytes);
    body.text.erase(0, bytes);
    if (!body.text.empty()) return static_cast<ssize_t>(bytes);
    if (body.is_whole) *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (bytes == 0 && !body.is_whole) return NGHTTP2_ERR_DEFERRED;
    return static_cast<ssize_t>(bytes);
  }
};

std::string frame_of(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift & 0xff);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift & 0xff);
  return frame + payload;
}

/// Returns the error of the last GOAWAY among frames; -1 if there is none.
int goaway_error_in(std::string_view frames) {
  constexpr std::size_t kHeadBytes = 9;
  int error = -1;
  while (frames.size() >= kHeadBytes) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(frames[i]); };
    const std::size_t size = static_cast<std::size_t>(byte(0)) << 16 | static_cast<std::size_t>(byte(1)) << 8 | byte(2);
    if (byte(3) == NGHTTP2_GOAWAY) error = byte(kHeadBytes + 7);
    frames.remove_prefix(std::min(frames.size(), kHeadBytes + size));
  }
  return error;
}

TEST_CASE("http2: many requests on one connection are answered in any order") {
  Http2World world;
  const std::int32_t first = world.send("GET", "/1");
  const std::int32_t second = world.send("POST", "/2", "body");
  REQUIRE(world.given.size() == 2);
  CHECK(world.given[1].request.body == "body");
  CHECK(world.given[1].request.header("host") == "x");
  world.given[1].reply({.status = 404, .body = "two"});
  world.talk();
  CHECK(world.status(second) == "404");
  CHECK(world.answers[second].body == "two");
  CHECK(world.answers[second].headers["x-request-id"] == world.given[1].request.request_id);
  CHECK_FALSE(world.answers[first].is_closed);
  world.given[0].reply({.body = "one"});
  world.talk();
  CHECK(world.answers[first].body == "one");
}

TEST_CASE("http2: a large body arrives whole in both directions") {
  Http2World world({}, 10 << 20);
  nghttp2_session_set_local_window_size(world.client, NGHTTP2_FLAG_NONE, 0, 10 << 20);
  const std::string text(3'000'000, 'y');
  const std::int32_t id = world.send("POST", "/a", text);
  REQUIRE(world.given.size() == 1);
  CHECK(world.given[0].request.body == text);
  world.given[0].reply({.body = text});
  world.talk();
  CHECK(world.answers[id].body == text);
}

TEST_CASE("http2: a streamed answer waits for the client's window") {
  Http2World world;
  const std::int32_t id = world.send("GET", "/a");
  const HttpReply reply = world.given[0].reply;
  reply.begin({});
  int nexts = 0;
  reply.write(std::string(400'000, 'x'), [&](bool is_open) { nexts += is_open ? 1 : 100; });
  world.talk();
  CHECK(world.answers[id].body.size() == 65'535);
  CHECK(nexts == 0);
  nghttp2_session_consume(world.client, id, 65'535);
  world.talk();
  CHECK(world.answers[id].body.size() == 2 * 65'535);
  nghttp2_session_consume(world.client, id, 65'535);
  world.talk();
  CHECK(nexts == 1);
  reply.end();
  for (int i = 0; i < 6; ++i) {
    nghttp2_session_consume(world.client, id, 65'535);
    world.talk();
  }
  CHECK(world.answers[id].body.size() == 400'000);
  CHECK(world.answers[id].is_closed);
  CHECK(world.answers[id].error == NGHTTP2_NO_ERROR);
}

TEST_CASE("http2: a piece that is written later is sent") {
  Http2World world;
  const std::int32_t id = world.send("GET", "/a");
  world.given[0].reply.begin({});
  world.talk();
  world.given[0].reply.write("later", [](bool) {});
  world.talk();
  CHECK(world.answers[id].body == "later");
  world.given.clear();
  world.talk();
  CHECK(world.answers[id].error == NGHTTP2_INTERNAL_ERROR);
}

TEST_CASE("http2: a handler learns that its stream was reset, or its connection lost") {
  Http2World world;
  const std::int32_t id = world.send("GET", "/a");
  const HttpReply reply = world.given[0].reply;
  int stops = 0;
  bool is_open = true;
  reply.on_stop([&] { ++stops; });
  reply.begin({});
  reply.write(std::string(1 << 20, 'x'), [&](bool open) { is_open = open; });
  SECTION("reset") {
    nghttp2_submit_rst_stream(world.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    world.talk();
  }
  SECTION("lost") { world.session->abandon(); }
  SECTION("ended") { world.session->receive_end(); }
  CHECK(stops == 1);
  CHECK_FALSE(is_open);
  CHECK_FALSE(reply.is_open());
}

TEST_CASE("http2: a refused request is answered before its body is whole") {
  HttpGatewayOptions options;
  options.body_bytes_max = 1000;
  Http2World world(options);
  const std::int32_t id = world.send("POST", "/a", std::string(5000, 'x'), false);
  CHECK(world.status(id) == "413");
  CHECK_FALSE(world.answers[id].is_closed);
  world.session->on_time(HttpClock::now() + std::chrono::seconds(6));
  world.talk();
  CHECK(world.answers[id].is_closed);
  CHECK(world.answers[id].error == NGHTTP2_NO_ERROR);
  const std::int32_t next = world.send("GET", "/b");
  world.given[0].reply({});
  world.talk();
  CHECK(world.status(next) == "200");
}

TEST_CASE("http2: headers are bounded") {
  HttpGatewayOptions options;
  options.header_bytes_max = 10'000;
  Http2World world(options);
  CHECK(world.status(world.send("GET", "/a", {}, true, std::string(9000, 'y'))).empty());
  CHECK(world.given.size() == 1);
  CHECK(world.status(world.send("GET", "/a", {}, true, std::string(11'000, 'y'))) == "431");
  CHECK(world.given.size() == 1);
  CHECK(world.status(world.send("GET", "/a", {}, true, "y", 200)).empty());
  CHECK(world.given.size() == 2);
  CHECK(world.status(world.send("GET", "/a", {}, true, "y", 201)) == "431");
  CHECK(world.given.size() == 2);
}

TEST_CASE("http2: a slow body gets 408, and the others are not disturbed") {
  Http2World world;
  const std::int32_t slow = world.send("POST", "/a", "x", false);
  const std::int32_t other = world.send("GET", "/b");
  world.session->on_time(world.session->deadline());
  world.talk();
  CHECK(world.status(slow).empty());
  world.session->on_time(HttpClock::now() + std::chrono::seconds(31));
  world.talk();
  CHECK(world.status(slow) == "408");
  CHECK(world.status(other).empty());
  CHECK_FALSE(world.session->is_over());
}

TEST_CASE("http2: a stream whose answer nobody takes is reset") {
  Http2World world({}, 10);
  const std::int32_t id = world.send("GET", "/a");
  world.given[0].reply({.body = std::string(1000, 'x')});
  world.talk();
  world.session->on_time(HttpClock::now() + std::chrono::seconds(2));
  world.talk();
  CHECK_FALSE(world.answers[id].is_closed);
  world.session->on_time(HttpClock::now() + std::chrono::seconds(70));
  world.talk();
  CHECK(world.answers[id].error == NGHTTP2_CANCEL);
  CHECK(world.refusals("slow") == 1);
}

TEST_CASE("http2: an idle connection is told and ends") {
  Http2World world;
  world.session->on_time(world.session->deadline());
  world.talk();
  CHECK(world.has_goaway);
  CHECK(world.session->is_over());
}

TEST_CASE("http2: floods end the connection") {
  Http2World world;
  const auto flood = [&](const std::string& bytes, int times) {
    std::string answer;
    for (int i = 0; i < times && !world.session->is_over(); ++i) answer += world.exchange(bytes);
    CHECK(world.session->is_over());
    CHECK(goaway_error_in(answer) == NGHTTP2_ENHANCE_YOUR_CALM);
    CHECK(world.refusals("flood") == 1);
  };
  SECTION("ping") { flood(frame_of(NGHTTP2_PING, 0, 0, "12345678"), 3000); }
  SECTION("settings") { flood(frame_of(NGHTTP2_SETTINGS, 0, 0, ""), 3000); }
  SECTION("windows of the connection") {
    flood(frame_of(NGHTTP2_WINDOW_UPDATE, 0, 0, std::string("\0\0\0\1", 4)), 3000);
  }
  SECTION("priorities") { flood(frame_of(NGHTTP2_PRIORITY, 0, 1001, std::string("\0\0\0\0\1", 5)), 3000); }
  SECTION("data without bytes") {
    world.send("POST", "/a", "x", false);
    flood(frame_of(NGHTTP2_DATA, 0, 1, ""), 4000);
  }
}

TEST_CASE("http2: requests that are taken back at once end the connection") {
  Http2World world;
  int sent = 0;
  for (; sent < 3000 && !world.session->is_over(); ++sent) {
    const std::int32_t id = world.send("GET", "/a");
    nghttp2_submit_rst_stream(world.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    world.talk();
    world.given.clear();
  }
  CHECK(sent >= 1000);
  CHECK(sent < 1100);
  CHECK(world.goaway_error == NGHTTP2_ENHANCE_YOUR_CALM);
  CHECK(world.refusals("flood") == 1);
}

TEST_CASE("http2: requests that were taken back count while their handlers work") {
  HttpGatewayOptions options;
  options.streams_max = 20;
  Http2World world(options);
  for (int i = 0; i < 20; ++i) {
    const std::int32_t id = world.send("GET", "/a");
    nghttp2_submit_rst_stream(world.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    world.talk();
  }
  CHECK(world.given.size() == 20);
  const std::int32_t refused = world.send("GET", "/a");
  CHECK(world.given.size() == 20);
  CHECK(world.answers[refused].error == NGHTTP2_REFUSED_STREAM);
  world.given.clear();
  world.talk();
  world.send("GET", "/a");
  CHECK(world.given.size() == 1);
}

TEST_CASE("http2: a header that does not end is refused") {
  Http2World world;
  // A HEADERS frame without END_HEADERS and then empty CONTINUATION frames.
  std::string bytes = frame_of(NGHTTP2_HEADERS, 0, 1, "");
  for (int i = 0; i < 100; ++i) bytes += frame_of(NGHTTP2_CONTINUATION, 0, 1, "");
  world.exchange(bytes);
  CHECK(world.session->is_over());
  CHECK(world.given.empty());
}

TEST_CASE("http2: half of a header ends the connection after a time") {
  Http2World world;
  world.exchange(frame_of(NGHTTP2_HEADERS, 0, 1, "\x82"));
  world.session->on_time(HttpClock::now() + std::chrono::seconds(11));
  world.pump();
  CHECK(world.session->is_over());
  CHECK(world.refusals("slow") == 1);
}

TEST_CASE("http2: a stop answers what is in progress") {
  Http2World world;
  const std::int32_t id = world.send("GET", "/a");
  bool is_told = false;
  world.given[0].reply.on_stop([&] { is_told = true; });
  world.session->drain();
  world.talk();
  CHECK(is_told);
  CHECK(world.has_goaway);
  CHECK_FALSE(world.session->is_over());
  world.given[0].reply({.body = "last"});
  world.talk();
  CHECK(world.answers[id].body == "last");
  CHECK(world.session->is_over());
}

}  // namespace
}  // namespace fjord::gateway
