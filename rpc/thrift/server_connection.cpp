#include "server_connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <netinet/tcp.h>
#include <utility>
#include <variant>

#include "fjord/common/log.h"
#include "fjord/common/run_inline.h"
#include "fjord/rpc/dispatch.h"
#include "fjord/rpc/short_work.h"

namespace fjord::rpc {

namespace asio = boost::asio;

namespace {

/// A peer that has not sent a call yet is an idle client after this time.
constexpr Duration kFirstCallMax = seconds(60);
/// Time that a retired peer has to close its end after the goodbye.
constexpr Duration kRetiredMax = seconds(1);
/// A connection breaks if its peer takes no byte of an answer for this time.
constexpr std::chrono::milliseconds kUnacknowledgedMax(60'000);
/// The least speed of a frame, after ThriftServerOptions::frame_timeout.
constexpr std::size_t kFrameBytesPerSecondMin = 64u << 10;

/// Returns true for calls that only distributors, storage nodes and fleet controllers make.
bool is_of_node(const Request& request) {
  return std::visit(
      [](const auto& one) {
        using T = std::decay_t<decltype(one)>;
        return std::is_same_v<T, Poll> || std::is_same_v<T, Apply> || std::is_same_v<T, GetBucketInfo> ||
               std::is_same_v<T, SetReplicaSets> || std::is_same_v<T, MergeBucket> ||
               std::is_same_v<T, DeleteBuckets> || std::is_same_v<T, SplitBucket> || std::is_same_v<T, JoinBuckets> ||
               std::is_same_v<T, FindGarbage> || std::is_same_v<T, GetLoads> || std::is_same_v<T, ListEntries> ||
               std::is_same_v<T, FetchEntries>;
      },
      request);
}

}  // namespace

ServerConnection::ServerConnection(asio::ip::tcp::socket socket, Context context)
    : socket_(std::move(socket)), context_(std::move(context)), input_(context_.options.max_frame_bytes) {
  Error error;
  const auto endpoint = socket_.remote_endpoint(error);
  // Without the port the lines of the log about a peer are the same, and count as one fault.
  peer_ = error ? "?" : endpoint.address().to_string();
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  socket_.set_option(UserTimeout(static_cast<int>(kUnacknowledgedMax.count())), error);
  context_.metrics.connections.add(1);
}

ServerConnection::~ServerConnection() {
  context_.metrics.unanswered.add(-static_cast<double>(unanswered_));
  if (!closed_) context_.metrics.connections.add(-1);
}

bool ServerConnection::start() {
  entry_ = context_.table.add([weak = weak_from_this(), inbox = context_.inbox](ConnectionTable::Why why) {
    inbox->submit([weak, why] {
      if (const auto self = weak.lock()) self->end_for(why);
    });
  });
  if (entry_ == nullptr) {
    context_.metrics.ended_full.add();
    end();
    return false;
  }
  read();
  return true;
}

void ServerConnection::read() {
  socket_.async_read_some(input_.prepare(), [self = shared_from_this()](const Error& error, std::size_t bytes) {
    if (self->closed_) return;
    if (error) {
      self->close(error == asio::error::eof ? "" : error.message());
      return;
    }
    self->context_.metrics.bytes_received.add(bytes);
    if (self->draining_) {
      self->read();
      return;
    }
    self->input_.commit(bytes);
    self->read_at_ = Clock::now();
    self->process();
  });
}

bool ServerConnection::is_full() const {
  return unanswered_ >= context_.options.unanswered_max ||
         unanswered_bytes_ + output_.bytes_waiting() >= context_.options.unanswered_bytes_max;
}

void ServerConnection::process() {
  const InlineScope runs_requests(kInlineBudget);
  processing_ = true;
  bool has_whole = false;
  is_starved_ = !note_memory();
  while (!closed_ && !draining_ && !is_full() && !is_starved_) {
    const auto frame = input_.next();
    if (!frame) break;
    context_.metrics.frames_received.add();
    has_whole = true;
    if (!handle(*frame)) break;
  }
  processing_ = false;
  if (closed_) return;
  note_half_frame(has_whole);
  is_starved_ = !note_memory();
  if (input_.too_long()) {
    context_.metrics.bad_frames.add();
    close("a frame longer than " + std::to_string(context_.options.max_frame_bytes) + " bytes");
  } else if (!draining_ && (is_full() || is_starved_)) {
    if (!paused_) context_.metrics.reading_paused.add();
    paused_ = true;
  } else {
    if (std::exchange(paused_, false)) read_at_ = half_frame_since_ = Clock::now();
    read();
  }
}

void ServerConnection::note_half_frame(bool is_new) {
  const std::size_t before = std::exchange(half_frame_bytes_, is_full() ? 0 : input_.size());
  if (is_new || before == 0) half_frame_since_ = Clock::now();
}

bool ServerConnection::note_memory() {
  return context_.table.hold(*entry_, input_.size() + unanswered_bytes_ + output_.bytes_waiting(), half_frame_bytes_);
}

bool ServerConnection::handle(std::string_view frame) {
  auto decoded = decode_request(frame);
  if (!decoded) {
    context_.metrics.bad_frames.add();
    close(decoded.error().message());
    return false;
  }
  if (!context_.table.note_call(*entry_, decoded->request && is_of_node(*decoded->request))) {
    context_.metrics.ended_full.add();
    retire();
    return false;
  }
  const std::size_t bytes = std::max(frame.size(), decoded->bytes);
  ++unanswered_;
  unanswered_bytes_ += bytes;
  entry_->note_active(read_at_);
  entry_->note_waiting(true);
  is_starved_ = !note_memory();
  context_.metrics.unanswered.add(1);
  // The two callbacks below that send an answer lock `weak` only on the connection's thread, so that the connection is
  // destroyed there.
  if (!decoded->request && context_.options.other_calls != nullptr) {
    FrameService::Answer answer = [weak = weak_from_this(), inbox = context_.inbox, bytes](std::string answered) {
      inbox->run_or_submit([weak, answered = std::move(answered), bytes]() mutable {
        if (const auto self = weak.lock()) self->reply(std::move(answered), bytes);
      });
    };
    if (context_.options.other_calls->handle(frame, answer)) return true;
  }
  dispatch(std::move(*decoded), context_.services,
           [weak = weak_from_this(), inbox = context_.inbox, bytes](const CallHeader& call, Result<Reply> answer) {
             inbox->run_or_submit([weak, call, answer = std::move(answer), bytes]() mutable {
               if (const auto self = weak.lock()) self->reply(encode_reply(call, answer), bytes);
             });
           });
  return true;
}

void ServerConnection::reply(std::string frame, std::size_t request_bytes) {
  --unanswered_;
  unanswered_bytes_ -= request_bytes;
  context_.metrics.unanswered.add(-1);
  if (closed_) return;
  entry_->note_waiting(unanswered_ > 0);
  output_.add(std::move(frame));
  ++frames_queued_;
  schedule_flush();
  note_memory();
  if (draining_) {
    say_goodbye();
  } else if (paused_ && !processing_ && !is_full()) {
    process();
  }
}

void ServerConnection::drain() {
  if (closed_ || std::exchange(is_stopping_, true)) return;
  if (draining_) return note_drained();  // The peer has been retired, so no answer is due.
  draining_ = true;
  say_goodbye();
  if (!closed_ && paused_) read();  // Reads on, in order to notice when the peer closes the connection.
}

/// Sends an empty frame. It tells a ThriftTransport that requests without an answer were never begun, so that clients
/// send them elsewhere and their outcome is not in doubt. To a stock Thrift client it ends the connection.
void ServerConnection::say_goodbye() {
  if (goodbye_ || unanswered_ > 0) return;
  goodbye_ = true;
  output_.add({});
  ++frames_queued_;
  schedule_flush();
}

void ServerConnection::retire() {
  if (closed_ || draining_) return;
  draining_ = true;
  retired_at_ = Clock::now();
  say_goodbye();
  if (!closed_ && paused_ && !processing_) read();
}

void ServerConnection::end_for(ConnectionTable::Why why) {
  if (closed_ || draining_) return;
  const bool is_new = entry_->kind() == ConnectionTable::Kind::New;
  (why == ConnectionTable::Why::Full ? context_.metrics.ended_full : context_.metrics.ended_memory).add();
  // A goodbye would keep the memory for a while. A new peer does not expect an answer.
  if (why == ConnectionTable::Why::Full && !is_new) return retire();
  close(why == ConnectionTable::Why::Full ? "" : "too many bytes of messages that have not arrived whole");
}

bool ServerConnection::is_half_frame_late(Clock::time_point now) const {
  if (half_frame_bytes_ == 0) return false;
  const Clock::duration silence_max = context_.options.frame_timeout;
  const auto allowed = silence_max + std::chrono::seconds(half_frame_bytes_ / kFrameBytesPerSecondMin);
  return now - read_at_ >= silence_max || now - half_frame_since_ >= allowed;
}

void ServerConnection::check(Clock::time_point now) {
  if (closed_ || is_stopping_) return;
  if (draining_) {
    if (unanswered_ == 0 && now - retired_at_ >= kRetiredMax) close("");
    return;
  }
  if (paused_) {
    if (!is_full()) process();
    return;
  }
  if (is_half_frame_late(now)) {
    context_.metrics.ended_slow.add();
    return close("the rest of a frame did not arrive in time");
  }
  const auto kind = entry_->kind();
  if (half_frame_bytes_ > 0 || unanswered_ > 0 || output_.bytes_waiting() > 0 || kind == ConnectionTable::Kind::Node) {
    return;
  }
  const bool is_new = kind == ConnectionTable::Kind::New;
  const Duration idle_max = context_.options.idle_timeout;
  if (now - entry_->active_at() < (is_new ? std::min(idle_max, kFirstCallMax) : idle_max)) return;
  context_.metrics.ended_idle.add();
  retire();
}

void ServerConnection::note_drained() {
  if (!is_stopping_ || drained_) return;
  drained_ = true;
  context_.on_drained();
}

void ServerConnection::schedule_flush() {
  if (flush_scheduled_ || output_.writing()) return;
  flush_scheduled_ = true;
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->flush_scheduled_ = false;
    self->flush();
  });
}

