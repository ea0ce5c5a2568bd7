#include "directory_lock.h"
#include "fjord/fleetcontroller/fleet_controller.h"
#include "fjord/fleetcontroller/leveldb_state_store.h"
#include "fjord/monitoring/metric_http_server.h"
#include "fjord/node/node.h"
#include "health_page.h"
#include "process_runtime.h"

namespace fjord {
namespace {

class FleetControllerProcess final : public Node {
 public:
  FleetControllerProcess(const config::ClusterConfig& config, DirectoryLock lock)
      : lock_(std::move(lock)), process_(config) {}

  ~FleetControllerProcess() override {
    process_.stop_serving();
    process_.transport().close();
  }

  Status start(const config::ClusterConfig& config, config::ProcessName name, const StateStoreFactory& zookeeper) {
    fleetcontroller::FleetControllerOptions options;
    options.distributors = config.distributor_addresses();
    options.storage = config.storage_addresses();
    options.distribution = config.distribution();
    options.distribution_bits = static_cast<unsigned>(config.distribution_bits);
    options.settings_from_file = config.live_settings_given();
    options.name = config.find(name)->address;
    options.poll_interval = milliseconds(config.poll_interval_ms);
    options.poll_timeout = milliseconds(config.poll_timeout_ms);
    options.down_after = milliseconds(config.down_after_ms);
    options.start_grace = milliseconds(config.start_grace_ms);
    FJORD_TRY(open_store(config, name, zookeeper));
    FJORD_TRY_ASSIGN(controller_, fleetcontroller::FleetController::open(options, process_.runtime(),
                                                                         process_.transport(), *store_));
    return process_.serve(config, name, {controller_.get()},
                          [this, node = name.to_string()] { return health_page(node, controller_->health()); });
  }

  const std::string& address() const override { return process_.address(); }
  std::string http_address() const override { return process_.http_address(); }

 private:
  Status open_store(const config::ClusterConfig& config, config::ProcessName name, const StateStoreFactory& zookeeper) {
    if (config.zookeeper.empty()) {
      FJORD_TRY_ASSIGN(store_,
                       fleetcontroller::LevelDbStateStore::open(process_.runtime().env, config.find(name)->directory));
      return Status::ok();
    }
    if (zookeeper == nullptr) {
      return {StatusCode::InvalidArgument, "fleetcontroller.zookeeper: only fjordd can use ZooKeeper"};
    }
    store_ = zookeeper(config);
    return Status::ok();
  }

  DirectoryLock lock_;
  ProcessRuntime process_;
  std::unique_ptr<fleetcontroller::ClusterStateStore> store_;
  std::unique_ptr<fleetcontroller::FleetController> controller_;
};

}  // namespace

Result<std::unique_ptr<Node>> start_fleetcontroller(const config::ClusterConfig& config, config::ProcessName name,
                                                    const StateStoreFactory& zookeeper) {
  FJORD_TRY_ASSIGN(DirectoryLock lock,
                   DirectoryLock::acquire(config.find(name)->directory, name.to_string(), config.allow_shared_folders));
  auto process = std::make_unique<FleetControllerProcess>(config, std::move(lock));
  FJORD_TRY(process->start(config, name, zookeeper));
  return std::unique_ptr<Node>(std::move(process));
}

}  // namespace fjord
