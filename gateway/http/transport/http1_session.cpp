#include "http/transport/http1_session.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "http/answers.h"
#include "http/transport/request_check.h"

namespace fjord::gateway {
namespace {

namespace beast_http = boost::beast::http;

/// Most bytes of later requests that are read while one request is answered.
constexpr std::size_t kPipelinedBytesMax = 64 << 10;
constexpr std::size_t kBodyBytesPerSecondMin = 16 << 10;
constexpr std::size_t kKeptCapacity = 4 << 10;

/// Returns how many bytes the empty lines at the beginning take.
std::size_t empty_lines_bytes(std::string_view text) {
  std::size_t bytes = 0;
  while (text.substr(bytes).starts_with("\r\n")) bytes += 2;
  return bytes;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view view_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Http1Session::Http1Session(HttpServer& server, SessionHost& host)
    : server_(server), host_(host), held_(std::make_unique<HeldBytes>(server)) {}

Http1Session::~Http1Session() = default;

void Http1Session::refuse_all(unsigned status, std::string_view message) {
  request_.request_id = server_.new_request_id();
  refuse(status, message);
}

void Http1Session::receive(std::string_view bytes) {
  input_.append(bytes);
  parse();
}

void Http1Session::receive_end() {
  has_ended_ = true;
  keep_alive_ = false;
  if (exchange_ != nullptr) {
    exchange_->leave();
  } else {
    step_ = Step::Over;
  }
}

void Http1Session::parse() {
  bool goes_on = true;
  while (goes_on && !input_.empty()) {
    if (step_ == Step::Idle || step_ == Step::Head) {
      goes_on = parse_head();
    } else if (step_ == Step::Body) {
      goes_on = parse_body();
    } else {
      goes_on = false;
    }
  }
  if (input_.empty() && input_.capacity() > kKeptCapacity) input_ = {};
}

bool Http1Session::parse_head() {
  if (step_ == Step::Idle) {
    step_ = Step::Head;
    step_begun_ = HttpClock::now();
    checked_ = 0;
    lines_ = 0;
    request_ = {};
    request_.request_id = server_.new_request_id();
    request_.client = host_.client();
    wire_bytes_ = 0;
  }
  if (checked_ == 0) input_.erase(0, empty_lines_bytes(input_));
  if (input_.empty() || input_ == "\r") return false;
  if (!is_letter(input_.front())) {
    refuse(400, "malformed HTTP request: no method");
    return false;
  }
  const std::size_t end = input_.find("\r\n\r\n", checked_ > 3 ? checked_ - 3 : 0);
  const std::size_t head_size = end == std::string::npos ? input_.size() : end + 4;
  if (!check_head(head_size)) return false;
  if (end == std::string::npos) return false;
  begin_body();
  return step_ == Step::Body;
}

bool Http1Session::check_head(std::size_t head_size) {
  const std::string_view head = std::string_view(input_).substr(0, head_size);
  const Status status = check_head_bytes(head, checked_);
  lines_ +=
      static_cast<std::size_t>(std::count(head.begin() + static_cast<std::ptrdiff_t>(checked_), head.end(), '\n'));
  checked_ = head_size;
  const HttpGatewayOptions& options = server_.options();
  if (!status) {
    refuse(400, "malformed HTTP request: " + status.message());
  } else if (head_size > options.header_bytes_max) {
    refuse(431, fmt::format("the header has more than {} bytes", options.header_bytes_max));
  } else if (lines_ > options.headers_max + 1 + (head.ends_with("\r\n\r\n") ? 1 : 0)) {
    refuse(431, fmt::format("the request has more than {} headers", options.headers_max));
  } else {
    return true;
  }
  return false;
}

void Http1Session::begin_body() {
  progress_.emplace(server_);
  step_ = Step::Body;
  step_begun_ = HttpClock::now();
  const Status status = read_head();
  input_.erase(0, checked_);
  if (!status) {
    const unsigned code = status.code() == StatusCode::NotImplemented ? 417
                          : status.code() == StatusCode::TooLarge     ? 413
                                                                      : 400;
    return refuse(code, (code == 400 ? "malformed HTTP request: " : "") + status.message());
  }
  goes_on_ = goes_on_ && !body_.is_done() && input_.empty();
  if (body_.is_done()) start_exchange();
}

Status Http1Session::read_head() {
  beast_http::request_parser<beast_http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(server_.options().header_bytes_max + 1));
  parser.body_limit(boost::none);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(input_.data(), checked_), error);
  const auto& head = parser.get();
  request_.method = std::string(view_of(head.method_string()));
  request_.target = std::string(view_of(head.target()));
  if (error) return {StatusCode::InvalidArgument, error.message()};
  if (!parser.is_header_done()) return {StatusCode::InvalidArgument, "no header"};
  is_http10_ = head.version() == 10;
  keep_alive_ = head.keep_alive() && !has_ended_ && !is_draining_;
  if (head.version() != 11 && !is_http10_) return {StatusCode::InvalidArgument, "the version is not 1.0 or 1.1"};
  const std::string target = request_.target;
  FJORD_TRY(to_path(request_.target));
  for (const auto& field : head) add_header(request_.headers, view_of(field.name_string()), view_of(field.value()));
  FJORD_TRY(
      read_length(head.count(beast_http::field::content_length), head.count(beast_http::field::transfer_encoding)));
  const std::size_t hosts = head.count(beast_http::field::host);
  if (hosts > 1 || (hosts == 0 && !is_http10_) || (hosts == 1 && !is_host(request_.header("host")))) {
    return {StatusCode::InvalidArgument, "expected one header Host with a name and perhaps a port"};
  }
  if (hosts == 1 && !names_host(target, request_.header("host"))) {
    return {StatusCode::InvalidArgument, "the target names another host than the header Host"};
  }
  const std::string_view expected = request_.header("expect");
  goes_on_ = !expected.empty() && !is_http10_;
  if (expected.empty() || is_same_word(expected, "100-continue")) return Status::ok();
  return {StatusCode::NotImplemented, "Expect: only 100-continue is known"};
}

/// Refuses two lengths, or a length beside chunks: a proxy may have read another request than this server.
Status Http1Session::read_length(std::size_t lengths, std::size_t codings) {
  if (lengths > 1 || (lengths > 0 && codings > 0)) {
    return {StatusCode::InvalidArgument, "more than one length of the body"};
  }
  if (codings > 0) {
    body_ = BodyReader::chunked();
    if (!is_http10_ && is_same_word(request_.header("transfer-encoding"), "chunked")) return Status::ok();
    return {StatusCode::InvalidArgument, "Transfer-Encoding: expected chunked"};
  }
  const std::string_view text = request_.header("content-length");
  std::uint64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (lengths > 0 && (error != std::errc() || end != text.data() + text.size())) {
    return {StatusCode::InvalidArgument, "the length of the body is not a number"};
  }
  body_ = BodyReader::of_length(length);
  if (length > server_.options().body_bytes_max) {
    return {StatusCode::TooLarge, fmt::format("the body has more than {} bytes", server_.options().body_bytes_max)};
  }
  return Status::ok();
}

bool Http1Session::parse_body() {
  const auto used = body_.read(input_, request_.body, server_.options().body_bytes_max);
  if (!used) {
    const bool is_large = used.error().code() == StatusCode::TooLarge;
    refuse(is_large ? 413 : 400, (is_large ? "" : "malformed HTTP request: ") + used.error().message());
    return false;
  }
  input_.erase(0, *used);
  wire_bytes_ += *used;
  if (!held_->grow_to(request_.body.size())) {
    keep_alive_ = false;
    request_.body = {};
    held_->set(0);
    exchange_ = std::make_shared<Exchange>(server_, host_.weak_host(), std::move(request_));
    step_ = Step::Answer;
    has_written_head_ = false;
    exchange_->refuse_busy("too many bytes of requests wait; try again later");
  } else if (body_.is_done()) {
    start_exchange();
  }
  return false;
}

void Http1Session::refuse(unsigned status, std::string_view message) {
  keep_alive_ = false;
  server_.note_refusal(status == 408 ? "slow" : status == 503 ? "full" : "malformed");
  request_.body = {};
  goes_on_ = false;
  exchange_ = std::make_shared<Exchange>(server_, host_.weak_host(), std::move(request_));
  progress_.reset();
  held_->set(0);
  step_ = Step::Answer;
  has_written_head_ = false;
  exchange_->answer(message_answer(exchange_->request(), status, message));
}

void Http1Session::start_exchange() {
  goes_on_ = false;
  exchange_ = std::make_shared<Exchange>(server_, host_.weak_host(), std::move(request_));
  exchange_->set_begun(step_begun_);
  progress_.reset();
  held_->set(0);
  step_ = Step::Answer;
  has_written_head_ = false;
  exchange_->run();
  if (is_draining_) exchange_->stop();
}

void Http1Session::produce(std::string& out, std::size_t bytes_max) {
  if (std::exchange(goes_on_, false)) out += "HTTP/1.1 100 Continue\r\n\r\n";
  if (step_ != Step::Answer || !exchange_->is_answered()) return;
  if (!std::exchange(has_written_head_, true)) {
    is_chunked_ = !exchange_->has_length() && !is_http10_;
    if (!exchange_->has_length() && is_http10_) keep_alive_ = false;
    if (server_.is_ending()) keep_alive_ = false;
    write_head(out);
  }
  write_body(out, bytes_max);
}

void Http1Session::write_head(std::string& out) const {
  const HttpAnswer& head = exchange_->head();
  const auto reason = beast_http::obsolete_reason(static_cast<beast_http::status>(head.status));
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "HTTP/1.1 {} {}\r\nDate: {}\r\nX-Request-Id: {}\r\n", head.status, view_of(reason), http_date(),
                 exchange_->request().request_id);
  if (!head.allow.empty()) fmt::format_to(to, "Allow: {}\r\n", head.allow);
  if (head.retry_after_seconds > 0) fmt::format_to(to, "Retry-After: {}\r\n", head.retry_after_seconds);
  if (head.status != 204) fmt::format_to(to, "Content-Type: {}\r\n", head.content_type);
  for (const HttpHeader& one : head.headers) fmt::format_to(to, "{}: {}\r\n", one.name, one.value);
  if (exchange_->is_compressed()) out += "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n";
  if (!keep_alive_) out += "Connection: close\r\n";
  if (keep_alive_ && is_http10_) out += "Connection: keep-alive\r\n";
  const bool may_have_body = head.status != 204 && head.status != 304;
  if (may_have_body && exchange_->has_length()) fmt::format_to(to, "Content-Length: {}\r\n", exchange_->length());
  if (may_have_body && is_chunked_) out += "Transfer-Encoding: chunked\r\n";
  out += "\r\n";
}

