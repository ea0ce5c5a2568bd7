#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <thread>

#include "directory_lock.h"
#include "fjord/client/client.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "fjord/mapreduce/application.h"
#include "fjord/mapreduce/document_sink.h"
#include "fjord/mapreduce/task_visitors.h"
#include "fjord/monitoring/metric_http_server.h"
#include "fjord/node/node.h"
#include "fjord/plugins/plugin_directory.h"
#include "fjord/scripting/script_application.h"
#include "fjord/search/node_indexes.h"
#include "fjord/search/search_service.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/storage/storage_node.h"
#include "fjord/visitors/visitor_service.h"
#include "health_page.h"
#include "plugin_options.h"
#include "process_load.h"
#include "process_runtime.h"
#include "storage_engine.h"

namespace fjord {
namespace {

/// Returns a number made of the device and the inode of a folder: another folder at the same path has another one.
Result<std::uint64_t> folder_stamp(const std::string& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) {
    return Status(errno == ENOENT ? StatusCode::NotFound : StatusCode::IoError,
                  fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return mix64(found.st_dev, found.st_ino);
}

/// Returns a name of the time since the machine was started, which the kernel draws; empty if it is not to be had.
std::string boot_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name;
  return std::getline(file, name) ? name : std::string();
}

unsigned cpu_count() { return std::max(1U, std::thread::hardware_concurrency()); }

class StorageProcess final : public Node, private rpc::Service {
 public:
  StorageProcess(const config::ClusterConfig& config, DirectoryLock lock)
      : lock_(std::move(lock)),
        process_(config),
        client_executor_(process_.runtime().scheduler.make_executor("fjord-sink")),
        client_(client_options(config), process_.runtime(), process_.transport(), *client_executor_),
        sink_(client_, mapreduce::kTaskPutTimeout) {}

  ~StorageProcess() override {
    process_.stop_serving();
    process_.transport().close();
  }

  Status start(const config::ClusterConfig& config, config::ProcessName name) {
    Runtime& runtime = process_.runtime();
    storage::StorageNodeOptions options = storage_node_options(config, name.index);
    sync_executor_ = runtime.scheduler.make_executor("fjord-sync");
    const unsigned stripes = config.stripes != 0 ? static_cast<unsigned>(config.stripes) : std::min(2U, cpu_count());
    FJORD_TRY_ASSIGN(engine_, choose_storage_engine(config, name.index, options.directory + "/buckets", stripes,
                                                    runtime, *sync_executor_));
    options.stripes = engine_.stripes;
    options.files = options.directory + "/buckets";
    options.folder_stamp = [files = options.files] { return folder_stamp(files); };
    options.boot = boot_name();
    options.machine_load = [this] { return load_.part(); };
    FJORD_TRY(set_space_limits(config));
    indexes_ = std::make_unique<search::NodeIndexes>(
        name.index, runtime, search::disk_indexes(runtime, {.directory = options.directory + "/search"}));
    FJORD_TRY_ASSIGN(node_, storage::StorageNode::make(options, runtime, process_.transport()));
    FJORD_TRY(start_visitors(config, options.directory));
    // The fleet controller hears that this node starts, however long it takes to open the files.
    FJORD_TRY(process_.serve(config, name, {this}, [this, text = name.to_string()] { return health(text); }));
    FJORD_TRY(node_->open_stripes(indexes_->indexed(engine_.open)));
    indexes_->follow(node_->snapshots());
    search_service_ = std::make_unique<search::SearchService>(
        runtime, *node_, node_->snapshots(),
        search::SearchServiceOptions{.stripes = options.stripes, .machine_load = [this] { return load_.part(); }});
    has_all_services_ = true;
    return Status::ok();
  }

  /// Gives a call to the service that knows it.
  bool handle(rpc::Request& request, rpc::Responder& respond) override {
    if (!has_all_services_) return handle_while_starting(request, respond);
    rpc::Service* const services[] = {node_.get(), visitor_service_.get(), plugin_service_.get(),
                                      search_service_.get()};
    return std::any_of(std::begin(services), std::end(services),
                       [&](rpc::Service* service) { return service->handle(request, respond); });
  }

  void announce_stop() override { node_->announce_stop(); }
  bool wait_until_not_counted_on(Duration max) override {
    return node_->stop().wait(max, process_.runtime().clock.now() - kPolledWithin);
  }
  const std::string& address() const override { return process_.address(); }
  std::string http_address() const override { return process_.http_address(); }

