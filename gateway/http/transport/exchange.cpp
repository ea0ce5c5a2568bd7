#include "http/transport/exchange.h"

#include <algorithm>
#include <utility>

#include "http/answers.h"

namespace fjord::gateway {
namespace {

/// A streamed answer gets its next piece only while at most this many bytes wait.
constexpr std::size_t kPiecesWaitingMax = 256 << 10;
/// Smaller bodies fit in one packet.
constexpr std::size_t kCompressedBytesMin = 1400;
/// Larger bodies are compressed while they are sent.
constexpr std::size_t kCompressedAtOnceMax = 64 << 10;
/// Larger compressed bodies are not unpacked on a thread of the sockets, because they may become much larger.
constexpr std::size_t kUnpackedAtOnceMax = 16 << 10;
constexpr auto kBusyDelay = std::chrono::milliseconds(20);

bool has_header(const HttpAnswer& head, std::string_view name) {
  return std::any_of(head.headers.begin(), head.headers.end(),
                     [&](const HttpHeader& header) { return header.name == name; });
}

bool is_compressible(const HttpAnswer& head) {
  const auto is_encoding = [](const HttpHeader& header) { return header.name == "Content-Encoding"; };
  if (std::any_of(head.headers.begin(), head.headers.end(), is_encoding)) return false;
  const std::string_view content_type = head.content_type;
  return content_type.starts_with("application/json") || content_type.starts_with("text/") ||
         content_type.starts_with("application/javascript") || content_type.starts_with("application/yaml") ||
         content_type.starts_with("image/svg");
}

}  // namespace

Exchange::Exchange(HttpServer& server, std::weak_ptr<ExchangeHost> host, HttpRequest request, int stream)
    : server_(server),
      host_(std::move(host)),
      request_(std::move(request)),
      stream_(stream),
      progress_(server),
      held_(server),
      answer_bytes_(server) {}

Exchange::~Exchange() { release_locked(); }

void Exchange::release_locked() {
  if (std::exchange(is_admitted_, false)) server_.end_admitted();
  stream_share_.reset();
}

void Exchange::run() {
  if (const auto refused = server_.host_rules().check(request_)) {
    return answer(message_answer(request_, refused->status, refused->message));
  }
  if (!held_.grow_to(request_.body.size()) || !server_.admit()) {
    return refuse_busy("too many requests are in progress; try again later");
  }
  {
    const std::lock_guard lock(mutex_);
    is_admitted_ = true;
  }
  if (request_.header("content-encoding").empty() || request_.body.size() <= kUnpackedAtOnceMax) {
    if (unpack()) handle();
    return;
  }
  server_.run_aside([self = shared_from_this()] {
    if (self->unpack()) self->handle();
  });
}

bool Exchange::unpack() {
  const std::string_view encoding = request_.header("content-encoding");
  if (encoding.empty() || is_same_word(encoding, "identity")) return true;
  if (!is_same_word(encoding, "gzip") && !is_same_word(encoding, "x-gzip")) {
    answer(message_answer(request_, 415, "Content-Encoding: expected gzip"));
    return false;
  }
  const std::size_t packed_bytes = request_.body.size();
  auto text = gunzip(request_.body, server_.options().body_bytes_max,
                     [&](std::size_t bytes) { return held_.grow_to(packed_bytes + bytes); });
  if (text) {
    request_.body = std::move(*text);
    held_.set(request_.body.size());
    return true;
  }
  const StatusCode code = text.error().code();
  if (code == StatusCode::Busy) {
    refuse_busy(text.error().message());
  } else {
    answer(error_answer(request_, text.error()));
  }
  return false;
}

void Exchange::handle() {
  server_.handlers().handle(request_, HttpReply(shared_from_this()));
  request_.body = {};
}

void Exchange::begin_locked(HttpAnswer& head, bool is_whole) {
  is_answered_ = true;
  is_whole_ = is_whole;
  held_.set(0);
  std::string body = std::move(head.body);
  head_ = std::move(head);
  has_length_ = is_whole;
  length_ = body.size();
  // Answers have documents in them, which no cache may keep; and no text of theirs may run as something else.
  if (!has_header(head_, "Cache-Control")) head_.headers.push_back({"Cache-Control", "no-store"});
  if (!has_header(head_, "X-Content-Type-Options")) head_.headers.push_back({"X-Content-Type-Options", "nosniff"});
  const bool has_body = request_.method != "HEAD" && head_.status != 204 && head_.status != 304;
  const bool is_large = !is_whole || body.size() >= kCompressedBytesMin;
  if (has_body && is_large && is_compressible(head_) && accepts_gzip(request_.header("accept-encoding"))) {
    if (is_whole && body.size() <= kCompressedAtOnceMax) {
      std::string compressed = gzip_text(body);
      is_compressed_ = !compressed.empty();
      if (is_compressed_) body = std::move(compressed);
      length_ = body.size();
    } else if (auto gzip = GzipPieces::open()) {
      body_.compress_with(std::move(gzip));
      is_compressed_ = true;
      has_length_ = false;
    }
  }
  if (has_body) body_.add(std::move(body));
  if (is_whole) body_.end();
  answer_bytes_.set(body_.waiting_bytes());
}

void Exchange::answer(HttpAnswer answer) {
  std::function<void()> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (is_answered_) return;
    begin_locked(answer, true);
    dropped = std::exchange(stop_, nullptr);
    release_locked();
  }
  changed();
}