void Http1Session::write_body(std::string& out, std::size_t bytes_max) {
  const bool is_bare = exchange_->request().method == "HEAD";
  Exchange::Body state = exchange_->body_state();
  std::string chunk;
  while (state == Exchange::Body::More && out.size() < bytes_max) {
    if (!is_chunked_) {
      state = exchange_->take(out, bytes_max - out.size());
      continue;
    }
    chunk.clear();
    state = exchange_->take(chunk, bytes_max);
    if (!chunk.empty() && !is_bare) fmt::format_to(std::back_inserter(out), "{:x}\r\n{}\r\n", chunk.size(), chunk);
  }
  if (state == Exchange::Body::More || state == Exchange::Body::Waiting) return;
  if (state == Exchange::Body::Cut) keep_alive_ = false;
  if (state == Exchange::Body::Over && is_chunked_ && !is_bare) out += "0\r\n\r\n";
  step_ = Step::Answered;
}

void Http1Session::flushed() {
  if (step_ != Step::Answered) return;
  exchange_->finish(is_http10_ ? "HTTP/1.0" : "HTTP/1.1");
  exchange_.reset();
  step_ = keep_alive_ && !server_.is_ending() ? Step::Idle : Step::Over;
  step_begun_ = HttpClock::now();
  if (step_ == Step::Idle) parse();
}

