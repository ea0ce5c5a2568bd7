#include "server_connection.h"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/common/run_inline.h"
#include "fjord/rpc/dispatch.h"
#include "fjord/rpc/short_work.h"

namespace fjord::rpc {

namespace asio = boost::asio;

ServerConnection::ServerConnection(asio::ip::tcp::socket socket, Context context)
    : socket_(std::move(socket)), context_(std::move(context)), input_(context_.options.max_frame_bytes) {
  Error error;
  const auto endpoint = socket_.remote_endpoint(error);
  peer_ = error ? "?" : endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
  socket_.set_option(asio::ip::tcp::no_delay(true), error);
  context_.metrics.connections.add(1);
}

ServerConnection::~ServerConnection() {
  context_.metrics.unanswered.add(-static_cast<double>(unanswered_));
  if (!closed_) context_.metrics.connections.add(-1);
}

void ServerConnection::start() { read(); }

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
  while (!closed_ && !draining_ && !is_full()) {
    const auto frame = input_.next();
    if (!frame) break;
    context_.metrics.frames_received.add();
    if (!handle(*frame)) break;
  }
  processing_ = false;
  if (closed_) return;
  if (input_.too_long()) {
    context_.metrics.bad_frames.add();
    close("a frame longer than " + std::to_string(context_.options.max_frame_bytes) + " bytes");
  } else if (is_full()) {
    if (!paused_) context_.metrics.reading_paused.add();
    paused_ = true;
  } else {
    paused_ = false;
    read();
  }
}

bool ServerConnection::handle(std::string_view frame) {
  auto decoded = decode_request(frame);
  if (!decoded) {
    context_.metrics.bad_frames.add();
    close(decoded.error().message());
    return false;
  }
  ++unanswered_;
  unanswered_bytes_ += frame.size();
  context_.metrics.unanswered.add(1);
  // The two callbacks below that send an answer lock `weak` only on the connection's thread, so that the connection is
  // destroyed there.
  if (!decoded->request && context_.options.other_calls != nullptr) {
    FrameService::Answer answer = [weak = weak_from_this(), inbox = context_.inbox,
                                   bytes = frame.size()](std::string answered) {
      inbox->run_or_submit([weak, answered = std::move(answered), bytes]() mutable {
        if (const auto self = weak.lock()) self->reply(std::move(answered), bytes);
      });
    };
    if (context_.options.other_calls->handle(frame, answer)) return true;
  }
  dispatch(std::move(*decoded), context_.services,
           [weak = weak_from_this(), inbox = context_.inbox, bytes = frame.size()](const CallHeader& call,
                                                                                   Result<Reply> answer) {
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
  output_.add(std::move(frame));
  ++frames_queued_;
  schedule_flush();
  if (draining_) {
    say_goodbye();
  } else if (paused_ && !processing_ && !is_full()) {
    process();
  }
}

void ServerConnection::drain() {
  if (closed_ || draining_) return;
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

void ServerConnection::note_drained() {
  if (!draining_ || drained_) return;
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
  context_.metrics.connections.add(-1);
  Error ignored;
  socket_.close(ignored);
}

void ServerConnection::close(const std::string& why) {
  if (closed_) return;
  if (!why.empty()) log::warning("rpc", "connection from {} closed: {}", peer_, why);
  closed_ = true;
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