void Exchange::begin(HttpAnswer head) {
  {
    const std::lock_guard lock(mutex_);
    if (is_answered_) return;
    begin_locked(head, false);
  }
  changed();
}

void Exchange::write(std::string piece, std::function<void(bool is_open)> then) {
  const auto host = host_.lock();
  {
    const std::lock_guard lock(mutex_);
    if (host != nullptr && !is_away_ && !is_whole_ && !is_cut_) {
      body_.add(std::move(piece));
      answer_bytes_.set(body_.waiting_bytes());
      std::swap(then_, then);
    }
  }
  if (then) then(false);
  if (host != nullptr) host->answer_changed(shared_from_this());
}

void Exchange::end() {
  std::function<void()> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (is_whole_ || is_cut_) return;
    is_whole_ = true;
    body_.end();
    dropped = std::exchange(stop_, nullptr);
    release_locked();
  }
  changed();
}

void Exchange::cut() {
  std::function<void()> dropped;
  {
    const std::lock_guard lock(mutex_);
    if (is_whole_ || is_cut_) return;
    if (is_answered_) {
      is_cut_ = true;
    } else {
      HttpAnswer answer = message_answer(request_, 500, "the request was not answered");
      begin_locked(answer, true);
    }
    dropped = std::exchange(stop_, nullptr);
    release_locked();
  }
  changed();
}

void Exchange::on_stop(std::function<void()> stop) {
  {
    const std::lock_guard lock(mutex_);
    if (is_whole_ || is_cut_) return;
    if (!is_stopped_) {
      stop_ = std::move(stop);
      return;
    }
  }
  stop();
}

bool Exchange::take_stream() {
  auto share = server_.take_stream(request_);
  if (share == nullptr) return false;
  const std::lock_guard lock(mutex_);
  if (!is_whole_ && !is_cut_) stream_share_ = std::move(share);
  return true;
}

void Exchange::refuse_busy(const std::string& message) {
  const auto host = host_.lock();
  if (host == nullptr) return;
  host->later(kBusyDelay,
              [self = shared_from_this(), message] { self->answer(message_answer(self->request_, 429, message)); });
}

void Exchange::changed() {
  if (const auto host = host_.lock()) host->answer_changed(shared_from_this());
}

bool Exchange::is_answered() const {
  const std::lock_guard lock(mutex_);
  return is_answered_;
}

Exchange::Body Exchange::state_locked() const {
  if (!body_.is_empty()) return Body::More;
  if (is_cut_) return Body::Cut;
  return body_.is_over() ? Body::Over : Body::Waiting;
}

Exchange::Body Exchange::body_state() const {
  const std::lock_guard lock(mutex_);
  return state_locked();
}

Exchange::Body Exchange::take(std::string& to, std::size_t bytes_max) {
  std::function<void(bool)> then;
  Body state = Body::Waiting;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t before = to.size();
    body_.take(to, bytes_max);
    bytes_taken_ += to.size() - before;
    answer_bytes_.set(body_.waiting_bytes());
    if (then_ && body_.waiting_bytes() <= kPiecesWaitingMax) then = std::exchange(then_, nullptr);
    state = state_locked();
  }
  if (then) then(true);
  return state;
}

void Exchange::stop() {
  std::function<void()> stop;
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    stop = std::exchange(stop_, nullptr);
  }
  if (stop) stop();
}

void Exchange::leave() {
  is_away_ = true;
  std::function<void(bool)> then;
  {
    const std::lock_guard lock(mutex_);
    if (!is_whole_) body_.clear();
    answer_bytes_.set(body_.waiting_bytes());
    then = std::exchange(then_, nullptr);
  }
  if (then) then(false);
  stop();
}

void Exchange::finish(std::string_view protocol) {
  if (std::exchange(is_finished_, true)) return;
  // 499 if the client went away before there was an answer.
  server_.note({.request = request_,
                .status = is_answered() ? head_.status : 499,
                .bytes = bytes_taken_,
                .took = HttpClock::now() - begun_,
                .protocol = protocol,
                .is_away = is_away_});
}

}  // namespace fjord::gateway
