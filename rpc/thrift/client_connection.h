#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fjord/rpc/thrift_transport.h"
#include "frames.h"
#include "rpc_metrics.h"

namespace fjord::rpc {

using SteadyTime = std::chrono::steady_clock::time_point;

struct ClientCall {
  Request request;
  SteadyTime deadline;
  Executor* executor = nullptr;
  ReplyFunction done;
};

/// The calls to one address and, if it is open, the connection to it.
/// Threading: confined to its loop's thread. Lifetime: `options` and `metrics` outlive it.
class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  ClientConnection(boost::asio::io_context& context, Address address, const ThriftTransportOptions& options,
                   RpcClientMetrics& metrics);

  /// May be called from the callback of another call of this connection.
  void call(ClientCall call);
  /// Closes the connection and drops the calls without an answer. Afterwards no handler uses `options` or `metrics`.
  void end();

 private:
  using Socket = boost::asio::ip::tcp::socket;
  using Error = boost::system::error_code;
  /// Broken: the connection is closed, and the handler of a write has yet to report how many bytes the kernel took.
  enum class State { Idle, Connecting, Connected, Broken, Ended };

  struct Pending {
    Executor* executor = nullptr;
    ReplyFunction done;
    bool sent = false;             ///< The frame was added to `output_`.
    std::uint64_t start_byte = 0;  ///< Offset of the frame in the bytes added to `output_`.
  };
  struct Waiting {
    std::int32_t seqid = 0;
    Request request;
  };
  using Deadline = std::pair<SteadyTime, std::int32_t>;

  void connect();
  void resolve_and_connect(const std::string& host, const std::string& port);
  void connect_to(const boost::asio::ip::tcp::endpoint& endpoint);
  void on_connected(const Error& error);
  void on_connect_failed(const std::string& why);
  void send(std::int32_t seqid, const Request& request);
  void schedule_flush();
  void flush();
  void read();
  void on_read();
  void on_reply(std::string_view frame);
  void break_connection(const std::string& why);
  void finish_break();

  void add_deadline(SteadyTime deadline, std::int32_t seqid);
  void arm_timer();
  void on_timer();
  static void answer(Pending pending, Result<Reply> reply);
  bool take(std::int32_t seqid, Pending& pending);

  boost::asio::io_context& context_;
  Address address_;
  const ThriftTransportOptions& options_;
  RpcClientMetrics& metrics_;

  State state_ = State::Idle;
  std::uint64_t generation_ = 0;  ///< Number of the connection; handlers of an older connection do nothing.
  Socket socket_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::steady_timer connect_timer_;
  SteadyTime retry_at_{};
  Duration back_off_{0};
  std::string last_error_;

  std::deque<Waiting> waiting_;  ///< Requests that wait for a connection.
  std::unordered_map<std::int32_t, Pending> pending_;
  std::int32_t next_seqid_ = 1;
  FrameOutput output_;
  bool flush_scheduled_ = false;
  FrameInput input_;
  std::uint64_t frames_queued_ = 0;
  /// The server announced its end by an empty frame: it has not begun any request that was unanswered then.
  bool said_goodbye_ = false;

  std::vector<Deadline> deadlines_;  ///< A heap ordered by time; it may still have deadlines of answered calls.
  boost::asio::steady_timer timer_;
  SteadyTime timer_at_ = SteadyTime::max();
};

}  // namespace fjord::rpc
