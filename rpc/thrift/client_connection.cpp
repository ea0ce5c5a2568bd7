#include "client_connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <functional>
#include <limits>
#include <netinet/tcp.h>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/common/run_inline.h"
#include "fjord/rpc/codec.h"
#include "fjord/rpc/refusal.h"
#include "fjord/rpc/short_work.h"

namespace fjord::rpc {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

std::chrono::steady_clock::duration to_steady(Duration duration) { return duration; }

}  // namespace

ClientConnection::ClientConnection(asio::io_context& context, Address address, const ThriftTransportOptions& options,
                                   RpcClientMetrics& metrics)
    : context_(context),
      address_(std::move(address)),
      options_(options),
      metrics_(metrics),
      socket_(context),
      resolver_(context),
      connect_timer_(context),
      input_(options.max_frame_bytes),
      timer_(context) {}

void ClientConnection::call(ClientCall call) {
  Pending pending{call.executor, std::move(call.done)};
  if (state_ == State::Idle && std::chrono::steady_clock::now() < retry_at_) {
    answer(std::move(pending), Status(StatusCode::NotReady, address_ + ": " + last_error_ + " a moment ago"));
    return;
  }
  const std::int32_t seqid = next_seqid_;
  next_seqid_ = next_seqid_ == std::numeric_limits<std::int32_t>::max() ? 1 : next_seqid_ + 1;
  pending_.insert_or_assign(seqid, std::move(pending));
  metrics_.unanswered.add(1);
  add_deadline(call.deadline, seqid);
  if (state_ == State::Connected) {
    send(seqid, call.request);
    return;
  }
  waiting_.push_back({seqid, std::move(call.request)});
  if (state_ == State::Idle) connect();
}

void ClientConnection::end() {
  if (state_ == State::Connected) metrics_.connections.add(-1);
  metrics_.unanswered.add(-static_cast<double>(pending_.size()));
  state_ = State::Ended;
  ++generation_;
  Error ignored;
  socket_.close(ignored);
  resolver_.cancel();
  connect_timer_.cancel();
  timer_.cancel();
  // The destructor of a callback can use the transport, so the calls are moved out of the object first.
  const std::unordered_map<std::int32_t, Pending> dropped = std::exchange(pending_, {});
  const std::deque<Waiting> unsent = std::exchange(waiting_, {});
}

// ---------------------------------------------------------------------------------------------------------------------
// Connecting

void ClientConnection::connect() {
  state_ = State::Connecting;
  const std::uint64_t generation = ++generation_;
  connect_timer_.expires_after(to_steady(options_.connect_timeout));
  connect_timer_.async_wait([self = shared_from_this(), generation](const Error& error) {
    if (error || self->generation_ != generation || self->state_ != State::Connecting) return;
    self->on_connect_failed("connecting took too long");
  });

  const std::size_t colon = address_.rfind(':');
  if (colon == std::string::npos) {
    on_connect_failed("the address is not host:port");
    return;
  }
  resolve_and_connect(address_.substr(0, colon), address_.substr(colon + 1));
}

void ClientConnection::resolve_and_connect(const std::string& host, const std::string& port) {
  // A numeric address is used directly, without a thread of the resolver; most addresses inside a cluster are numeric.
  Error error;
  const auto numeric = asio::ip::make_address(host, error);
  std::uint16_t number = 0;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  if (!error && parsed.ec == std::errc() && parsed.ptr == port.data() + port.size()) {
    connect_to(tcp::endpoint(numeric, number));
    return;
  }
  resolver_.async_resolve(host, port,
                          [self = shared_from_this(), generation = generation_](
                              const Error& failed, const tcp::resolver::results_type& results) {
                            if (self->generation_ != generation || self->state_ != State::Connecting) return;
                            if (failed || results.empty()) {
                              self->on_connect_failed("cannot resolve the host: " + failed.message());
                            } else {
                              self->connect_to(results.begin()->endpoint());
                            }
                          });
}

void ClientConnection::connect_to(const tcp::endpoint& endpoint) {
  socket_ = Socket(context_);
  socket_.async_connect(endpoint, [self = shared_from_this(), generation = generation_](const Error& error) {
    if (self->generation_ == generation && self->state_ == State::Connecting) self->on_connected(error);
  });
}

