#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/common/result.h"

namespace fjord::gateway {

/// A process that is not in the cluster state: a fleet controller or a gateway.
struct OtherProcess {
  std::string name;     ///< "fleetcontroller.0"
  std::string address;  ///< host:port
  std::string http;     ///< host:port of its metrics; empty: it shows none.
};

struct HttpGatewayOptions {
  std::string node;                        ///< Name of the process: "gateway.0".
  std::string address = "127.0.0.1:0";     ///< host:port; port 0: the system chooses.
  std::string tls_address;                 ///< Empty: no port with TLS.
  std::string certificate;                 ///< File in PEM, with the chain. For tls_address, as is `key`.
  std::string key;                         ///< File in PEM.
  std::vector<std::string> distributors;   ///< Addresses of the cluster.
  std::vector<std::string> metrics_shown;  ///< Addresses of the nodes' metrics.
  std::vector<std::string> metrics_nodes;  ///< Names of these nodes, in their order.
  std::vector<OtherProcess> others;        ///< Fleet controllers and gateways, this one too.
  /// Accepted values of the Host header, each perhaps with a port; "*" accepts any. Empty: HostRules derives them from
  /// the addresses and `machine_name`.
  std::vector<std::string> allowed_hosts;
  std::string machine_name;                   ///< Name of the machine in its network.
  std::size_t header_bytes_max = 256 << 10;   ///< 431 above it. A continuation token stands in the request line.
  std::size_t headers_max = 200;              ///< Lines of a header; 431 above it.
  std::size_t body_bytes_max = 100 << 20;     ///< 413 above it, also for what a compressed body contains.
  std::size_t waiting_bytes_max = 256 << 20;  ///< Bodies of all requests in progress; 429 above it.
  std::size_t requests_max = 4096;            ///< Requests in progress; 429 above it.
  std::size_t connections_max = 20'000;       ///< Further connections get 503.
  Duration idle_timeout = seconds(75);        ///< A connection without a request is closed.
  Duration head_timeout = seconds(10);        ///< For a header to arrive, and for the handshake of TLS; 408 after it.
  Duration body_timeout = seconds(30);   ///< For a body to arrive, and a second more for each 16 KiB; 408 after it.
  Duration write_timeout = seconds(60);  ///< A client that takes less than 64 KiB of a waiting answer in it is cut off.
  int streams_max = 512;                 ///< Requests in progress on one HTTP/2 connection.
  bool console_edits = true;             ///< The console may change and remove documents.
  bool confirm_removals = true;          ///< A removal by selection has to say how many documents it may remove.
  bool access_log = true;                ///< Lines in the log for requests.
  bool logs_problems_only = false;       ///< Only for those that failed or took long.
  int io_threads = 2;
};

/// The HTTP server of a gateway: documents as in docs/clients/http.md, health and metrics.
///
/// Threading: has threads of its own. Lifetime: `metrics` outlives it. The destructor accepts no more connections,
/// waits up to five seconds until requests in progress are answered, and ends all connections.
class HttpGateway {
 public:
  /// Errors: InvalidArgument if an address is not host:port, or for certificate and key; IoError if it cannot be bound.
  static Result<std::unique_ptr<HttpGateway>> start(HttpGatewayOptions options, MetricRegistry& metrics);
  ~HttpGateway();

  /// Returns host:port with the actual port.
  const std::string& address() const;
  /// Returns host:port of the port with TLS; empty if there is none.
  std::string tls_address() const;

 private:
  class Impl;
  explicit HttpGateway(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::gateway
