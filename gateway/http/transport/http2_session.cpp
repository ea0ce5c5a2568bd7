#include "http/transport/http2_session.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <nghttp2/nghttp2.h>
#include <utility>

#include "fjord/common/check.h"
#include "http/answers.h"
#include "http/transport/request_check.h"

namespace fjord::gateway {
namespace {

constexpr std::uint32_t kStreamWindow = 1 << 20;
constexpr std::int32_t kConnectionWindow = 16 << 20;
/// More than the 16 continuation frames that a header of 256 KiB takes.
constexpr std::size_t kContinuationsMax = 24;
constexpr std::size_t kSettingsMax = 32;
constexpr std::size_t kAcksWaitingMax = 1000;
/// Limits of frames that bring no request: frames_max at once, per_second more each second, and more for each request
/// and each frame of data, as below.
constexpr FrameBudget::Limits kIdleFrames{.frames_max = 2000, .per_second = 100};
constexpr double kIdleFramesPerRequest = 8;
constexpr double kIdleFramesPerData = 4;
/// Limits of requests that the client resets.
constexpr FrameBudget::Limits kResets{.frames_max = 1000, .per_second = 33};
constexpr auto kCheckInterval = std::chrono::seconds(1);
/// For this long a client may go on sending a request after its answer.
constexpr auto kStreamLingerTime = std::chrono::seconds(5);
constexpr std::size_t kBodyRate = 16 << 10;
constexpr std::size_t kTakenBytesMin = 64 << 10;
constexpr std::size_t kFrameHeaderBytes = 9;

std::string_view view_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// nghttp2 does not change what it is given.
std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
}

}  // namespace

bool FrameBudget::take() {
  const auto now = HttpClock::now();
  const std::chrono::duration<double> passed = now - at_;
  at_ = now;
  left_ = std::min(limits_.frames_max, left_ + passed.count() * limits_.per_second) - 1;
  return left_ > 0;
}

void FrameBudget::add(double frames) { left_ = std::min(limits_.frames_max, left_ + frames); }

struct Http2Session::Stream {
  Stream(HttpServer& server, std::int32_t number) : id(number), progress(server), held(server) {}

  const std::int32_t id;
  RequestInProgress progress;
  HeldBytes held;
  HttpRequest request;
  std::string authority;
  std::size_t header_bytes = 0;
  std::size_t headers = 0;  ///< Those that have arrived, without the pseudo-headers.
  HttpClock::time_point begun = HttpClock::now();
  bool has_headers = false;  ///< All headers have arrived.
  bool is_refused = false;   ///< Bytes that arrive are dropped.
  bool is_submitted = false;
  std::shared_ptr<Exchange> exchange;
  bool is_whole = false;  ///< The whole answer was put into frames.
  std::size_t taken_at_check = 0;
  HttpClock::time_point taken_since = HttpClock::now();
};

/// nghttp2's callbacks.
struct Http2Session::Callbacks {
  static Http2Session& of(void* user) { return *static_cast<Http2Session*>(user); }

  static int on_begin_headers(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    return of(user).begin_headers(frame->hd.stream_id);
  }

  static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t /*flags*/,
                       void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    return of(user).add_header(frame->hd.stream_id, view_of(name, name_size), view_of(value, value_size));
  }

  static int on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t id, const std::uint8_t* data,
                     std::size_t size, void* user) {
    return of(user).add_body(id, view_of(data, size));
  }

  static int on_frame(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    Http2Session& self = of(user);
    const bool is_end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    const bool brings = frame->hd.type == NGHTTP2_HEADERS || (frame->hd.type == NGHTTP2_DATA && frame->hd.length > 0);
    if (frame->hd.type == NGHTTP2_RST_STREAM && !self.resets_.take())
      self.break_off(NGHTTP2_ENHANCE_YOUR_CALM, "flood");
    if (!brings && !is_end) self.count_idle_frame();
    if (frame->hd.type == NGHTTP2_HEADERS) {
      if (Stream* stream = self.find(frame->hd.stream_id)) stream->has_headers = true;
    }
    const bool is_request = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (is_request && is_end) self.end_request(frame->hd.stream_id);
    return 0;
  }

  static int on_close(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t /*error*/, void* user) {
    of(user).end_stream(id);
    return 0;
  }

  /// Called for a frame that is invalid in its stream: nghttp2 resets the stream.
  static int on_invalid(nghttp2_session* /*session*/, const nghttp2_frame* /*frame*/, int /*error*/, void* user) {
    of(user).count_idle_frame();
    return 0;
  }

  /// The data goes from the answer to what is produced, and not through nghttp2.
  static ssize_t read(nghttp2_session* /*session*/, std::int32_t /*id*/, std::uint8_t* /*to*/, std::size_t size,
                      std::uint32_t* flags, nghttp2_data_source* source, void* user) {
    return of(user).read_body(*static_cast<Stream*>(source->ptr), size, flags);
  }

  static int on_send_data(nghttp2_session* /*session*/, nghttp2_frame* /*frame*/, const std::uint8_t* header,
                          std::size_t size, nghttp2_data_source* /*source*/, void* user) {
    return of(user).end_frame(header, size);
  }
};