void ClientConnection::on_connect_failed(const std::string& why) {
  Error ignored;
  connect_timer_.cancel();
  socket_.close(ignored);
  state_ = State::Idle;
  ++generation_;
  metrics_.connect_failures.add();
  back_off_ = std::clamp(2 * back_off_, options_.back_off_min, options_.back_off_max);
  retry_at_ = std::chrono::steady_clock::now() + back_off_;
  last_error_ = why;
  std::deque<Waiting> waiting;
  waiting.swap(waiting_);
  for (const Waiting& call : waiting) {
    Pending pending;
    if (take(call.seqid, pending)) {
      answer(std::move(pending), Status(StatusCode::NotReady, address_ + ": " + why));
    }
  }
}

void ClientConnection::on_connected(const Error& error) {
  if (error) {
    const bool refused = error == asio::error::connection_refused;
    on_connect_failed(refused ? std::string(kRefused.substr(2)) : error.message());
    return;
  }
  connect_timer_.cancel();
  Error ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  const auto unacknowledged_max = std::chrono::duration_cast<std::chrono::milliseconds>(options_.unacknowledged_max);
  using UserTimeout = boost::asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  socket_.set_option(UserTimeout(static_cast<int>(unacknowledged_max.count())), ignored);
  state_ = State::Connected;
  back_off_ = Duration(0);
  output_ = FrameOutput();
  input_ = FrameInput(options_.max_frame_bytes);
  frames_queued_ = 0;
  said_goodbye_ = false;
  metrics_.connections.add(1);
  std::deque<Waiting> waiting;
  waiting.swap(waiting_);
  for (const Waiting& call : waiting) {
    if (pending_.contains(call.seqid)) send(call.seqid, call.request);
  }
  read();
}

// ---------------------------------------------------------------------------------------------------------------------
// Sending and receiving

void ClientConnection::send(std::int32_t seqid, const Request& request) {
  std::string frame = encode_request(request, seqid);
  if (frame.size() > options_.max_frame_bytes) {
    Pending pending;
    if (take(seqid, pending)) {
      answer(std::move(pending),
             Status(StatusCode::TooLarge, "a message of " + std::to_string(frame.size()) + " bytes; at most " +
                                              std::to_string(options_.max_frame_bytes)));
    }
    return;
  }
  Pending& pending = pending_.at(seqid);
  pending.sent = true;
  pending.start_byte = output_.bytes_added();
  output_.add(std::move(frame));
  ++frames_queued_;
  schedule_flush();
}

void ClientConnection::schedule_flush() {
  // Posting the flush to the loop lets all calls of a batch leave in one write.
  if (flush_scheduled_ || output_.writing()) return;
  flush_scheduled_ = true;
  asio::post(context_, [self = shared_from_this()] {
    self->flush_scheduled_ = false;
    self->flush();
  });
}

void ClientConnection::flush() {
  if (state_ != State::Connected || output_.empty() || output_.writing()) return;
  const std::uint64_t frames = std::exchange(frames_queued_, 0);
  asio::async_write(socket_, output_.start_writing(),
                    [self = shared_from_this(), frames](const Error& error, std::size_t bytes) {
                      if (self->state_ == State::Ended) return;
                      self->output_.written(bytes);
                      self->metrics_.bytes_sent.add(bytes);
                      if (self->state_ == State::Broken) {
                        self->finish_break();
                      } else if (error) {
                        self->break_connection(error.message());
                      } else {
                        self->metrics_.frames_sent.add(frames);
                        self->flush();
                      }
                    });
}

void ClientConnection::read() {
  socket_.async_read_some(
      input_.prepare(), [self = shared_from_this(), generation = generation_](const Error& error, std::size_t bytes) {
        if (self->generation_ != generation || self->state_ != State::Connected) return;
        if (error) {
          self->break_connection(error == asio::error::eof ? "closed by the other side" : error.message());
          return;
        }
        self->metrics_.bytes_received.add(bytes);
        self->input_.commit(bytes);
        self->on_read();
      });
}

void ClientConnection::on_read() {
  const InlineScope runs_callbacks(kInlineBudget);
  while (const auto frame = input_.next()) {
    metrics_.frames_received.add();
    on_reply(*frame);
    if (state_ != State::Connected) return;
  }
  if (input_.too_long()) {
    metrics_.bad_frames.add();
    break_connection("an answer longer than the limit");
    return;
  }
  read();
}

