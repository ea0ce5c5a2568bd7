#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/bulk_executor.h"
#include "fjord/common/clock.h"
#include "fjord/common/env.h"
#include "fjord/common/metrics.h"
#include "fjord/common/random.h"
#include "fjord/common/runtime.h"
#include "fjord/common/scheduler.h"
#include "fjord/common/tunable.h"
#include "fjord/config/cluster_config.h"
#include "fjord/node/node.h"
#include "fjord/rpc/gated_transport.h"
#include "fjord/rpc/transport.h"

namespace fjord::rpc {
class FrameService;
class IoThreads;
class ThriftServer;
}  // namespace fjord::rpc
namespace fjord {

class MetricHttpServer;
struct Health;

/// The real implementations of the seams, with the server and the transport of one node. Each node has its own
/// ProcessRuntime, so that nodes in one process share neither metrics nor tunables.
///
/// Lifetime: outlives the node's parts that use it. The owner calls stop_serving() and transport().close() before it
/// destroys these parts.
class ProcessRuntime {
 public:
  explicit ProcessRuntime(const config::ClusterConfig& config);
  ~ProcessRuntime();

  Runtime& runtime() { return runtime_; }
  rpc::GatedTransport& transport() { return *transport_; }

  /// Opens the ports of the node. `services`, `health` and `other_calls`, which may be null, must live until
  /// stop_serving().
  Status serve(const config::ClusterConfig& config, config::ProcessName name, std::vector<rpc::Service*> services,
               std::function<Health()> health, rpc::FrameService* other_calls = nullptr);
  /// Waits up to two seconds until the accepted calls are answered. No call reaches a service afterwards.
  void stop_serving();

  const std::string& address() const { return address_; }
  const std::string& http_address() const { return http_address_; }

 private:
  void show_settings();
  void show_versions(const Health& health);

  SystemClock clock_;
  ThreadScheduler scheduler_;
  std::unique_ptr<BulkExecutor> bulk_;
  std::unique_ptr<Env> env_;
  Random random_;
  MetricRegistry metrics_;
  TunableRegistry tunables_;
  Runtime runtime_;
  std::shared_ptr<rpc::IoThreads> io_threads_;
  std::unique_ptr<rpc::GatedTransport> transport_;
  std::unique_ptr<rpc::ThriftServer> server_;
  std::unique_ptr<MetricHttpServer> http_;
  std::string address_;
  std::string http_address_;
};

/// A node that has not been polled for this time has no fleet controller that it could tell of its stop.
inline constexpr Duration kPolledWithin = seconds(3);

/// Start a node of one role. Each is defined in the role's *_process.cpp.
Result<std::unique_ptr<Node>> start_fleetcontroller(const config::ClusterConfig& config, config::ProcessName name,
                                                    const StateStoreFactory& zookeeper);
Result<std::unique_ptr<Node>> start_distributor(const config::ClusterConfig& config, config::ProcessName name);
Result<std::unique_ptr<Node>> start_storage(const config::ClusterConfig& config, config::ProcessName name);
Result<std::unique_ptr<Node>> start_gateway(const config::ClusterConfig& config, config::ProcessName name);

}  // namespace fjord
