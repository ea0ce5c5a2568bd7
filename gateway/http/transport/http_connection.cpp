#include "http/transport/http_connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <utility>

#include "http/transport/http1_session.h"
#include "http/transport/http2_session.h"

namespace fjord::gateway {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::size_t kReadBytes = 64 << 10;
/// A connection lets others go first after this many reads, or after kSentAtOnce bytes.
constexpr int kReadsAtOnce = 4;
constexpr std::size_t kSentAtOnce = std::size_t{1} << 20;
constexpr std::size_t kOutBytes = 128 << 10;
constexpr std::size_t kSentBytesMin = 64 << 10;
/// Bounds for bytes that arrive after the end, which are read and dropped: a reset could overtake the answer.
constexpr std::size_t kLingerBytesMax = std::size_t{128} << 20;
constexpr auto kLingerTime = std::chrono::seconds(5);
constexpr std::size_t kKeptOutCapacity = 4 << 10;

/// Returns the address of the peer. Of an IPv6 address it is the network, as its other half is the client's choice.
std::string client_of(const tcp::socket& socket) {
  namespace ip = boost::asio::ip;
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return {};
  if (peer.address().is_v4()) return peer.address().to_string();
  if (peer.address().to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, peer.address().to_v6()).to_string();
  }
  ip::address_v6::bytes_type bytes = peer.address().to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  return ip::make_address_v6(bytes).to_string();
}

}  // namespace

HttpConnection::HttpConnection(tcp::socket socket, HttpServer& server, TlsContext* tls)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      server_(server),
      client_(client_of(socket_)),
      tls_(tls == nullptr ? nullptr : std::make_unique<TlsFilter>(*tls)) {}

HttpConnection::~HttpConnection() = default;

void HttpConnection::begin(bool is_refused) {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this(), is_refused] {
    self->run([&] {
      error_code ignored;
      self->socket_.set_option(tcp::no_delay(true), ignored);
      self->socket_.non_blocking(true, ignored);
      if (!is_refused) return;
      if (self->tls_ != nullptr) return self->close();
      self->open_http1()->refuse_all(503, "too many connections; try again later");
    });
  });
}

void HttpConnection::drain() {
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->run([&] {
      if (self->session_ == nullptr) return self->close();
      self->session_->drain();
    });
  });
}

void HttpConnection::abandon() { close(); }

void HttpConnection::answer_changed(std::shared_ptr<Exchange> exchange) {
  {
    const std::lock_guard lock(mutex_);
    if (changed_.empty() || changed_.back() != exchange) changed_.push_back(std::move(exchange));
    if (std::exchange(is_scheduled_, true)) return;
  }
  boost::asio::post(socket_.get_executor(), [self = shared_from_this()] { self->run([] {}); });
}

void HttpConnection::later(std::chrono::milliseconds after, std::function<void()> task) {
  const auto timer = std::make_shared<boost::asio::steady_timer>(socket_.get_executor(), after);
  timer->async_wait([timer, self = shared_from_this(), task = std::move(task)](const error_code& cancelled) {
    if (!cancelled) self->run(task);
  });
}

void HttpConnection::run(const std::function<void()>& step) {
  {
    const std::lock_guard lock(mutex_);
    is_scheduled_ = true;
  }
  if (!is_closed_) step();
  settle();
}

bool HttpConnection::deliver_answers() {
  std::vector<std::shared_ptr<Exchange>> changed;
  {
    const std::lock_guard lock(mutex_);
    changed.swap(changed_);
    if (changed.empty()) is_scheduled_ = false;
  }
  for (const auto& exchange : changed) {
    if (session_ != nullptr && !is_closed_) session_->answer_changed(*exchange);
  }
  return !changed.empty();
}

void HttpConnection::settle() {
  bool is_free = true;
  do {
    if (!is_closed_ && is_free) is_free = send();
  } while (deliver_answers());
  if (is_closed_) return;
  if (session_ != nullptr && !is_lingering_ && out_.empty() && session_->is_over()) begin_linger();
  if (is_closed_) return;
  wait_for_input();
  set_timer();
}

void HttpConnection::note_sent(std::size_t bytes) {
  sent_since_stuck_ += bytes;
  if (out_at_ != out_.size() && sent_since_stuck_ < kSentBytesMin) return;
  stuck_since_ = HttpClock::time_point::max();
  sent_since_stuck_ = 0;
}

bool HttpConnection::send() {
  if (is_lingering_) return true;
  if (is_waiting_for_output_) return false;
  std::size_t sent = 0;
  while (sent < kSentAtOnce) {
    if (out_at_ == out_.size()) {
      out_.clear();
      out_at_ = 0;
      if (tls_ == nullptr) {
        if (session_ != nullptr) session_->produce(out_, kOutBytes);
      } else {
        std::string plain;
        if (session_ != nullptr) session_->produce(plain, kOutBytes);
        tls_->send(plain);
        tls_->take_output(out_);
      }
      if (out_.empty()) {
        if (out_.capacity() > kKeptOutCapacity) out_ = {};
        if (session_ != nullptr) session_->flushed();
        return true;
      }
    }
    error_code error;
    const std::size_t bytes =
        socket_.write_some(boost::asio::buffer(out_.data() + out_at_, out_.size() - out_at_), error);
    if (error == boost::asio::error::would_block || error == boost::asio::error::try_again) {
      wait_for_output();
      return false;
    }
    if (error) {
      close();
      return false;
    }
    out_at_ += bytes;
    sent += bytes;
    note_sent(bytes);
  }
  // Lets other connections go first.
  wait_for_output();
  return false;
}

