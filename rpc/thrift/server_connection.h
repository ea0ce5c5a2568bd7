#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <span>
#include <string>

#include "connection_table.h"
#include "fjord/rpc/codec.h"
#include "fjord/rpc/thrift_transport.h"
#include "frames.h"
#include "io_loop.h"
#include "rpc_metrics.h"

namespace fjord::rpc {

/// One accepted connection.
/// Threading: confined to its loop's thread. Lifetime: the objects that Context refers to outlive it.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  struct Context {
    const ThriftServerOptions& options;
    std::span<Service* const> services;
    RpcServerMetrics& metrics;
    std::shared_ptr<LoopInbox> inbox;
    ConnectionTable& table;
    /// Called once for a draining connection: the kernel has its last answer and the goodbye, or it is closed.
    UniqueFunction<void()> on_drained;
    /// Called when the connection is closed; the owner then drops its reference.
    UniqueFunction<void(ServerConnection*)> on_closed;
  };
  ServerConnection(boost::asio::ip::tcp::socket socket, Context context);
  ~ServerConnection();

  /// Returns false, and the connection is closed, if there are too many.
  bool start();
  /// Ends the connection if its peer has been silent for too long, and reads on if memory has come free. The owner
  /// calls it several times in each of the times of ThriftServerOptions.
  void check(ConnectionTable::Clock::time_point now);
  /// Begins no more requests, answers those that have begun, and then says goodbye by an empty frame.
  void drain();
  /// Closes the connection without calling its owner. Afterwards no handler uses what Context refers to, except the
  /// destructor, which uses `metrics`.
  void end();

 private:
  using Error = boost::system::error_code;
  using Clock = ConnectionTable::Clock;

  void read();
  /// Handles the received frames, then reads on. Stops while too many requests are unanswered (is_full()).
  void process();
  bool is_full() const;
  bool handle(std::string_view frame);
  /// Tells the table what this connection holds. Returns false if it must not read more now.
  bool note_memory();
  /// Notes how much of a frame has arrived. `is_new`: whole frames before it have just been handled.
  void note_half_frame(bool is_new);
  bool is_half_frame_late(Clock::time_point now) const;
  /// The table has chosen this connection.
  void end_for(ConnectionTable::Why why);
  /// Says goodbye to a peer, and closes the connection soon.
  void retire();
  /// Sends the frame of an answer.
  void reply(std::string frame, std::size_t request_bytes);
  void schedule_flush();
  void flush();
  void say_goodbye();
  void note_drained();
  void close(const std::string& why);

  boost::asio::ip::tcp::socket socket_;
  Context context_;
  std::string peer_;
  bool closed_ = false;
  bool paused_ = false;       ///< The connection is not being read, because too many requests are unanswered.
  bool is_starved_ = false;   ///< The memory of all connections is used up.
  bool draining_ = false;     ///< Received bytes are discarded, and no more requests begin.
  bool goodbye_ = false;      ///< The goodbye (the last frame, which is empty) was added to `output_`.
  bool is_stopping_ = false;  ///< The server is shutting down; otherwise `draining_` means that the peer is retired.
  bool drained_ = false;      ///< `on_drained` was called.
  bool processing_ = false;   ///< process() is running, so a reply must not call it.
  std::size_t unanswered_ = 0;
  std::size_t unanswered_bytes_ = 0;
  std::shared_ptr<ConnectionTable::Entry> entry_;
  std::size_t half_frame_bytes_ = 0;  ///< Bytes of a frame that has not arrived whole.
  Clock::time_point half_frame_since_;
  Clock::time_point read_at_;  ///< Time of the last byte, or of the end of a pause.
  Clock::time_point retired_at_;
  FrameInput input_;
  FrameOutput output_;
  std::uint64_t frames_queued_ = 0;
  bool flush_scheduled_ = false;
};

}  // namespace fjord::rpc