void ServerConnection::flush() {
  if (closed_ || output_.empty() || output_.writing()) return;
  const std::uint64_t frames = std::exchange(frames_queued_, 0);
  asio::async_write(socket_, output_.start_writing(),
                    [self = shared_from_this(), frames](const Error& error, std::size_t bytes) {
                      self->output_.written(bytes);
                      if (self->closed_) return;
                      self->context_.metrics.bytes_sent.add(bytes);
                      if (error) {
                        self->close(error.message());
                        return;
                      }
                      self->context_.metrics.frames_sent.add(frames);
                      self->note_memory();
                      self->entry_->note_active(Clock::now());
                      self->flush();
                      if (self->goodbye_ && self->output_.empty() && !self->output_.writing()) {
                        Error ignored;
                        self->socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
                        self->note_drained();
                      }
                      if (self->draining_) return;
                      if (self->paused_ && !self->processing_ && !self->is_full()) self->process();
                    });
}

void ServerConnection::end() {
  if (closed_) return;
  closed_ = true;
  if (entry_ != nullptr) context_.table.remove(*entry_);
  context_.metrics.connections.add(-1);
  Error ignored;
  socket_.close(ignored);
}

void ServerConnection::close(const std::string& why) {
  if (closed_) return;
  if (!why.empty()) log::warning("rpc", "connection from {} closed: {}", peer_, why);
  closed_ = true;
  context_.table.remove(*entry_);
  note_drained();
  context_.metrics.connections.add(-1);
  context_.metrics.broken_connections.add();
  Error ignored;
  socket_.close(ignored);
  // Keeps the connection alive during on_closed. Afterwards the handler that called this still holds a reference.
  const auto self = shared_from_this();
  context_.on_closed(this);
}

}  // namespace fjord::rpc