Http2Session::Http2Session(HttpServer& server, SessionHost& host)
    : server_(server), host_(host), idle_frames_(kIdleFrames), resets_(kResets) {
  nghttp2_session_callbacks* callbacks = nullptr;
  FJORD_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::on_close);
  nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, Callbacks::on_invalid);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, Callbacks::on_send_data);
  nghttp2_option* option = nullptr;
  FJORD_CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_max_continuations(option, kContinuationsMax);
  nghttp2_option_set_max_settings(option, kSettingsMax);
  nghttp2_option_set_max_outbound_ack(option, kAcksWaitingMax);
  // These limits are higher than those of this session, which therefore come first and count floods.
  nghttp2_option_set_stream_reset_rate_limit(option, 2000, 66);
  // Closed streams would be needed for priorities only.
  nghttp2_option_set_no_closed_streams(option, 1);
  FJORD_CHECK(nghttp2_session_server_new2(&session_, callbacks, this, option) == 0);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, static_cast<std::uint32_t>(server_.options().streams_max)},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(server_.options().header_bytes_max)}};
  FJORD_CHECK(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings)) == 0);
  FJORD_CHECK(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) == 0);
}

Http2Session::~Http2Session() { nghttp2_session_del(session_); }

Http2Session::Stream* Http2Session::find(std::int32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

void Http2Session::count_idle_frame() {
  if (!idle_frames_.take()) break_off(NGHTTP2_ENHANCE_YOUR_CALM, "flood");
}

void Http2Session::break_off(std::uint32_t error, std::string_view reason) {
  if (std::exchange(is_broken_, true)) return;
  server_.note_refusal(reason);
  nghttp2_session_terminate_session(session_, error);
}

int Http2Session::begin_headers(std::int32_t id) {
  if (is_broken_) return 0;
  idle_frames_.add(kIdleFramesPerRequest);
  std::erase_if(left_, [](const std::weak_ptr<Exchange>& one) { return one.expired(); });
  // Requests that were reset still cost something until their handlers have ended, so they count, too.
  if (left_.size() >= static_cast<std::size_t>(server_.options().streams_max)) {
    server_.note_refusal("flood");
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
    return 0;
  }
  auto stream = std::make_unique<Stream>(server_, id);
  stream->request.request_id = server_.new_request_id();
  stream->request.client = host_.client();
  if (streams_.empty()) next_check_ = stream->begun + kCheckInterval;
  streams_.emplace(id, std::move(stream));
  return 0;
}

int Http2Session::add_header(std::int32_t id, std::string_view name, std::string_view value) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->is_refused) return 0;
  constexpr std::size_t kOverhead = 32;
  stream->header_bytes += name.size() + value.size() + kOverhead;
  if (stream->header_bytes > server_.options().header_bytes_max) {
    stream->is_refused = true;
    refuse(*stream, 431, fmt::format("the header has more than {} bytes", server_.options().header_bytes_max));
    return 0;
  }
  if (!name.starts_with(':') && ++stream->headers > server_.options().headers_max) {
    refuse(*stream, 431, fmt::format("the request has more than {} headers", server_.options().headers_max));
    return 0;
  }
  if (name == ":method") {
    stream->request.method = value;
  } else if (name == ":path") {
    stream->request.target = value;
  } else if (name == ":authority") {
    stream->authority = value;
  } else if (!name.starts_with(':')) {
    fjord::gateway::add_header(stream->request.headers, name, value);
  }
  return 0;
}

int Http2Session::add_body(std::int32_t id, std::string_view bytes) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->is_refused || stream->exchange != nullptr) return 0;
  std::string& body = stream->request.body;
  if (body.size() + bytes.size() > server_.options().body_bytes_max) {
    refuse(*stream, 413, fmt::format("the body has more than {} bytes", server_.options().body_bytes_max));
  } else if (!stream->held.grow_to(body.size() + bytes.size())) {
    body = {};
    stream->held.set(0);
    stream->is_refused = true;
    stream->exchange = std::make_shared<Exchange>(server_, host_.weak_host(), std::move(stream->request), id);
    stream->exchange->refuse_busy("too many bytes of requests wait; try again later");
  } else {
    body.append(bytes);
  }
  return 0;
}