bool Http1Session::wants_input() const {
  if (has_ended_ || step_ == Step::Over) return false;
  return step_ == Step::Idle || step_ == Step::Head || step_ == Step::Body || input_.size() < kPipelinedBytesMax;
}

HttpClock::time_point Http1Session::deadline() const {
  const HttpGatewayOptions& options = server_.options();
  switch (step_) {
    case Step::Idle:
      return step_begun_ + options.idle_timeout;
    case Step::Head:
      return step_begun_ + options.head_timeout;
    case Step::Body:
      return step_begun_ + options.body_timeout + std::chrono::seconds(wire_bytes_ / kBodyBytesPerSecondMin);
    default:
      return HttpClock::time_point::max();
  }
}

void Http1Session::on_time(HttpClock::time_point now) {
  if (now < deadline()) return;
  if (step_ == Step::Idle) {
    step_ = Step::Over;
  } else {
    refuse(408, "the request did not arrive in time");
  }
}

void Http1Session::drain() {
  is_draining_ = true;
  keep_alive_ = false;
  if (exchange_ != nullptr) exchange_->stop();
  if (step_ == Step::Idle) step_ = Step::Over;
}

void Http1Session::abandon() {
  if (exchange_ != nullptr) {
    exchange_->leave();
    exchange_->finish(is_http10_ ? "HTTP/1.0" : "HTTP/1.1");
  }
  exchange_.reset();
  progress_.reset();
  held_->set(0);
  step_ = Step::Over;
}

}  // namespace fjord::gateway