void HttpConnection::wait_for_output() {
  is_waiting_for_output_ = true;
  if (stuck_since_ == HttpClock::time_point::max()) stuck_since_ = HttpClock::now();
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](const error_code& error) {
    self->is_waiting_for_output_ = false;
    if (self->is_closed_) return;
    self->run([&] {
      if (error) self->close();
    });
  });
}

void HttpConnection::wait_for_input() {
  const bool is_wanted = !has_ended_ && (is_lingering_ || session_ == nullptr || session_->wants_input());
  if (is_waiting_for_input_ || !is_wanted) return;
  is_waiting_for_input_ = true;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const error_code& error) {
    self->is_waiting_for_input_ = false;
    if (self->is_closed_) return;
    self->run([&] {
      if (error) return self->close();
      self->receive();
    });
  });
}

void HttpConnection::receive() {
  thread_local std::array<char, kReadBytes> part;
  for (int i = 0; i < kReadsAtOnce && !is_closed_ && !has_ended_; ++i) {
    if (!is_lingering_ && session_ != nullptr && !session_->wants_input()) return;
    error_code error;
    const std::size_t bytes = socket_.read_some(boost::asio::buffer(part), error);
    if (error == boost::asio::error::would_block || error == boost::asio::error::try_again) return;
    if (error == boost::asio::error::eof) return on_end();
    if (error) return close();
    if (is_lingering_) {
      if (bytes >= linger_bytes_left_) return close();
      linger_bytes_left_ -= bytes;
    } else {
      take_bytes({part.data(), bytes});
    }
    if (bytes < part.size()) return;
  }
}

void HttpConnection::take_bytes(std::string_view bytes) {
  if (tls_ == nullptr) return take_plain(bytes);
  std::string plain;
  const bool is_sound = tls_->receive(bytes, plain);
  if (session_ == nullptr && tls_->is_ready() && tls_->is_http2())
    session_ = std::make_unique<Http2Session>(server_, *this);
  if (!plain.empty()) take_plain(plain);
  if (is_closed_) return;
  if (!is_sound) {
    send();  // Sends the TLS alert.
    if (session_ == nullptr) server_.note_refusal("malformed");
    return close();
  }
  if (tls_->has_ended()) on_end();
}

void HttpConnection::take_plain(std::string_view bytes) {
  if (session_ != nullptr) return session_->receive(bytes);
  first_.append(bytes);
  choose_session();
}

void HttpConnection::choose_session() {
  const std::size_t compared = std::min(first_.size(), kHttp2Preface.size());
  const bool may_be_http2 = std::string_view(first_).substr(0, compared) == kHttp2Preface.substr(0, compared);
  if (may_be_http2 && compared < kHttp2Preface.size()) return;
  if (may_be_http2) {
    session_ = std::make_unique<Http2Session>(server_, *this);
  } else {
    open_http1();
  }
  session_->receive(std::exchange(first_, {}));
}

Http1Session* HttpConnection::open_http1() {
  auto session = std::make_unique<Http1Session>(server_, *this);
  Http1Session* const opened = session.get();
  session_ = std::move(session);
  return opened;
}

void HttpConnection::on_end() {
  if (std::exchange(has_ended_, true)) return;
  if (session_ == nullptr || is_lingering_) return close();
  session_->receive_end();
}

void HttpConnection::begin_linger() {
  if (tls_ != nullptr) {
    tls_->send_end();
    if (!send()) return close();
  }
  is_lingering_ = true;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  session_->abandon();
  if (has_ended_) return close();
  linger_until_ = HttpClock::now() + kLingerTime;
  linger_bytes_left_ = kLingerBytesMax;
}

HttpClock::time_point HttpConnection::deadline() const {
  const HttpGatewayOptions& options = server_.options();
  if (is_lingering_) return linger_until_;
  const auto stuck = stuck_since_ == HttpClock::time_point::max() ? stuck_since_ : stuck_since_ + options.write_timeout;
  return std::min(stuck, session_ == nullptr ? begun_ + options.head_timeout : session_->deadline());
}

void HttpConnection::set_timer() {
  const auto wanted = deadline();
  if (wanted >= timer_at_ || wanted == HttpClock::time_point::max()) return;
  timer_at_ = wanted;
  timer_.expires_at(wanted);
  timer_.async_wait([self = shared_from_this()](const error_code& cancelled) {
    if (cancelled || self->is_closed_) return;
    self->timer_at_ = HttpClock::time_point::max();
    self->run([&] { self->on_timer(); });
  });
}

void HttpConnection::on_timer() {
  const auto now = HttpClock::now();
  if (now < deadline()) return;
  const bool is_stuck =
      stuck_since_ != HttpClock::time_point::max() && now >= stuck_since_ + server_.options().write_timeout;
  if (is_stuck && !is_lingering_) server_.note_refusal("slow");
  const bool is_silent = session_ == nullptr && first_.empty();
  if (is_lingering_ || is_stuck || is_silent) return close();
  if (session_ != nullptr) return session_->on_time(now);
  // The first bytes did not show the protocol, so HTTP/1 is used.
  open_http1()->refuse_all(408, "the request did not arrive in time");
}

void HttpConnection::close() {
  if (std::exchange(is_closed_, true)) return;
  if (session_ != nullptr) session_->abandon();
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  out_ = {};
  server_.remove(*this);
}

}  // namespace fjord::gateway
