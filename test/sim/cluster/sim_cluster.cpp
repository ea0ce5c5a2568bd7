#include "fjord/sim/sim_cluster.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <map>

#include "distributor_faults.h"
#include "faulty_services.h"
#include "fjord/common/hash.h"
#include "fjord/document/document_id.h"
#include "fjord/fleetcontroller/fleet_controller.h"
#include "fjord/fleetcontroller/memory_state_store.h"
#include "fjord/search/node_indexes.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/storage/storage_node.h"
#include "sim_process.h"
#include "sim_services.h"

namespace fjord::sim {
namespace {

template <typename T>
T must(Result<T> result) {
  FJORD_CHECK_MSG(result.has_value(), result.status().to_string());
  return std::move(*result);
}

/// The names of the bugs, in the order of Bug.
constexpr std::string_view kBugNames[] = {"none",
                                          "skip-replica",
                                          "forget-tuple",
                                          "read-out-of-sync",
                                          "forget-tokens",
                                          "guard-reads-anywhere",
                                          "skip-repair",
                                          "repair-unmerged",
                                          "serve-old-requests",
                                          "fork-state",
                                          "forget-visited",
                                          "skip-sync",
                                          "ignore-lease",
                                          "token-skips-bucket",
                                          "slice-hole",
                                          "unstable-bound",
                                          "hide-removes",
                                          "ignore-owners",
                                          "count-again-after-takeover",
                                          "lose-dead-letters",
                                          "allow-stops",
                                          "forbid-stops",
                                          "hide-missing",
                                          "keep-outage",
                                          "say-in-sync"};
static_assert(std::size(kBugNames) == static_cast<std::size_t>(Bug::SayInSync) + 1);

}  // namespace

std::string to_string(Bug bug) { return std::string(kBugNames[static_cast<std::size_t>(bug)]); }

Result<Bug> bug_from_string(const std::string& name) {
  const auto found = std::find(std::begin(kBugNames), std::end(kBugNames), name);
  if (found == std::end(kBugNames)) return Status(StatusCode::InvalidArgument, "there is no bug '" + name + "'");
  return static_cast<Bug>(found - std::begin(kBugNames));
}

std::string bug_names() { return fmt::format("{}", fmt::join(std::begin(kBugNames) + 1, std::end(kBugNames), ", ")); }

class SimCluster::StorageProcess final : public Process {
 public:
  StorageProcess(SimCluster& cluster, unsigned index)
      : Process(cluster, "storage." + std::to_string(index)), index_(index) {}

  /// Returns the engine that holds `bucket`.
  spi::PersistenceProvider& provider(BucketId bucket) { return *providers_[bucket.raw() & (providers_.size() - 1)]; }
  const std::vector<spi::PersistenceProvider*>& providers() const { return providers_; }
  /// Reads all that the node holds, and a document of each bucket that it does not hold. Returns an empty string, or
  /// what is wrong: the last of it, or the first if a bucket cannot be listed.
  std::string check_documents() const {
    std::string problem;
    for (spi::PersistenceProvider* provider : providers_) {
      for (BucketId bucket : provider->list_buckets()) {
        const std::string where = name_ + ", " + bucket.to_string();
        Result<std::vector<spi::EntryMeta>> entries = provider->list_entries(bucket);
        if (!entries) return where + ": " + entries.error().to_string();
        for (const spi::EntryMeta& entry : *entries) {
          DocBlockBuilder block;
          const GlobalId gids[] = {entry.gid};
          const Result<std::size_t> done = provider->read_entries(bucket, gids, block, 1);
          if (!done) problem = where + ": " + done.error().to_string();
        }
        const GlobalId absent =
            must(DocumentId::parse("id:sim:item:n=" + std::to_string(bucket.bits()) + ":absent")).gid();
        const Result<spi::StoredDocument> got = provider->get(bucket, absent);
        if (got || got.error().code() != StatusCode::NotFound) problem = where + ": " + got.status().to_string();
      }
    }
    return problem;
  }
  const std::vector<SlotfileProvider*>& engines() const { return engines_; }
  std::uint64_t damaged_in_this_incarnation() const {
    return incarnation_->metrics.counter("fjord_storage_damaged_total", "").value();
  }
  std::uint64_t repaired_buckets() const {
    return repaired_ + (incarnation_ == nullptr ? 0 : repaired_in_this_incarnation());
  }

