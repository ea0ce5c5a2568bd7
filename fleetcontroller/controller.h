#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cluster_record.h"
#include "fjord/common/runtime.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/fleetcontroller/cluster_state_store.h"
#include "fjord/fleetcontroller/fleet_controller.h"
#include "fjord/rpc/transport.h"
#include "inquiry.h"
#include "live_config.h"
#include "node_monitor.h"
#include "publication.h"
#include "settings_in_force.h"
#include "slow_nodes.h"
#include "state_recovery.h"
#include "stop_check.h"
#include "time_grants.h"

namespace fjord::fleetcontroller {

/// What a FleetController is inside: a candidate, and a leader while it is elected.
///
/// A leader changes nothing but by writing the record: one write at a time, and what others are told is what was
/// written. A write that failed, or whose outcome is not known, makes it read the record again.
///
/// Threading: confined to executor().
class Controller {
 public:
  Controller(const FleetControllerOptions& options, Runtime& runtime, rpc::Transport& transport,
             ClusterStateStore& store);
  ~Controller();

  void start();
  Executor& executor() { return *executor_; }
  void handle(rpc::Request request, rpc::Responder respond);
  /// From every thread.
  FleetControllerHealth health() const;

 private:
  /// Stranded: nodes know more than the records do. It publishes nothing until the records are recovered.
  enum class Phase { Standby, Loading, Leading, Stranded };

  struct Node {
    rpc::Address address;
    NodeMonitor monitor;
    rpc::PollReply last;        // The last good answer; versions are 0 after a poll that failed.
    bool last_failed = true;    // No good answer to the last poll that ended.
    std::int64_t heard_us = 0;  // The node's clock in its newest answer.
    unsigned polls_under_way = 0;
    bool poll_again = false;  // Something changed while a poll was under way.
    bool look_again = false;  // A poll is due that shows whether it still refuses.
    std::uint64_t life = 0;   // Another one for every address that an index has; answers to an older one are dropped.

    BaseSettings settings;  // As the process began; of `settings_incarnation`.
    std::uint64_t settings_incarnation = 0;

    NodeId id() const { return monitor.report().id; }
  };

  // Election and store: controller.cpp
  void enter(Phase phase, std::string trouble = {});
  void on_leadership(const Leadership& leadership);
  void begin_term(std::uint64_t term);
  void step_down(const std::string& why);
  void confirm();
  bool is_sure() const;
  /// False if somebody else may lead by now; then it has stepped down.
  bool still_leads();
  void load();
  void on_time_read(Result<StoredRecord> stored);
  void on_schemas_read(Result<StoredRecord> stored);
  void on_cluster_read(Result<StoredRecord> stored);
  void load_again(const Status& why);
  ClusterRecord first_record() const;
  void begin_to_lead();
  /// Writes `next` and makes it the record; `done` hears how that ended. One at a time.
  void save(ClusterRecord next, std::function<void(const Status&)> done);
  void take_record(ClusterRecord record);
  /// Stores a higher limit of granted times when it is due.
  void store_time_limit();
  /// Whether the last write of it was done is not known.
  void look_for_time_limit();
  void after_save();
  /// The term that nodes are told.
  std::uint64_t published_term() const { return term_ + record_.term_base; }

  // Lost records: lost_records.cpp
  /// True if the node has heard of what these records do not have.
  bool is_beyond_records(const Node& node, const rpc::PollReply& reply) const;
  void strand(const std::string& why);
  void recover(const rpc::RecoverState& request, rpc::Responder respond);
  void write_recovered(RecoveredRecords records, rpc::Responder respond);

  // Polling and publication: publisher.cpp
  void tick();
  Duration tick_pause() const;
  /// After a pause of this process (it was stopped, or the machine was busy) nobody is called down for not answering
  /// while nobody asked.
  void excuse_silence();
  void update_nodes();
  void poll(std::size_t i);
  void on_answer(std::uint64_t life, Result<rpc::PollReply> reply);
  void take_answer(Node& node, rpc::PollReply reply);
  std::string mistaken_text(const Node& node, const Result<rpc::PollReply>& reply) const;
  void take_failure(Node& node, const Status& why);
  /// Polls a node that has refused a poll, so that it is known soon whether its process has ended.
  void look_again(Node& node);
  bool is_behind(const Node& node) const;
  void update_state();
  unsigned copies_in_sync(const DistributionConfig& wanted) const;
  void make_pending(ClusterState next, const StateReasons& reasons, const std::string& cluster_reason);
  void activate();
  void push();
  void update_slow_nodes();
  rpc::ClusterInfo news_for(const rpc::PollReply& known) const;
  std::string waits_for() const;