void ClientConnection::on_reply(std::string_view frame) {
  if (frame.empty()) {
    said_goodbye_ = true;
    break_connection("the other side is stopping");
    return;
  }
  auto decoded = decode_reply(frame);
  if (!decoded) {
    metrics_.bad_frames.add();
    log::warning("rpc", "{}: {}", address_, decoded.error().message());
    break_connection("an answer that is not a message");
    return;
  }
  Pending pending;
  if (!take(decoded->seqid, pending)) return;
  if (!decoded->reply || !is_short(*decoded->reply)) return answer(std::move(pending), std::move(decoded->reply));
  run_or_post(*pending.executor, [done = std::move(pending.done), reply = std::move(decoded->reply)]() mutable {
    done(std::move(reply));
  });
}

void ClientConnection::break_connection(const std::string& why) {
  log::debug("rpc", "{}: connection ended: {}", address_, why);
  last_error_ = why;
  state_ = State::Broken;
  ++generation_;
  metrics_.connections.add(-1);
  metrics_.broken_connections.add();
  Error ignored;
  socket_.close(ignored);
  // The handler of an interrupted write reports how many bytes the kernel took. This tells which calls were sent.
  if (!output_.writing()) finish_break();
}

void ClientConnection::finish_break() {
  const std::uint64_t written = output_.bytes_written();
  std::vector<std::pair<std::int32_t, bool>> sent;
  for (const auto& [seqid, pending] : pending_) {
    if (pending.sent) sent.emplace_back(seqid, !said_goodbye_ && pending.start_byte < written);
  }
  std::sort(sent.begin(), sent.end());
  for (const auto& [seqid, maybe_applied] : sent) {
    Pending pending;
    if (!take(seqid, pending)) continue;
    const std::string message = address_ + ": " + last_error_;
    answer(std::move(pending), maybe_applied ? Status(StatusCode::Timeout, message + " before the answer")
                                             : Status(StatusCode::NotReady, message));
  }
  state_ = State::Idle;
  output_ = FrameOutput();
  if (!waiting_.empty()) connect();
}

// ---------------------------------------------------------------------------------------------------------------------
// Answers and deadlines

bool ClientConnection::take(std::int32_t seqid, Pending& pending) {
  const auto found = pending_.find(seqid);
  if (found == pending_.end()) return false;
  pending = std::move(found->second);
  pending_.erase(found);
  metrics_.unanswered.add(-1);
  return true;
}

void ClientConnection::answer(Pending pending, Result<Reply> reply) {
  pending.executor->post(
      [done = std::move(pending.done), reply = std::move(reply)]() mutable { done(std::move(reply)); });
}

void ClientConnection::add_deadline(SteadyTime deadline, std::int32_t seqid) {
  if (deadlines_.size() > 1024 + 4 * pending_.size()) {
    std::erase_if(deadlines_, [this](const Deadline& d) { return !pending_.contains(d.second); });
    std::make_heap(deadlines_.begin(), deadlines_.end(), std::greater<>());
  }
  deadlines_.emplace_back(deadline, seqid);
  std::push_heap(deadlines_.begin(), deadlines_.end(), std::greater<>());
  if (deadline < timer_at_) arm_timer();
}

void ClientConnection::arm_timer() {
  timer_at_ = deadlines_.front().first;
  timer_.expires_at(timer_at_);
  timer_.async_wait([weak = weak_from_this()](const Error& error) {
    if (error) return;
    if (const auto self = weak.lock()) self->on_timer();
  });
}

void ClientConnection::on_timer() {
  if (state_ == State::Ended) return;
  const SteadyTime now = std::chrono::steady_clock::now();
  timer_at_ = SteadyTime::max();
  while (!deadlines_.empty() && (deadlines_.front().first <= now || !pending_.contains(deadlines_.front().second))) {
    const std::int32_t seqid = deadlines_.front().second;
    const bool due = deadlines_.front().first <= now;
    std::pop_heap(deadlines_.begin(), deadlines_.end(), std::greater<>());
    deadlines_.pop_back();
    Pending pending;
    if (!due || !take(seqid, pending)) continue;
    metrics_.timeouts.add();
    const bool sent = pending.sent;
    answer(std::move(pending), sent ? Status(StatusCode::Timeout, address_ + ": no answer before the deadline")
                                    : Status(StatusCode::NotReady, address_ + ": no connection before the deadline"));
  }
  if (!deadlines_.empty()) arm_timer();
}

}  // namespace fjord::rpc