 protected:
  Status begin() override {
    storage::StorageNodeOptions options;
    options.index = static_cast<std::uint16_t>(index_);
    options.stripes = cluster_.options_.stripes;
    // The simulated network loses messages where a real one would not, so lost requests are repeated soon.
    options.peer_timeout = cluster_.options_.storage_timeout;
    if (cluster_.options_.watch_space) options.directory = "/data";
    options.files = "/data";
    options.boot = std::to_string(boots());
    const bool sync = cluster_.options_.sync && cluster_.options_.bug != Bug::SkipSync;
    if (sync) options.durability = spi::Durability::Sync;
    options.merge_page_entries = 7;  // Small, so that merges have many steps.
    options.merge_block_bytes = 500;
    // Loads are random: time does not pass while a simulated process works.
    const std::uint64_t seed = mix64(mix64(cluster_.options_.seed, 0x6c6f6164), index_ + 1000 * incarnations());
    options.machine_load = [draws = std::make_shared<Random>(seed)] { return draws->uniform(); };
    providers_.clear();
    engines_.clear();
    storage::ProviderFactory engines =
        [this, sync](unsigned stripe, unsigned stripes) -> Result<std::unique_ptr<spi::PersistenceProvider>> {
      SlotfileOptions slotfile;
      slotfile.directory = "/data";
      slotfile.stripe = stripe;
      slotfile.stripes = stripes;
      slotfile.limits.file_bytes_max = 8192;  // Small, so that slotfiles split.
      slotfile.limits.entries_max = 32;
      slotfile.limits.held_bytes_max = 8192;
      slotfile.limits.index_bytes_max = 16384;
      slotfile.limits.journal_bytes_max = 32768;
      slotfile.journal_segment_bytes = 8192;
      slotfile.scrub_interval = SimCluster::kScrubInterval;
      if (sync) slotfile.durability = slotfile.change_durability = Durability::Sync;
      FJORD_TRY_ASSIGN(std::unique_ptr<SlotfileProvider> provider, SlotfileProvider::open(env_, slotfile));
      engines_.push_back(provider.get());
      providers_.push_back(provider.get());
      return std::unique_ptr<spi::PersistenceProvider>(std::move(provider));
    };
    if (cluster_.options_.search) {
      search::IndexOptions index;
      index.step_bytes = 600;  // Small, so that a bucket is indexed in many steps.
      indexes_ = std::make_unique<search::NodeIndexes>(
          options.index, incarnation_->runtime,
          search::disk_indexes(incarnation_->runtime, {.directory = "/search", .recent_bytes_max = 1500}), index);
      engines = indexes_->indexed(std::move(engines));
    }
    Result<std::unique_ptr<storage::StorageNode>> opened =
        storage::StorageNode::open(options, incarnation_->runtime, *incarnation_->transport, engines);
    if (!opened) return opened.error();
    node_ = std::move(*opened);
    if (indexes_ != nullptr) indexes_->follow(node_->snapshots());
    services_ = std::make_unique<StorageServices>(incarnation_->runtime, *incarnation_->transport, *node_,
                                                  cluster_.distributor_addresses(), cluster_.options_);
    if (const std::int64_t bytes = cluster_.options_.task_memory_bytes; bytes != 0) {
      FJORD_CHECK(incarnation_->runtime.tunables.set("mapreduce.task_memory_bytes", bytes).is_ok());
    }
    cluster_.network_.listen(address(), services_->list(*node_), name_);
    return Status::ok();
  }
  void announce_stop() override { node_->announce_stop(); }
  bool is_stop_over() const override { return node_->stop().is_over(); }
  void end() override {
    repaired_ += repaired_in_this_incarnation();
    services_.reset();
    node_.reset();
    indexes_.reset();
    providers_.clear();
    engines_.clear();
  }

 private:
  std::uint64_t repaired_in_this_incarnation() const {
    return incarnation_->metrics.counter("fjord_storage_repaired_total", "").value();
  }