 private:
  Status set_space_limits(const config::ClusterConfig& config) {
    const std::pair<const char*, std::int64_t> limits[] = {
        {"storage.space_warn_percent", config.space_warn_percent},
        {"storage.space_throttle_percent", config.space_throttle_percent},
        {"storage.space_refuse_external_percent", config.space_refuse_external_percent},
        {"storage.space_refuse_all_percent", config.space_refuse_all_percent},
        {"storage.space_hysteresis_percent", config.space_hysteresis_percent},
        {"storage.space_reserve_bytes", config.space_reserve_bytes},
    };
    for (const auto& [name, value] : limits) {
      const Status status = process_.runtime().tunables.set(name, value);
      if (status.code() != StatusCode::NotFound) FJORD_TRY(status);  // NotFound: the value is kept for its declaration
    }
    return Status::ok();
  }

  Status start_visitors(const config::ClusterConfig& config, const std::string& directory) {
    visitors::add_builtin_visitors(visitors_);
    mapreduce::add_builtin_applications(applications_);
    scripting::add_script_application(
        applications_, {.memory_bytes = &process_.runtime().tunables.declare("mapreduce.script_memory_bytes")});
    mapreduce::TaskOptions tasks;
    tasks.spill_directory = directory + "/spill";
    tasks.counts_processors = true;
    mapreduce::add_task_visitors(visitors_, applications_, sink_, process_.runtime(), tasks);
    const plugins::PluginOptions plugin_options = plugin_options_of(config);
    FJORD_TRY_ASSIGN(auto libraries,
                     plugins::load_plugins(plugin_options, process_.runtime().metrics, visitors_, applications_));
    plugin_service_ = std::make_unique<plugins::PluginService>(std::move(libraries));
    visitors::VisitorServiceOptions options;
    options.cpus = cpu_count();
    options.docblock_bytes = static_cast<std::uint32_t>(config.docblock_bytes);
    options.idle_max = milliseconds(config.visitor_idle_ms);
    visitor_service_ =
        std::make_unique<visitors::VisitorService>(options, process_.runtime(), *node_, node_->snapshots(), visitors_);
    if (config.visitors_max == 0) return Status::ok();
    return process_.runtime().tunables.set("storage.visitors_max", config.visitors_max);
  }

  /// Until all services are there, only the fleet controller is answered.
  bool handle_while_starting(rpc::Request& request, rpc::Responder& respond) {
    if (std::holds_alternative<rpc::Poll>(request)) return node_->handle(request, respond);
    respond(rpc::error_reply(request, {StatusCode::NotReady, "the storage node is starting"}));
    return true;
  }

  Health health(const std::string& name) const { return health_page(name, node_->health()); }

  static ClientOptions client_options(const config::ClusterConfig& config) {
    ClientOptions options;
    options.addresses = config.distributor_addresses();
    return options;
  }

  DirectoryLock lock_;
  ProcessLoad load_;
  ProcessRuntime process_;
  // The map and reduce tasks of this node write through this client, like any other client.
  std::unique_ptr<Executor> client_executor_;
  AsyncClient client_;
  mapreduce::ClientSink sink_;
  mapreduce::ApplicationRegistry applications_;
  std::unique_ptr<Executor> sync_executor_;  ///< Syncs the files of all stripes.
  StorageEngine engine_;
  std::unique_ptr<search::NodeIndexes> indexes_;
  std::unique_ptr<storage::StorageNode> node_;
  std::unique_ptr<search::SearchService> search_service_;
  visitors::VisitorRegistry visitors_;
  std::unique_ptr<plugins::PluginService> plugin_service_;
  std::unique_ptr<visitors::VisitorService> visitor_service_;
  std::atomic<bool> has_all_services_ = false;  ///< All of the services are made, and do not change any more.
};

}  // namespace

Result<std::unique_ptr<Node>> start_storage(const config::ClusterConfig& config, config::ProcessName name) {
  FJORD_TRY_ASSIGN(DirectoryLock lock,
                   DirectoryLock::acquire(config.find(name)->directory, name.to_string(), config.allow_shared_folders));
  auto process = std::make_unique<StorageProcess>(config, std::move(lock));
  FJORD_TRY(process->start(config, name));
  return std::unique_ptr<Node>(std::move(process));
}

}  // namespace fjord