void Http2Session::refuse(Stream& stream, unsigned status, std::string_view message) {
  server_.note_refusal(status == 408 ? "slow" : "malformed");
  stream.is_refused = true;
  stream.request.body = {};
  stream.held.set(0);
  stream.exchange = std::make_shared<Exchange>(server_, host_.weak_host(), std::move(stream.request), stream.id);
  stream.exchange->set_begun(stream.begun);
  stream.exchange->answer(message_answer(stream.exchange->request(), status, message));
}

void Http2Session::end_request(std::int32_t id) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->exchange != nullptr) return;
  start(*stream);
}

void Http2Session::start(Stream& stream) {
  HttpRequest& request = stream.request;
  std::string_view host = request.header("host");
  const bool is_same_host = host.empty() || stream.authority.empty() || host == stream.authority;
  if (host.empty()) host = stream.authority;
  if (!is_same_host || !is_host(host)) return refuse(stream, 400, "malformed request: expected one host in :authority");
  if (request.header("host").empty()) fjord::gateway::add_header(request.headers, "host", stream.authority);
  if (!names_host(request.target, request.header("host"))) {
    return refuse(stream, 400, "malformed request: :path names another host than :authority");
  }
  if (const Status status = to_path(request.target); !status) {
    return refuse(stream, 400, "malformed request: " + status.message());
  }
  stream.exchange = std::make_shared<Exchange>(server_, host_.weak_host(), std::move(request), stream.id);
  stream.exchange->set_begun(stream.begun);
  stream.held.set(0);
  const auto exchange = stream.exchange;
  exchange->run();
  if (is_draining_) exchange->stop();
}

void Http2Session::receive(std::string_view bytes) {
  if (is_broken_) return;
  const ssize_t used =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  // nghttp2 has its own limits of floods, which end here. It answers other protocol errors with GOAWAY itself.
  if (used < 0)
    break_off(used == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR,
              used == NGHTTP2_ERR_FLOODED ? "flood" : "malformed");
}

void Http2Session::receive_end() {
  has_ended_ = true;
  std::vector<std::int32_t> incomplete;
  for (const auto& [id, stream] : streams_) {
    if (stream->exchange != nullptr) {
      stream->exchange->leave();
    } else {
      incomplete.push_back(id);
    }
  }
  for (const std::int32_t id : incomplete) end_stream(id);
}

void Http2Session::answer_changed(Exchange& exchange) {
  Stream* stream = find(exchange.stream());
  if (stream == nullptr || stream->exchange.get() != &exchange || !exchange.is_answered()) return;
  if (!std::exchange(stream->is_submitted, true)) return submit(*stream);
  nghttp2_session_resume_data(session_, stream->id);
}

void Http2Session::submit(Stream& stream) {
  const Exchange& exchange = *stream.exchange;
  const HttpAnswer& head = exchange.head();
  const std::string status = std::to_string(head.status);
  const std::string retry_after = std::to_string(head.retry_after_seconds);
  const std::string length = std::to_string(exchange.length());
  std::vector<HttpHeader> further;
  for (const HttpHeader& one : head.headers) fjord::gateway::add_header(further, one.name, one.value);
  std::vector<nghttp2_nv> values;
  values.reserve(9 + further.size());
  // The names are literals, or last until the call below has copied them.
  const auto add = [&values](std::string_view name, std::string_view value, int flags = NGHTTP2_NV_FLAG_NO_COPY_NAME) {
    values.push_back({bytes_of(name), bytes_of(value), name.size(), value.size(), static_cast<std::uint8_t>(flags)});
  };
  add(":status", status);
  add("date", http_date());
  // Each response has another id, so it costs both sides less to leave it out of the table of headers.
  add("x-request-id", exchange.request().request_id, NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_INDEX);
  if (!head.allow.empty()) add("allow", head.allow);
  if (head.retry_after_seconds > 0) add("retry-after", retry_after);
  const bool may_have_body = head.status != 204 && head.status != 304;
  if (head.status != 204) add("content-type", head.content_type);
  for (const HttpHeader& one : further) add(one.name, one.value, NGHTTP2_NV_FLAG_NONE);
  if (exchange.is_compressed()) {
    add("content-encoding", "gzip");
    add("vary", "accept-encoding");
  }
  if (may_have_body && exchange.has_length()) add("content-length", length);
  nghttp2_data_provider source{};
  source.source.ptr = &stream;
  source.read_callback = Callbacks::read;
  nghttp2_submit_response(session_, stream.id, values.data(), values.size(), &source);
}