  unsigned index_;
  std::uint64_t repaired_ = 0;
  std::vector<spi::PersistenceProvider*> providers_;
  std::vector<SlotfileProvider*> engines_;
  std::unique_ptr<search::NodeIndexes> indexes_;
  std::unique_ptr<storage::StorageNode> node_;
  std::unique_ptr<StorageServices> services_;
};

class SimCluster::DistributorProcess final : public Process {
 public:
  DistributorProcess(SimCluster& cluster, unsigned index)
      : Process(cluster, "distributor." + std::to_string(index)), index_(index) {}

  std::shared_ptr<const rpc::ClusterSnapshot> snapshot() const { return node_->snapshots().get(); }

 protected:
  Status begin() override {
    distributor::DistributorOptions options;
    options.index = static_cast<std::uint16_t>(index_);
    options.fleet_controllers = cluster_.controller_addresses();
    options.storage_timeout = cluster_.options_.storage_timeout;
    options.merge_timeout = cluster_.options_.merge_timeout;
    limit_buckets(options);
    const Random chance(mix64(cluster_.options_.seed, 1000 * index_ + incarnations()));
    faults_ = std::make_unique<DistributorFaults>(cluster_.options_.bug, *incarnation_->transport, chance);
    node_ = std::make_unique<distributor::DistributorNode>(options, incarnation_->runtime, faults_->transport());
    services_ = std::make_unique<DistributorServices>(name_, incarnation_->runtime, *incarnation_->transport,
                                                      cluster_.distributor_addresses(), cluster_.options_);
    if (const std::int64_t bytes = cluster_.options_.job_memory_bytes; bytes != 0) {
      FJORD_CHECK(incarnation_->runtime.tunables.set("mapreduce.job_memory_bytes", bytes).is_ok());
    }
    std::vector<rpc::Service*> services = services_->list(*node_);
    services.front() = &faults_->wrap(*services.front());
    cluster_.network_.listen(address(), std::move(services), name_);
    return Status::ok();
  }
  void announce_stop() override { node_->announce_stop(); }
  bool is_stop_over() const override { return node_->stop().is_over(); }
  void end() override {
    services_.reset();
    node_.reset();
    faults_.reset();
  }

 private:
  /// Makes buckets split and join: each incarnation of a distributor has other limits for the size of buckets.
  void limit_buckets(distributor::DistributorOptions& options) {
    const std::uint64_t dice = mix64(cluster_.options_.seed, index_ + 100 * incarnations());
    if (dice % 3 == 0) return;
    options.bucket_entries_max = 2 + static_cast<std::int64_t>(dice / 3 % 20);
    options.join_interval = milliseconds(700);
  }

  unsigned index_;
  std::unique_ptr<DistributorFaults> faults_;
  std::unique_ptr<distributor::DistributorNode> node_;
  std::unique_ptr<DistributorServices> services_;
};

class SimCluster::ControllerProcess final : public Process {
 public:
  ControllerProcess(SimCluster& cluster, unsigned index)
      : Process(cluster, "fleetcontroller." + std::to_string(index)) {}

 protected:
  Status begin() override {
    fleetcontroller::FleetControllerOptions options;
    options.distributors = cluster_.distributor_addresses();
    options.storage = cluster_.storage_addresses();
    options.distribution = cluster_.options_.distribution;
    if (options.distribution.empty()) {
      options.distribution = DistributionConfig::flat(static_cast<std::uint16_t>(cluster_.options_.storage_nodes),
                                                      cluster_.options_.redundancy)
                                 .to_string();
    }
    options.down_after = cluster_.options_.down_after;
    options.distribution_bits = cluster_.options_.bits;
    options.name = address();
    cluster_.controller_records_->connect(address());
    store_ = std::make_unique<fleetcontroller::MemoryStateStore>(*cluster_.controller_records_);
    forking_ = std::make_unique<ForkingTransport>(*incarnation_->transport, cluster_.started_);
    rpc::Transport& transport = cluster_.options_.bug == Bug::ForkState ? *forking_ : *incarnation_->transport;
    node_ = must(fleetcontroller::FleetController::open(options, incarnation_->runtime, transport, *store_));
    cluster_.network_.listen(address(), {node_.get()}, name_);
    return Status::ok();
  }
  void end() override {
    // The controller's session ends without a resignation, as after a crash.
    cluster_.controller_records_->disconnect(address());
    node_.reset();
    store_.reset();
    forking_.reset();
  }

 private:
  std::unique_ptr<ForkingTransport> forking_;
  std::unique_ptr<fleetcontroller::MemoryStateStore> store_;
  std::unique_ptr<fleetcontroller::FleetController> node_;
};

class SimCluster::ClientProcess final : public Process {
 public:
  ClientProcess(SimCluster& cluster, std::size_t index) : Process(cluster, "client." + std::to_string(index)) {}
  AsyncClient& client() { return *client_; }

 protected:
  Status begin() override {
    ClientOptions options;
    options.addresses = cluster_.distributor_addresses();
    options.attempt_timeout = cluster_.options_.attempt_timeout;
    options.consistency = cluster_.options_.reads;
    executor_ = incarnation_->scheduler->make_executor("client");
    client_ = std::make_unique<AsyncClient>(options, incarnation_->runtime, *incarnation_->transport, *executor_);
    return Status::ok();
  }
  void end() override {
    client_.reset();
    end_executor(executor_);
  }

 private:
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<AsyncClient> client_;
};

SimCluster::SimCluster(const SimClusterOptions& options)
    : options_(options),
      scheduler_(options.seed),
      random_(mix64(options.seed, 0x636c7573746572)),
      network_(scheduler_, random_.fork()),
      bulk_(make_inline_bulk_executor()) {
  for (unsigned i = 0; i < options_.storage_nodes; ++i) storage_.push_back(std::make_unique<StorageProcess>(*this, i));
  for (unsigned i = 0; i < options_.distributors; ++i) {
    distributors_.push_back(std::make_unique<DistributorProcess>(*this, i));
  }
  controller_records_ = std::make_unique<fleetcontroller::MemoryStateEnsemble>(scheduler_.clock());
  for (unsigned i = 0; i < options_.controllers; ++i) {
    controllers_.push_back(std::make_unique<ControllerProcess>(*this, i));
  }
}

SimCluster::~SimCluster() {
  for (auto& process : clients_) process->crash();
  for (auto& process : distributors_) process->crash();
  for (auto& process : storage_) process->crash();
  for (auto& process : controllers_) process->crash();
}

std::unique_ptr<SimCluster> SimCluster::copy(std::uint64_t seed) const {
  SimClusterOptions options = options_;
  options.seed = seed;
  auto twin = std::make_unique<SimCluster>(options);
  twin->started_ = true;
  twin->scheduler_.clock().advance_to(scheduler_.clock().now());
  while (twin->storage_.size() < storage_.size()) {
    twin->storage_.push_back(std::make_unique<StorageProcess>(*twin, static_cast<unsigned>(twin->storage_.size())));
  }
  while (twin->distributors_.size() < distributors_.size()) {
    const auto index = static_cast<unsigned>(twin->distributors_.size());
    twin->distributors_.push_back(std::make_unique<DistributorProcess>(*twin, index));
  }
  for (std::size_t i = 0; i < storage_.size(); ++i) twin->storage_[i]->continue_from(*storage_[i]);
  for (std::size_t i = 0; i < distributors_.size(); ++i) twin->distributors_[i]->continue_from(*distributors_[i]);
  for (std::size_t i = 0; i < controllers_.size(); ++i) twin->controllers_[i]->continue_from(*controllers_[i]);
  twin->controller_records_->set_records(controller_records_->copy_records());
  twin->add_client();
  return twin;
}

/// Returns the distributors of the configuration files, without those added later.
std::vector<rpc::Address> SimCluster::distributor_addresses() const {
  std::vector<rpc::Address> addresses;
  for (unsigned i = 0; i < options_.distributors; ++i) addresses.push_back(distributors_[i]->address());
  return addresses;
}

std::vector<rpc::Address> SimCluster::storage_addresses() const {
  std::vector<rpc::Address> addresses;
  for (unsigned i = 0; i < options_.storage_nodes; ++i) addresses.push_back(storage_[i]->address());
  return addresses;
}

std::vector<rpc::Address> SimCluster::controller_addresses() const {
  std::vector<rpc::Address> addresses;
  for (const auto& process : controllers_) addresses.push_back(process->address());
  return addresses;
}

void SimCluster::crash_storage(unsigned index) { storage_[index]->crash(); }
void SimCluster::restart_storage(unsigned index) { storage_[index]->start(); }
bool SimCluster::storage_alive(unsigned index) const { return storage_[index]->alive(); }

bool SimCluster::damage_storage(unsigned index) {
  storage_[index]->note_disturbed();
  SimEnv& env = storage_[index]->env();
  std::vector<std::string> paths;
  const Result<std::vector<std::string>> files = env.list_directory("/data");
  if (!files) return false;  // No files: the disk was wiped, and the process has not started since.
  for (const std::string& name : *files) {
    // Catalogs are spared: a node with two bad catalog duplicates does not start, and an operator has to replace it.
    if (name.ends_with(".slot") || name.starts_with("journal-")) paths.push_back("/data/" + name);
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) return false;
  const std::string& path = paths[random_.below(paths.size())];
  const std::unique_ptr<RandomAccessFile> file = must(env.open_random_access(path));
  const std::uint64_t size = must(file->size());
  if (size == 0) return false;
  const std::uint64_t offset = random_.below(size);
  ++damages_;
  // A truncated end of a journal cannot be told from one that was never written.
  if (path.ends_with(".slot") && random_.below(8) == 0) {
    scheduler_.trace("cut off storage." + std::to_string(index) + " " + path + " " + std::to_string(offset));
    return file->truncate(offset).is_ok();
  }
  const int bit = static_cast<int>(random_.below(8));
  scheduler_.trace("flip bit of storage." + std::to_string(index) + " " + path + " " + std::to_string(offset));
  FJORD_CHECK(env.flip_bit(path, offset, bit).is_ok());
  return true;
}

std::string SimCluster::damage_slotfile(const std::string& name, Random& random) {
  SimEnv& env = process(name).env();
  const Result<std::vector<std::string>> files = env.list_directory("/data");
  if (!files) return {};
  std::vector<std::string> paths;
  for (const std::string& file : *files) {
    if (file.ends_with(".slot")) paths.push_back("/data/" + file);
  }
  if (paths.empty()) return {};
  const std::string& path = paths[random.below(paths.size())];
  const std::uint64_t size = must(must(env.open_random_access(path))->size());
  if (size == 0) return {};
  const std::uint64_t length = std::min(size, std::uint64_t{64} << random.below(8));
  const std::uint64_t from = random.below(size - length + 1);
  process(name).note_disturbed();
  for (std::uint64_t offset = from; offset < from + length; offset += 8) {
    FJORD_CHECK(env.flip_bit(path, offset, static_cast<int>(random.below(8))).is_ok());
  }
  std::string text = fmt::format("bytes {} to {} of {} on {}", from, from + length, path, name);
  scheduler_.trace("damage of " + text);
  return text;
}

std::uint64_t SimCluster::repaired_buckets() {
  std::uint64_t sum = 0;
  for (const auto& process : storage_) sum += process->repaired_buckets();
  return sum;
}

void SimCluster::crash_distributor(unsigned index) { distributors_[index]->crash(); }
void SimCluster::restart_distributor(unsigned index) { distributors_[index]->start(); }
bool SimCluster::distributor_alive(unsigned index) const { return distributors_[index]->alive(); }
void SimCluster::crash_controller(unsigned index) { controllers_[index]->crash(); }
void SimCluster::restart_controller(unsigned index) { controllers_[index]->start(); }
bool SimCluster::controller_alive(unsigned index) const { return controllers_[index]->alive(); }

/// Also resumes paused processes.
void SimCluster::restart_everything() {
  for (auto& process : controllers_) process->resume();
  for (auto& process : storage_) process->resume();
  for (auto& process : distributors_) process->resume();
  for (auto& process : controllers_) process->start();
  for (auto& process : storage_) process->start();
  for (auto& process : distributors_) process->start();
}

SimCluster::Process& SimCluster::process(const std::string& name) {
  for (const auto& process : controllers_) {
    if (process->name() == name) return *process;
  }
  for (const auto& process : storage_) {
    if (process->name() == name) return *process;
  }
  for (const auto& process : distributors_) {
    if (process->name() == name) return *process;
  }
  FJORD_CHECK_MSG(false, "there is no process " + name);
}

void SimCluster::crash(const std::string& name) { process(name).crash(); }
void SimCluster::stop(const std::string& name) { process(name).stop_controlled(); }
void SimCluster::restart(const std::string& name) { process(name).start(); }
bool SimCluster::alive(const std::string& name) { return process(name).alive(); }
void SimCluster::pause(const std::string& name) { process(name).pause(); }
void SimCluster::resume(const std::string& name) { process(name).resume(); }

std::uint64_t SimCluster::refused_for_space(const std::string& name) { return process(name).env().refused_for_space(); }
std::string SimCluster::add_storage_node() {
  storage_.push_back(std::make_unique<StorageProcess>(*this, static_cast<unsigned>(storage_.size())));
  storage_.back()->start();
  return storage_.back()->name();
}

std::string SimCluster::add_distributor() {
  distributors_.push_back(std::make_unique<DistributorProcess>(*this, static_cast<unsigned>(distributors_.size())));
  distributors_.back()->start();
  return distributors_.back()->name();
}

void SimCluster::retire(const std::string& name) {
  scheduler_.trace("end of " + name);
  process(name).retire();
}

std::string SimCluster::leader() const {
  const std::string address = controller_records_->leadership().leader;
  for (const auto& process : controllers_) {
    if (process->address() == address) return process->name();
  }
  return controllers_.front()->name();
}

namespace {

template <typename Processes>
std::vector<std::string> names_of(const Processes& processes) {
  std::vector<std::string> names;
  for (const auto& process : processes) {
    if (!process->is_retired()) names.push_back(process->name());
  }
  return names;
}

}  // namespace

std::vector<std::string> SimCluster::storage_names() const { return names_of(storage_); }
std::vector<std::string> SimCluster::distributor_names() const { return names_of(distributors_); }
std::vector<std::string> SimCluster::controller_names() const { return names_of(controllers_); }
bool SimCluster::is_running(const std::string& name) { return process(name).is_running(); }
MonotonicTime SimCluster::disturbed_at(const std::string& name) { return process(name).disturbed_at(); }

std::uint64_t SimCluster::incarnation_of(const std::string& name) { return process(name).incarnations(); }

SimCluster::StorageProcess* SimCluster::storage_process(const std::string& name) {
  const auto found = std::find_if(storage_.begin(), storage_.end(), [&](const auto& p) { return p->name() == name; });
  return found == storage_.end() || !(*found)->alive() ? nullptr : found->get();
}

Result<std::vector<spi::EntryMeta>> SimCluster::entries_of(const std::string& name, BucketId bucket) {
  StorageProcess* storage = storage_process(name);
  if (storage == nullptr || storage->providers().empty()) return Status(StatusCode::NotFound, name + " is down");
  return storage->provider(bucket).list_entries(bucket);
}

Result<spi::Forgotten> SimCluster::forgotten_of(const std::string& name, BucketId bucket) {
  StorageProcess* storage = storage_process(name);
  if (storage == nullptr || storage->providers().empty()) return Status(StatusCode::NotFound, name + " is down");
  return storage->provider(bucket).forgotten(bucket);
}

std::size_t SimCluster::replicas_that_forgot() {
  std::size_t count = 0;
  for (unsigned i = 0; i < storage_.size(); ++i) {
    const std::string name = "storage." + std::to_string(i);
    for (const auto& [bucket, set] : sets_of(name)) {
      const Result<spi::Forgotten> forgotten = forgotten_of(name, bucket);
      count += forgotten && forgotten->checksum != 0 ? 1 : 0;
    }
  }
  return count;
}

std::vector<std::pair<BucketId, ReplicaSet>> SimCluster::sets_of(const std::string& name) {
  std::vector<std::pair<BucketId, ReplicaSet>> sets;
  StorageProcess* storage = storage_process(name);
  if (storage == nullptr) return sets;
  for (spi::PersistenceProvider* provider : storage->providers()) {
    for (BucketId bucket : provider->list_buckets()) {
      Result<ReplicaSet> set = provider->replica_set(bucket);
      if (set) sets.emplace_back(bucket, std::move(*set));
    }
  }
  return sets;
}

std::vector<std::string> SimCluster::running_storage_names() const {
  std::vector<std::string> running;
  for (const auto& storage : storage_) {
    if (storage->alive()) running.push_back(storage->name());
  }
  return running;
}

std::shared_ptr<const rpc::ClusterSnapshot> SimCluster::known_snapshot() const {
  for (const auto& distributor : distributors_) {
    const auto snapshot = distributor->alive() ? distributor->snapshot() : nullptr;
    if (snapshot != nullptr) return snapshot;
  }
  return nullptr;
}

unsigned SimCluster::redundancy() const {
  const auto snapshot = known_snapshot();
  return snapshot == nullptr ? 0 : snapshot->distribution().redundancy();
}

std::vector<std::vector<std::string>> SimCluster::storage_groups() const {
  std::vector<std::vector<std::string>> groups;
  const auto snapshot = known_snapshot();
  if (snapshot == nullptr) return groups;
  const auto nodes = snapshot->distribution().flat_nodes();
  for (const DistributionConfig::FlatGroup& group : snapshot->distribution().flat_groups()) {
    if (!group.is_leaf || group.first_node == group.node_end) continue;
    groups.emplace_back();
    for (std::uint32_t i = group.first_node; i < group.node_end; ++i) {
      groups.back().push_back("storage." + std::to_string(nodes[i].index));
    }
  }
  return groups;
}

bool SimCluster::checkpoint(const std::string& name) {
  StorageProcess* storage = storage_process(name);
  if (storage == nullptr) return false;
  scheduler_.trace("checkpoint of " + name);
  bool all_done = true;
  for (SlotfileProvider* engine : storage->engines()) all_done = engine->checkpoint().is_ok() && all_done;
  return all_done;
}

void SimCluster::work_in_background(const std::string& name, unsigned steps) {
  // Later than any wait between two pieces of background work.
  static constexpr Duration kAfterAllWaits = std::chrono::hours(1);
  StorageProcess* storage = storage_process(name);
  if (storage == nullptr) return;
  for (spi::PersistenceProvider* provider : storage->providers()) {
    for (unsigned i = 0; i < steps; ++i) provider->maintain(scheduler_.clock().now() + kAfterAllWaits);
  }
}

void SimCluster::read_everything(const std::string& name) {
  StorageProcess* storage = storage_process(name);
  if (storage == nullptr) return;
  for (spi::PersistenceProvider* provider : storage->providers()) {
    for (const BucketId bucket : provider->list_buckets()) {
      const Result<std::vector<spi::EntryMeta>> entries = provider->list_entries(bucket);
      if (!entries) continue;
      for (const spi::EntryMeta& entry : *entries) {
        DocBlockBuilder block;
        const GlobalId gids[] = {entry.gid};
        static_cast<void>(provider->read_entries(bucket, gids, block, 1));  // Damage is noted by the engine.
      }
    }
  }
}

bool SimCluster::has_scrubbed(const std::string& name) {
  StorageProcess* storage = storage_process(name);
  if (storage == nullptr) return false;
  const auto& engines = storage->engines();
  return std::all_of(engines.begin(), engines.end(), [](const SlotfileProvider* engine) {
    return engine->list_buckets().empty() || engine->stats().scrub_passes > 0;
  });
}

std::uint64_t SimCluster::damaged_buckets(const std::string& name) {
  StorageProcess* storage = storage_process(name);
  return storage == nullptr ? 0 : storage->damaged_in_this_incarnation();
}

AsyncClient& SimCluster::admin() { return clients_.front()->client(); }

AsyncClient& SimCluster::add_client() {
  clients_.push_back(std::make_unique<ClientProcess>(*this, clients_.size()));
  clients_.back()->start();
  return clients_.back()->client();
}

void SimCluster::start() {
  restart_everything();
  AsyncClient& admin = add_client();
  bool deployed = false;
  rpc::DeploySchemas request;
  request.schemas = options_.schemas;
  admin.call_any(std::move(request), seconds(20), [&](Result<rpc::DeploySchemasReply> reply) {
    FJORD_CHECK_MSG(reply && reply->status, reply ? reply->status.to_string() : reply.error().to_string());
    deployed = true;
  });
  FJORD_CHECK(run_until([&] { return deployed; }, seconds(30)));
  FJORD_CHECK(run_until_steady(seconds(30)));
  started_ = true;
}

bool SimCluster::run_until_steady(Duration limit) {
  AsyncClient& client = clients_.front()->client();
  MonotonicTime end = scheduler_.clock().now() + limit;
  while (scheduler_.clock().now() < end) {
    bool answered = false;
    bool steady = false;
    unsteady_ = "no status";
    client.call_any(rpc::GetStatus{}, seconds(2), [&](Result<rpc::GetStatusReply> reply) {
      answered = true;
      if (!reply || !reply->status || reply->nodes.empty()) return;
      unsteady_.clear();
      for (const rpc::NodeStatus& node : reply->nodes) {
        const rpc::PollReply& last = node.last;
        const bool is_well = node.state == "up" && node.answered_us_ago >= 0 && node.answered_us_ago < 1'000'000 &&
                             last.state_version == reply->info.state_version &&
                             last.schema_version == reply->info.schema_version && last.buckets_out_of_sync == 0 &&
                             last.buckets_unavailable == 0 && last.buckets_damaged == 0;
        if (is_well) continue;
        unsteady_ += fmt::format("{} is {} with state {} of {}, {} buckets out of sync, {} unavailable, {} damaged; ",
                                 node.node, node.state, last.state_version, reply->info.state_version,
                                 last.buckets_out_of_sync, last.buckets_unavailable, last.buckets_damaged);
      }
      steady = unsteady_.empty();
    });
    scheduler_.run_until([&] { return answered; }, seconds(5));
    if (steady) {
      // The report may be one poll old, so the cluster has to stay steady for two polls.
      static constexpr Duration kTwoPolls = milliseconds(800);
      scheduler_.run_for(kTwoPolls);
      if (check_replicas().empty()) return true;
    } else {
      scheduler_.run_for(milliseconds(200));
    }
  }
  return false;
}

std::string SimCluster::check_replicas() {
  if (!unsteady_.empty()) return unsteady_;
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = distributors_.front()->snapshot();
  if (snapshot == nullptr) return "distributor.0 has just started and knows no cluster state";
  std::map<BucketId, std::vector<unsigned>> holders;
  for (unsigned i = 0; i < storage_.size(); ++i) {
    for (spi::PersistenceProvider* provider : storage_[i]->providers()) {
      for (BucketId bucket : provider->list_buckets()) holders[bucket].push_back(i);
    }
  }
  for (auto& [bucket, nodes] : holders) {
    NodeList ideal = snapshot->ideal_nodes(bucket);
    if (nodes.size() != ideal.size()) {
      std::string sets;
      for (unsigned node : nodes) {
        const Result<ReplicaSet> set = storage_[node]->provider(bucket).replica_set(bucket);
        sets += " storage." + std::to_string(node) + " (epoch " + std::to_string(set ? set->epoch : 0) + ")";
      }
      const auto owner = snapshot->distributor_of(bucket);
      return bucket.to_string() + " is on " + std::to_string(nodes.size()) + " nodes instead of " +
             std::to_string(ideal.size()) + ":" + sets + "; its owner is distributor." +
             (owner ? std::to_string(*owner) : "none");
    }
    std::vector<spi::EntryMeta> first;
    for (std::uint16_t node : ideal) {
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) {
        return bucket.to_string() + " is not on storage." + std::to_string(node);
      }
      Result<std::vector<spi::EntryMeta>> entries = storage_[node]->provider(bucket).list_entries(bucket);
      if (!entries) return bucket.to_string() + ": " + entries.error().to_string();
      if (node == ideal.front()) {
        first = std::move(*entries);
      } else if (*entries != first) {
        return bucket.to_string() + " differs between storage." + std::to_string(ideal.front()) + " and storage." +
               std::to_string(node);
      }
    }
  }
  return {};
}

std::string SimCluster::check_documents() {
  std::string problem;
  for (const auto& process : storage_) {
    std::string one = process->check_documents();
    if (!one.empty()) problem = std::move(one);
  }
  return problem;
}

std::string SimCluster::check_documents_of(const std::string& name) { return storage_process(name)->check_documents(); }

}  // namespace fjord::sim
