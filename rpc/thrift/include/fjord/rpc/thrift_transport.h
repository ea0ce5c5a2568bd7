#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/idle_polling.h"
#include "fjord/common/metrics.h"
#include "fjord/common/result.h"
#include "fjord/rpc/frame_service.h"
#include "fjord/rpc/transport.h"

namespace fjord::rpc {

class IoLoop;

/// The I/O threads of transports and servers. A process that gives the same ones to its transport and its server can
/// receive a request, ask other nodes and send the answer on one thread.
/// Lifetime: those that use the threads share them; the last one ends them.
class IoThreads {
 public:
  /// Starts the threads; they are called `name`-0, `name`-1 and so on.
  /// Each looks for messages for `poll_time` before it sleeps, while most of its waits are short.
  IoThreads(const std::string& name, int threads, std::chrono::microseconds poll_time = IdlePolling::kPollTime);
  ~IoThreads();

  const std::vector<std::unique_ptr<IoLoop>>& loops() const { return loops_; }

 private:
  std::vector<std::unique_ptr<IoLoop>> loops_;
};

struct ThriftTransportOptions {
  int io_threads = 1;                         ///< Number of own threads, without `shared_threads`.
  std::shared_ptr<IoThreads> shared_threads;  ///< The threads to use; null: own ones.
  std::size_t max_frame_bytes = 64u << 20;    ///< An answer longer than this breaks its connection.
  Duration connect_timeout = seconds(1);
  /// Wait after the first failed connect; doubles with each failure up to `back_off_max`. A call during this wait fails
  /// at once with NotReady.
  Duration back_off_min = milliseconds(50);
  Duration back_off_max = seconds(1);
  /// A connection breaks if the peer's kernel acknowledges no sent bytes for this time, or accepts none because its
  /// buffer is full. A short time helps after a cut link works again: the old connection may wait about as long as the
  /// cut lasted before it retransmits, but a new connection works at once.
  Duration unacknowledged_max = seconds(5);
};

/// Calls over framed TCP in Thrift's compact protocol. Each peer address has one connection with any number of calls.
///
/// The first call to an address opens the connection, and the next call after a break opens it again. A call is
/// NotReady if the connection broke before the kernel took any byte of its request, and Timeout otherwise.
///
/// Threading: like Transport; messages are encoded and decoded on I/O threads. The callback of a short answer runs on
/// the I/O thread that received it if the executor is idle (common/run_inline.h, short_work.h). Lifetime: `metrics`
/// outlives it. An executor outlives the transport, or at least the calls that name it. The destructor drops calls
/// without an answer.
class ThriftTransport final : public Transport {
 public:
  ThriftTransport(const ThriftTransportOptions& options, MetricRegistry& metrics);
  ~ThriftTransport() override;

  void call(const Address& to, Request request, Duration timeout, Executor& executor, ReplyFunction done) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct ThriftServerOptions {
  Address address = "127.0.0.1:0";            ///< With port 0 the system chooses a port.
  int io_threads = 1;                         ///< Number of own threads, without `shared_threads`.
  std::shared_ptr<IoThreads> shared_threads;  ///< The threads to use; null: own ones.
  std::size_t max_frame_bytes = 64u << 20;
  /// Number of unanswered requests of a connection at which the server stops reading from it.
  std::size_t unanswered_max = 4096;
  /// Memory of unanswered requests and unsent answers of a connection at which the server stops reading from it.
  std::size_t unanswered_bytes_max = 64u << 20;
  std::size_t connections_max = 10'000;  ///< Clients; a sixteenth as many more, 8 at least, are for nodes.
  /// Memory of all connections for received bytes, requests and answers, two frames at least. A quarter of it, one
  /// frame at least, may be frames that have not arrived whole.
  std::size_t received_bytes_max = 512u << 20;
  Duration frame_timeout = seconds(10);  ///< Longest time without a byte of a frame that has begun.
  Duration idle_timeout = seconds(900);  ///< Longest time of a client without a call; at most 60 s before the first.
  FrameService* other_calls = nullptr;   ///< Receives the calls that are not messages of rpc; outlives the server.
};

/// Answers framed Thrift calls in the protocol of the call, compact or binary.
///
/// A frame that is too long or not a call closes its connection and no other. Answers leave in the order in which
/// services give them, not in the order of the requests. A connection ends, too, if it sends a part of a frame and no
/// more, if it is a client's and idle, or if there are too many or they take too much memory (connection_table.h). A
/// peer whose calls were all answered gets the goodbye of drain() before.
///
/// Threading: Service::handle runs on an I/O thread, within an InlineScope (common/run_inline.h). Any thread may call a
/// responder, also after the server is destroyed. Lifetime: services and `metrics` outlive it. The destructor closes
/// all connections.
class ThriftServer {
 public:
  /// Errors: InvalidArgument if the address is not host:port or the host is not found; IoError if it cannot be bound.
  static Result<std::unique_ptr<ThriftServer>> listen(const ThriftServerOptions& options,
                                                      std::vector<Service*> services, MetricRegistry& metrics);
  ~ThriftServer();

  /// Shuts the server down in order. It accepts no more connections, begins no more requests, and answers the requests
  /// that it has begun. A ThriftTransport at the other end then reports its other calls as NotReady instead of Timeout.
  /// Returns when that is done, or after `timeout`. Afterwards only the destructor may be called.
  void drain(Duration timeout);

  /// Returns "host:port" with the actual port.
  const Address& address() const;

 private:
  class Impl;
  explicit ThriftServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::rpc