std::int64_t Http2Session::read_body(Stream& stream, std::size_t bytes_max, std::uint32_t* flags) {
  std::string& out = *produced_;
  const std::size_t before = out.size();
  out.append(kFrameHeaderBytes, '\0');
  const Exchange::Body state = stream.exchange->take(out, bytes_max);
  const std::size_t bytes = out.size() - before - kFrameHeaderBytes;
  if (bytes > 0) idle_frames_.add(kIdleFramesPerData);
  const bool is_deferred = bytes == 0 && state != Exchange::Body::Over;
  if (is_deferred || state == Exchange::Body::Cut) {
    out.resize(before);
    return state == Exchange::Body::Cut ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : NGHTTP2_ERR_DEFERRED;
  }
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (state == Exchange::Body::Over) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    stream.is_whole = true;
    stream.taken_since = HttpClock::now();
  }
  return static_cast<std::int64_t>(bytes);
}

int Http2Session::end_frame(const std::uint8_t* header, std::size_t bytes) {
  std::string& out = *produced_;
  FJORD_CHECK(out.size() >= bytes + kFrameHeaderBytes);
  std::memcpy(out.data() + out.size() - bytes - kFrameHeaderBytes, header, kFrameHeaderBytes);
  return out.size() < produced_max_ ? 0 : NGHTTP2_ERR_PAUSE;
}

void Http2Session::end_stream(std::int32_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::unique_ptr<Stream> stream = std::move(found->second);
  streams_.erase(found);
  if (streams_.empty()) {
    next_check_ = HttpClock::time_point::max();
    idle_since_ = HttpClock::now();
  }
  if (stream->exchange == nullptr) return;
  if (!stream->is_whole) {
    left_.push_back(stream->exchange);
    stream->exchange->leave();
  }
  finished_.push_back(stream->exchange);
}

void Http2Session::produce(std::string& out, std::size_t bytes_max) {
  produced_ = &out;
  produced_max_ = bytes_max;
  while (out.size() < bytes_max) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size < 0) is_broken_ = true;
    if (size <= 0) return;
    out.append(view_of(data, static_cast<std::size_t>(size)));
  }
}

void Http2Session::flushed() {
  for (const auto& exchange : std::exchange(finished_, {})) exchange->finish("HTTP/2");
}

bool Http2Session::is_over() const {
  if (is_broken_ || ((has_ended_ || is_draining_) && streams_.empty())) return true;
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

HttpClock::time_point Http2Session::deadline() const {
  if (is_broken_) return HttpClock::time_point::max();
  return streams_.empty() ? idle_since_ + server_.options().idle_timeout : next_check_;
}

void Http2Session::check_stream(Stream& stream, HttpClock::time_point now, std::vector<std::int32_t>& slow) {
  const HttpGatewayOptions& options = server_.options();
  if (stream.exchange == nullptr) {
    const auto allowed = stream.has_headers
                             ? options.body_timeout + std::chrono::seconds(stream.request.body.size() / kBodyRate)
                             : options.head_timeout;
    if (now - stream.begun < allowed) return;
    // A stream without its whole header cannot get an answer.
    if (!stream.has_headers) return break_off(NGHTTP2_ENHANCE_YOUR_CALM, "slow");
    return refuse(stream, 408, "the request did not arrive in time");
  }
  if (stream.is_whole) {
    // The rest is not needed. Some clients take an early reset for a failure of the answer.
    if (now - stream.taken_since >= kStreamLingerTime) {
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream.id, NGHTTP2_NO_ERROR);
    }
    return;
  }
  const std::size_t taken = stream.exchange->bytes_taken();
  const bool waits = stream.exchange->is_answered() && stream.exchange->body_state() == Exchange::Body::More;
  if (!waits || taken - stream.taken_at_check >= kTakenBytesMin) {
    stream.taken_at_check = taken;
    stream.taken_since = now;
  } else if (now - stream.taken_since >= options.write_timeout) {
    slow.push_back(stream.id);
  }
}

void Http2Session::on_time(HttpClock::time_point now) {
  if (now < deadline()) return;
  if (streams_.empty()) {
    idle_since_ = now;
    is_draining_ = true;
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                          NGHTTP2_NO_ERROR, nullptr, 0);
    return;
  }
  next_check_ = now + kCheckInterval;
  std::vector<std::int32_t> slow;
  for (const auto& [id, stream] : streams_) check_stream(*stream, now, slow);
  for (const std::int32_t id : slow) {
    server_.note_refusal("slow");
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  }
}

void Http2Session::drain() {
  is_draining_ = true;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                        NGHTTP2_NO_ERROR, nullptr, 0);
  for (const auto& [id, stream] : streams_) {
    if (stream->exchange != nullptr) stream->exchange->stop();
  }
}

void Http2Session::abandon() {
  is_broken_ = true;
  for (const auto& [id, stream] : std::exchange(streams_, {})) {
    if (stream->exchange == nullptr) continue;
    stream->exchange->leave();
    finished_.push_back(stream->exchange);
  }
  flushed();
}

}  // namespace fjord::gateway