  // Requests: requests.cpp
  struct Asked {
    std::vector<std::uint64_t> bucket_bytes = {};  // As in ClusterFacts.
    std::vector<std::string> found = {};
    std::string as = {};
  };
  void enqueue_change(rpc::ChangeNodes request, rpc::Responder respond, Asked asked);
  /// Asks the nodes that the change is about, or all distributors, then enqueues.
  void ask_and_enqueue(rpc::ChangeNodes request, rpc::Responder respond);
  Inquiry inquiry_for(const rpc::ChangeNodes& request) const;
  /// Asks all storage nodes that are there how large their buckets are, then enqueues.
  void count_buckets(rpc::ChangeNodes request, rpc::Responder respond);
  void change_nodes(rpc::ChangeNodes request, const ClusterFacts& known, rpc::Responder respond);
  void change_config(rpc::ChangeConfig request, rpc::Responder respond);
  void deploy_schemas(const rpc::DeploySchemas& request, rpc::Responder respond);
  rpc::GetConfigReply config() const;
  std::vector<SettingUser> setting_users() const;
  BaseSettings own_settings() const;
  rpc::GetHistoryReply history(const rpc::GetHistory& request) const;
  void add_maintenance(rpc::NodeStatus& status, const NodeReport& report) const;
  rpc::GetStatusReply status() const;
  ClusterFacts facts() const;
  Status not_leader() const;
  /// Runs `change` when no other change is being written.
  void enqueue(rpc::Request request, rpc::Responder respond, std::function<void(rpc::Request, rpc::Responder)> change);

  // What is in force now: the options, as the live configuration changes them.
  Duration setting(std::string_view name, Duration otherwise) const;
  Duration down_after() const { return setting("controller.down_after", options_.down_after); }
  Duration lease() const;
  Duration maintenance_max() const;
  MonitorOptions monitor_options() const;
  GeneratorOptions generator_options() const;
  Result<DistributionConfig> distribution() const;

  FleetControllerOptions options_;
  Clock& clock_;
  rpc::Transport& transport_;
  ClusterStateStore& store_;
  Counter& versions_;
  Gauge& nodes_up_;
  Gauge& leads_;
  Gauge& slow_nodes_;

  Leadership leadership_;
  Phase phase_ = Phase::Standby;
  std::uint64_t term_ = 0;   // While not on standby.
  std::uint64_t reign_ = 0;  // Rises whenever a term begins or ends: answers of before are dropped.
  bool has_confirmed_ = false;
  MonotonicTime confirmed_at_;
  MonotonicTime asked_at_;  // For the last confirmation.
  MonotonicTime elected_at_;
  MonotonicTime awake_at_;  // The last time that this was known to run.
  MonotonicTime pending_since_;
  std::string trouble_;  // Why it leads and cannot yet.
  mutable std::mutex health_mutex_;
  FleetControllerHealth health_ FJORD_GUARDED_BY(health_mutex_);

  ClusterRecord record_;
  std::uint64_t revision_ = 0;
  SchemaRecord schemas_;
  std::uint64_t schema_revision_ = 0;
  ClusterState active_;                  // Parsed from record_.
  std::optional<ClusterState> pending_;  // Parsed from record_.
  bool saving_ = false;
  TimeGrants grants_;
  std::uint64_t time_revision_ = 0;
  bool storing_time_ = false;
  struct Change {
    rpc::Request request;
    rpc::Responder respond;
    std::function<void(rpc::Request, rpc::Responder)> run;
  };
  std::deque<Change> changes_;

  std::vector<Node> nodes_;
  std::uint64_t lives_ = 0;
  SlowNodes slow_;
  std::vector<HistoryEntry> slow_history_;  // Not stored yet.
  std::unique_ptr<Executor> executor_;      // Last: its tasks use all of the above.
};

}  // namespace fjord::fleetcontroller
