#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <span>
#include <string>

#include "fjord/rpc/codec.h"
#include "fjord/rpc/thrift_transport.h"
#include "frames.h"
#include "io_loop.h"
#include "rpc_metrics.h"

namespace fjord::rpc {

/// One accepted connection.
/// Threading: confined to its loop's thread. Lifetime: everything named in Context outlives it.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  struct Context {
    const ThriftServerOptions& options;
    std::span<Service* const> services;
    RpcServerMetrics& metrics;
    std::shared_ptr<LoopInbox> inbox;
    /// The last answer of a connection that is being drained, and the goodbye, are with the kernel; or it is closed.
    UniqueFunction<void()> on_drained;
    /// Forgets the connection.
    UniqueFunction<void(ServerConnection*)> on_closed;
  };
  ServerConnection(boost::asio::ip::tcp::socket socket, Context context);
  ~ServerConnection();

  void start();
  /// Takes up nothing more, answers what it has taken up, and says goodbye.
  void drain();

 private:
  using Error = boost::system::error_code;

  void read();
  /// Handles the frames that have arrived and reads on, unless there is too much unanswered.
  void process();
  bool is_full() const;
  bool handle(std::string_view frame);
  void reply(const CallHeader& call, Result<Reply> reply, std::size_t request_bytes);
  void schedule_flush();
  void flush();
  void say_goodbye();
  void note_drained();
  void close(const std::string& why);

  boost::asio::ip::tcp::socket socket_;
  Context context_;
  std::string peer_;
  bool closed_ = false;
  bool paused_ = false;    ///< Nothing is being read.
  bool draining_ = false;  ///< What arrives is thrown away.
  bool goodbye_ = false;   ///< The last frame was given to `output_`.
  bool drained_ = false;
  bool processing_ = false;  ///< process() is on the stack; it looks at the queues by itself.
  std::size_t unanswered_ = 0;
  std::size_t unanswered_bytes_ = 0;
  FrameInput input_;
  FrameOutput output_;
  std::uint64_t frames_queued_ = 0;
  bool flush_scheduled_ = false;
};

}  // namespace fjord::rpc
