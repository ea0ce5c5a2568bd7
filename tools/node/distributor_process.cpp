#include <algorithm>

#include "fjord/common/log.h"
#include "fjord/distributor/distributor_node.h"
#include "fjord/gateway/client_service.h"
#include "fjord/mapreduce/job_service.h"
#include "fjord/monitoring/metric_http_server.h"
#include "fjord/node/node.h"
#include "fjord/scripting/script_application.h"
#include "fjord/search/search_broker.h"
#include "health_page.h"
#include "plugin_options.h"
#include "process_runtime.h"

namespace fjord {
namespace {

/// Longest call of a plugin in a distributor. It is short because a call delays the distributor's other jobs.
constexpr Duration kCallMax = seconds(10);

/// Runs jobs with the distributor's cluster information. Jobs and distributor have separate snapshot holders: a job may
/// take a newer cluster state from any answer, but the distributor only from the fleet controller.
class Jobs final : public rpc::Service {
 public:
  Jobs(const config::ClusterConfig& config, Runtime& runtime, rpc::Transport& transport,
       const distributor::DistributorNode& node)
      : node_(node), records_(client_options(config), runtime, transport) {
    mapreduce::add_builtin_applications(applications_);
    // The jobs thread configures applications, and combines in direct jobs.
    scripting::add_script_application(applications_,
                                      {.memory_bytes = &runtime.tunables.declare("mapreduce.script_memory_bytes"),
                                       .starts_at_once = false,
                                       .call_max = kCallMax});
  }

  /// Must be called first.
  Status start(const config::ClusterConfig& config, const std::string& name, Runtime& runtime,
               rpc::Transport& transport) {
    FJORD_TRY(load_plugins(config, runtime));
    mapreduce::JobServiceOptions options;
    options.name = name;
    options.refresh_snapshot = [this] { refresh(); };
    service_ =
        std::make_unique<mapreduce::JobService>(options, runtime, transport, snapshots_, applications_, records_);
    return Status::ok();
  }

  bool handle(rpc::Request& request, rpc::Responder& respond) override {
    refresh();
    return service_->handle(request, respond) || plugin_service_->handle(request, respond);
  }

 private:
  static ClientOptions client_options(const config::ClusterConfig& config) {
    ClientOptions options;
    options.addresses = config.distributor_addresses();
    return options;
  }

  /// Loads the applications of plugins: this process checks them when a job is submitted, and runs their reduce
  /// function in direct jobs. A distributor without the plugin folder runs only jobs without plugins.
  Status load_plugins(const config::ClusterConfig& config, Runtime& runtime) {
    plugins::PluginOptions options = plugin_options_of(config);
    options.applications_start_at_once = true;
    options.call_timeout = std::min<Duration>(options.call_timeout, kCallMax);
    visitors::VisitorRegistry not_here;  // visitors run on storage nodes only
    visitors::add_builtin_visitors(not_here);
    auto libraries = plugins::load_plugins(options, runtime.metrics, not_here, applications_);
    if (!libraries) {
      if (libraries.error().code() != StatusCode::NotFound) return libraries.error();
      log::warning("fjordd", "no jobs of plugins can be submitted here: {}", libraries.error().message());
      libraries = std::vector<rpc::PluginLibrary>();
    }
    plugin_service_ = std::make_unique<plugins::PluginService>(std::move(*libraries));
    return Status::ok();
  }

  void refresh() {
    const auto snapshot = node_.snapshots().get();
    if (snapshot == nullptr) return;
    const Result<bool> updated = snapshots_.update(snapshot->info());
    if (!updated) log::error("fjordd", "cluster state for jobs: {}", updated.error().to_string());
  }

  const distributor::DistributorNode& node_;
  rpc::SnapshotHolder snapshots_;
  mapreduce::ApplicationRegistry applications_;
  mapreduce::StoredJobRecords records_;
  std::unique_ptr<plugins::PluginService> plugin_service_;
  std::unique_ptr<mapreduce::JobService> service_;
};

class DistributorProcess final : public Node {
 public:
  explicit DistributorProcess(const config::ClusterConfig& config) : process_(config) {}

  ~DistributorProcess() override {
    if (client_service_ != nullptr) client_service_->stop();
    process_.stop_serving();
    process_.transport().close();
  }

  Status start(const config::ClusterConfig& config, config::ProcessName name) {
    distributor::DistributorOptions options;
    options.index = name.index;
    options.settings_from_file = config.live_settings_given();
    options.fleet_controllers = config.fleet_controller_addresses();
    options.default_timeout = milliseconds(config.operation_timeout_ms);
    options.storage_timeout = milliseconds(config.storage_timeout_ms);
    options.merges_max = static_cast<unsigned>(config.merges_max);
    options.pending_bytes_max = static_cast<std::size_t>(config.pending_bytes_max);
    options.pending_operations_max = static_cast<std::size_t>(config.pending_operations_max);
    node_ = std::make_unique<distributor::DistributorNode>(options, process_.runtime(), process_.transport());
    FJORD_TRY(process_.runtime().tunables.set("distributor.document_bytes_max", config.document_bytes_max));
    jobs_ = std::make_unique<Jobs>(config, process_.runtime(), process_.transport(), *node_);
    FJORD_TRY(jobs_->start(config, name.to_string(), process_.runtime(), process_.transport()));
    ClientOptions documents;
    documents.addresses = config.distributor_addresses();
    broker_ = std::make_unique<search::SearchBroker>(
        search::SearchBrokerOptions(), process_.runtime(), process_.transport(), node_->snapshots(),
        [this] { return node_->state_in_force(); },
        search::stored_broker_documents(std::move(documents), name.to_string(), process_.runtime(),
                                        process_.transport()));
    client_service_ = std::make_unique<gateway::ClientService>(
        gateway::ClientServiceOptions{name.to_string(), config.distributor_addresses()}, process_.runtime());
    return process_.serve(
        config, name, {node_.get(), jobs_.get(), broker_.get()},
        [this, text = name.to_string()] { return health(text); }, client_service_.get());
  }

  void announce_stop() override { node_->announce_stop(); }
  bool wait_until_not_counted_on(Duration max) override {
    return node_->stop().wait(max, process_.runtime().clock.now() - kPolledWithin);
  }
  const std::string& address() const override { return process_.address(); }
  std::string http_address() const override { return process_.http_address(); }

 private:
  Health health(const std::string& name) const { return health_page(name, node_->health()); }

  ProcessRuntime process_;
  std::unique_ptr<distributor::DistributorNode> node_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<search::SearchBroker> broker_;
  std::unique_ptr<gateway::ClientService> client_service_;
};

}  // namespace

Result<std::unique_ptr<Node>> start_distributor(const config::ClusterConfig& config, config::ProcessName name) {
  auto process = std::make_unique<DistributorProcess>(config);
  FJORD_TRY(process->start(config, name));
  return std::unique_ptr<Node>(std::move(process));
}

}  // namespace fjord
