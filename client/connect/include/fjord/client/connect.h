#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/client/client.h"
#include "fjord/client/sync_client.h"
#include "fjord/common/bulk_executor.h"
#include "fjord/common/clock.h"
#include "fjord/common/env.h"
#include "fjord/common/metrics.h"
#include "fjord/common/random.h"
#include "fjord/common/runtime.h"
#include "fjord/common/scheduler.h"
#include "fjord/common/tunable.h"
#include "fjord/rpc/thrift_transport.h"

namespace fjord {

struct ConnectOptions {
  ClientOptions client;  ///< Options of the client; open_connection() sets `addresses`.
  rpc::ThriftTransportOptions transport;
  /// Time that open_connection() waits for the first answer of a distributor. If it is 0, open_connection() does not
  /// wait, and the first call waits instead.
  Duration ready_timeout = seconds(5);
};

/// An AsyncClient with its own threads, sockets and runtime, for programs that have none.
///
/// Threading: create and destroy it on a thread that is not one of its executors; `client` is for all threads.
class Connection {
 public:
  /// Use open_connection() instead. `options.client.addresses` is not empty.
  explicit Connection(ConnectOptions options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  AsyncClient& client() { return *client_; }
  /// Returns a blocking client; each call waits at most for the client's default timeout.
  SyncClient sync() { return SyncClient(*client_); }
  Runtime& runtime() { return runtime_; }
  rpc::Transport& transport() { return *transport_; }
  /// Returns the executor on which the client's callbacks run.
  Executor& executor() { return *executor_; }
  MetricRegistry& metrics() { return metrics_; }

 private:
  SystemClock clock_;
  ThreadScheduler scheduler_;
  std::unique_ptr<BulkExecutor> bulk_;
  std::unique_ptr<Env> env_;
  Random random_;
  MetricRegistry metrics_;
  TunableRegistry tunables_;
  Runtime runtime_;
  // The order of destruction, last to first, matters: calls of the transport refer to the executor, and the client
  // calls the transport.
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<rpc::ThriftTransport> transport_;
  std::unique_ptr<AsyncClient> client_;
};

/// Parses "host:port,host:port", with spaces allowed around the parts; an IPv6 host stands in brackets.
/// Errors: InvalidArgument that quotes the part and its fault.
Result<std::vector<std::string>> parse_addresses(std::string_view text);

/// Opens a connection. Errors: InvalidArgument for an address that is not host:port; NotReady that lists each address
/// and why it did not answer within `ready_timeout`.
Result<std::unique_ptr<Connection>> open_connection(const std::vector<std::string>& addresses,
                                                    ConnectOptions options = {});
/// Opens a connection to addresses in the form of parse_addresses().
Result<std::unique_ptr<Connection>> open_connection(std::string_view addresses, ConnectOptions options = {});

}  // namespace fjord
