#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/common/result.h"

namespace fjord {

/// The content of /health. `healthy` decides between 200 and 503.
struct Health {
  bool healthy = false;
  std::string status;                ///< One word: "up", "initializing", ...
  std::string node;                  ///< "storage.2"
  std::uint64_t state_version = 0;   ///< Version of the cluster state in use; 0: none yet, or a fleet controller.
  std::uint64_t config_version = 0;  ///< Version of the live configuration in use.
  std::vector<std::string> reasons;  ///< Reasons why the process is not healthy.
};

struct MetricHttpServerOptions {
  std::string address = "127.0.0.1:0";  ///< host:port; port 0: the system chooses.
  std::size_t request_bytes_max = 8192;
  Duration idle_timeout = seconds(30);
  /// Called on the server's thread before /metrics is written, to update gauges; must not wait. Can be empty.
  std::function<void()> before_metrics;
};

/// A small HTTP/1.1 server: /metrics (Prometheus' text format, with the process's resources), /health (JSON) and an
/// index page at /. GET and HEAD only.
///
/// Threading: one thread of its own, on which `health` is called; `health` must not wait.
/// Lifetime: `registry` and everything that `health` refers to outlive the server.
class MetricHttpServer {
 public:
  /// Starts a server. Errors: InvalidArgument if the address is not host:port; IoError if the address cannot be bound.
  static Result<std::unique_ptr<MetricHttpServer>> listen(const MetricHttpServerOptions& options,
                                                          MetricRegistry& registry, std::function<Health()> health);
  ~MetricHttpServer();

  /// Returns host:port with the actual port.
  const std::string& address() const;

 private:
  class Impl;
  explicit MetricHttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord
