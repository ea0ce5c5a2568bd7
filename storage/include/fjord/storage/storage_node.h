#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fjord/common/runtime.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/controlled_stop.h"
#include "fjord/rpc/live_settings.h"
#include "fjord/rpc/transport.h"
#include "fjord/storage/spi/bucket_access.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::storage {

class FolderGuard;
class ForegroundCpus;
class MaintenanceBudget;
class PollAnswers;
class SpaceMonitor;
class UtilisationMeter;
struct SpaceState;

struct StorageNodeOptions {
  std::uint16_t index = 0;
  /// Number of executors that share the buckets; a power of two. May change between starts.
  unsigned stripes = 2;
  /// Maximum number of entries in one window of a merge, for each of the two replicas compared.
  std::uint32_t merge_page_entries = 20'000;
  /// Maximum bytes of documents in one block of a merge.
  std::uint32_t merge_block_bytes = 256U << 10;
  /// Durability of writes for which the client asks for none.
  spi::Durability durability = spi::Durability::Process;
  /// Folder of the engine's files. When its file system fills up, the node accepts fewer and fewer writes. If this is
  /// empty, the free space is not watched.
  std::string directory = {};
  /// Folder that has the identity of the node's files (storage/FORMAT.md), and the files of the engine. It is watched:
  /// when it is gone, the node takes no part any more. Empty: the node keeps no files.
  std::string files = {};
  /// Returns a number that another folder at the path `files` does not have, for example of its device and inode.
  /// Called on any thread. Empty: only the identity in the folder tells.
  std::function<Result<std::uint64_t>()> folder_stamp = {};
  /// Names the time since the machine was started. A process that opens the same folder under the same name has lost
  /// nothing of what the one before it acknowledged. Empty: not known.
  std::string boot = {};
  /// Maximum time for which a merge waits for one page or block of a peer.
  Duration peer_timeout = seconds(10);
  /// Interval at which the remove entries of a bucket are counted. They are also counted after some have been dropped.
  Duration count_removed_interval = seconds(600);
  /// Share of the machine that this process uses, 0 to 1; called on a stripe's executor. Empty: only the time that
  /// stripes spend on operations counts as load (ApplyReply::utilisation_permille).
  std::function<double()> machine_load = {};
  /// Names of the settings to which the configuration file gives a value.
  std::set<std::string> settings_from_file = {};
};

/// State of a storage node as reported on /health.
struct StorageNodeHealth {
  std::uint64_t state_version = 0;
  std::uint64_t config_version = 0;  ///< Version of the live configuration in use.
  std::string state;  ///< State of this node in the cluster state: "up", "down", ...; empty before there is one.
  /// Reason why the node refuses the fleet controller's polls: they are addressed to a node of another name. Empty: the
  /// name is right.
  std::string misnamed;
  std::uint32_t space_stage = 0;  ///< See PollReply::space_stage.
  std::string space;              ///< The measured space and the limit that it exceeds; empty in the normal stage.
  std::uint64_t buckets = 0;
  std::uint64_t damaged_buckets = 0;
  bool is_starting = false;  ///< The files are not all open yet.
  bool is_stopping = false;  ///< announce_stop() was called.
  /// Why the node takes no part, or which writes or background work fail; empty: neither.
  std::string fault;
  bool is_failed = false;  ///< The node takes no part until it is started again; `fault` says why.
};

/// Opens the engine of stripe number `stripe`, of `stripes` in all.
using ProviderFactory =
    std::function<Result<std::unique_ptr<spi::PersistenceProvider>>(unsigned stripe, unsigned stripes)>;

/// Holds buckets: applies the writes that distributors send, reports the content of buckets, and fetches missing
/// entries from other replicas.
///
/// A node that make() has returned says in answers to polls that it is initializing, and answers everything else with
/// NotReady, until open_stripes() has succeeded. After announce_stop() it says that it stops, and serves as before.
///
/// Threading: `handle` and `on_stripe` from any thread; a bucket is touched only on its stripe's executor.
/// Lifetime: `runtime` and `transport` outlive the node; nothing calls it once its destructor has begun.
class StorageNode final : public rpc::Service, public spi::BucketAccess {
 public:
  /// Returns a node without its files. Errors: InvalidArgument.
  static Result<std::unique_ptr<StorageNode>> make(const StorageNodeOptions& options, Runtime& runtime,
                                                   rpc::Transport& transport);
  /// Opens all stripes; called once. `handle` may be called meanwhile. Errors: those of the engine.
  Status open_stripes(const ProviderFactory& providers);
  /// Makes a node and opens all stripes.
  static Result<std::unique_ptr<StorageNode>> open(const StorageNodeOptions& options, Runtime& runtime,
                                                   rpc::Transport& transport, const ProviderFactory& providers);
  ~StorageNode() override;

  /// Makes all later answers to polls say that this node stops. Threading: any thread.
  void announce_stop() { stop_.announce(clock_.now()); }
  /// Threading: any thread.
  const rpc::ControlledStop& stop() const { return stop_; }

  bool handle(rpc::Request& request, rpc::Responder& respond) override;
  void on_stripe(BucketId bucket, UniqueFunction<void(spi::PersistenceProvider&)> task) override;
  void count_searches(std::span<const spi::SearchLoad> loads) override;

  /// Returns the holder of the cluster state in use. It is empty until a state counts this process as started.
  const rpc::SnapshotHolder& snapshots() const { return snapshots_; }

  /// Returns the version of the cluster state in use; 0 before there is one.
  std::uint64_t state_version() const;

  /// Threading: any thread may call it.
  StorageNodeHealth health() const;

 private:
  class Stripe;
  friend class BucketMerge;  // A merge works with the stripe's private parts.
  friend class GarbageScan;  // A garbage scan works with the stripe's private parts.
  StorageNode(const StorageNodeOptions& options, Runtime& runtime, rpc::Transport& transport);

  std::size_t stripe_of(BucketId bucket) const { return bucket.raw() & (stripes_.size() - 1); }
  void apply(rpc::Apply request, rpc::Responder respond);
  void refuse_late_gets(const rpc::Apply& request, std::vector<std::uint32_t>& indexes,
                        std::vector<rpc::OperationResult>& results) const;
  struct InfoQuestion;
  struct SetsMessage;
  void get_bucket_info(rpc::GetBucketInfo request, rpc::Responder respond);
  void report_next(std::size_t s, const std::shared_ptr<InfoQuestion>& question);
  void get_loads(rpc::Responder respond);
  void set_replica_sets(rpc::SetReplicaSets request, rpc::Responder respond);
  void set_next(std::size_t s, std::size_t from, const std::shared_ptr<SetsMessage>& message);
  void delete_buckets(rpc::DeleteBuckets request, rpc::Responder respond);
  void poll(rpc::Poll request, rpc::Responder respond);
  void report_for_polls(std::size_t s);
  void fill_in(rpc::PollReply& reply, bool wants_settings);
  /// Answers while the stripes are being opened.
  void handle_while_starting(rpc::Request& request, rpc::Responder& respond);
  rpc::PollReply poll_while_starting(const rpc::Poll& request);
  /// Fills in what an answer says of the cluster state and the configuration that this node has received.
  void add_versions(rpc::PollReply& reply, const rpc::ClusterSnapshot& received);
  void refuse_poll(Status why, rpc::Responder respond) const;
  /// Applies the cluster state and schemas that a poll carries. Errors: InvalidArgument if the poll is addressed to
  /// another node; those of SnapshotHolder::update.
  Status apply_poll(const rpc::Poll& request);
  rpc::GetClusterInfoReply cluster_info() const;
  void set_space(const SpaceState& space);
  /// Notes that the node's folder is not the one that it has opened: from now on nothing is written or acknowledged.
  void fail(const Status& why);
  void fail_stripes(const Status& why);
  /// Notes whether files can be made in the node's folder.
  void note_probe(const Status& probed);
  /// Adds to the answer what the node knows of its folder.
  void describe_folder(rpc::PollReply& reply) const;
  void end_period_later();

  StorageNodeOptions options_;
  Runtime& runtime_;
  rpc::Transport& transport_;
  Clock& clock_;
  std::uint64_t incarnation_;
  MonotonicTime began_at_;  // Time since which loads are counted.
  Gauge& damaged_buckets_;
  Gauge& fault_gauge_;
  std::vector<std::uint64_t> kept_from_;  ///< PollReply::kept_from; does not change once the node is made.
  const std::string name_;                ///< Name of this node, for example "storage.2".
  mutable std::mutex mutex_;
  std::string misnamed_ FJORD_GUARDED_BY(mutex_);  ///< See StorageNodeHealth::misnamed.
  std::uint32_t space_stage_ FJORD_GUARDED_BY(mutex_) = 0;
  std::string space_ FJORD_GUARDED_BY(mutex_);
  Status failure_ FJORD_GUARDED_BY(mutex_);       ///< Why the folder is not the one that was opened; OK: it is.
  Status probe_ FJORD_GUARDED_BY(mutex_);         ///< Whether files can be made in the folder.
  std::string fault_ FJORD_GUARDED_BY(mutex_);    ///< See PollReply::fault.
  std::string foreign_ FJORD_GUARDED_BY(mutex_);  ///< Why the folder does not belong to the cluster; empty: it does.
  std::atomic<std::uint64_t> damaged_ = 0;
  /// Version of the newest state received before the fleet controller knew this process by its incarnation.
  std::uint64_t version_before_ FJORD_GUARDED_BY(mutex_) = 0;
  rpc::SnapshotHolder
      received_;  ///< The newest cluster state received from the fleet controller, whether in use or not.
  rpc::SnapshotHolder snapshots_;
  rpc::LiveSettings settings_;
  std::unique_ptr<MaintenanceBudget> budget_;
  std::unique_ptr<ForegroundCpus> foreground_cpus_;
  std::unique_ptr<UtilisationMeter> utilisation_;
  std::unique_ptr<PollAnswers> polls_;
  rpc::ControlledStop stop_;
  std::atomic<unsigned> stripes_open_ = 0;
  std::atomic<bool> is_open_ = false;  ///< `stripes_` is complete and does not change any more.
  std::vector<std::unique_ptr<Stripe>> stripes_;
  std::unique_ptr<SpaceMonitor> space_monitor_;  // Behind the stripes, because it calls them.
  std::unique_ptr<FolderGuard> folder_;          // The same. Null if the node keeps no files.
};

}  // namespace fjord::storage
