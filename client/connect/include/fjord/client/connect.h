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
  ClientOptions client;  ///< `addresses` is set by open_connection().
  rpc::ThriftTransportOptions transport;
  /// How long open_connection() waits for the first answer of a distributor; 0: it does not, and the first call does.
  Duration ready_timeout = seconds(5);
};

/// A AsyncClient with everything that it runs on, for programs that have nothing of their own.
///
/// Threading: make and destroy it on a thread that is not one of its executors; `client` is for all threads.
class Connection {
 public:
  /// Use open_connection(). `options.client.addresses` is not empty.
  explicit Connection(ConnectOptions options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  AsyncClient& client() { return *client_; }
  /// Waits at most as long as the client's default timeout in each call.
  SyncClient sync() { return SyncClient(*client_); }
  Runtime& runtime() { return runtime_; }
  rpc::Transport& transport() { return *transport_; }
  /// Where the client's callbacks run.
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
  // Destroyed from the last to the first: a transport's calls name the executor, and the client calls the transport.
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<rpc::ThriftTransport> transport_;
  std::unique_ptr<AsyncClient> client_;
};

/// "host:port,host:port", with spaces around the parts allowed; an IPv6 host stands in brackets.
/// Errors: InvalidArgument that names the part and what is wrong with it.
Result<std::vector<std::string>> parse_addresses(std::string_view text);

/// Errors: InvalidArgument for an address that is not host:port; NotReady that names each address and why it did not
/// answer within `ready_timeout`.
Result<std::unique_ptr<Connection>> open_connection(const std::vector<std::string>& addresses,
                                                    ConnectOptions options = {});
/// With the text that parse_addresses() reads.
Result<std::unique_ptr<Connection>> open_connection(std::string_view addresses, ConnectOptions options = {});

}  // namespace fjord
