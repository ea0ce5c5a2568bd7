#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/common/result.h"

namespace fjord::gateway {

struct HttpGatewayOptions {
  std::string node;                           ///< "gateway.0"
  std::string address = "127.0.0.1:0";        ///< host:port; port 0: the system chooses.
  std::vector<std::string> distributors;      ///< Addresses of the cluster.
  std::size_t header_bytes_max = 256 << 10;   ///< 431 above it. A continuation token stands in the request line.
  std::size_t body_bytes_max = 100 << 20;     ///< 413 above it, also for what a compressed body contains.
  std::size_t waiting_bytes_max = 256 << 20;  ///< Bodies of all requests in progress; 429 above it.
  std::size_t requests_max = 4096;            ///< Requests in progress; 429 above it.
  std::size_t connections_max = 20'000;       ///< Further connections get 503.
  Duration idle_timeout = seconds(75);        ///< A connection without a request is closed.
  Duration request_timeout = seconds(60);     ///< For a request to arrive, and for its answer to be taken.
  int io_threads = 2;
};

/// The HTTP server of a gateway: documents as in docs/clients/http.md, health and metrics.
///
/// Threading: has threads of its own. Lifetime: `metrics` outlives it. The destructor takes no more
/// connections, waits up to five seconds until requests in progress are answered, and ends all connections.
class HttpGateway {
 public:
  /// Errors: InvalidArgument if the address is not host:port; IoError if it cannot be bound.
  static Result<std::unique_ptr<HttpGateway>> start(HttpGatewayOptions options, MetricRegistry& metrics);
  ~HttpGateway();

  /// Returns host:port with the actual port.
  const std::string& address() const;

 private:
  class Impl;
  explicit HttpGateway(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::gateway
