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

/// The implementation of FleetController: a candidate that leads while it is elected.
///
/// A leader changes the cluster only by writing the record, one write at a time. It tells others only what is written.
/// It reads the record again after a write that failed or whose outcome is unknown.
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
  /// Threading: any thread.
  FleetControllerHealth health() const;

 private:
  /// Stranded: nodes know more than the records. The controller publishes nothing until the records are recovered.
  enum class Phase { Standby, Loading, Leading, Stranded };

  struct Node {
    rpc::Address address;
    NodeMonitor monitor;
    rpc::PollReply last;        // The last good answer; its versions are 0 after a poll that failed.
    bool last_failed = true;    // The last completed poll had no good answer.
    std::int64_t heard_us = 0;  // The node's clock in its newest answer.
    unsigned polls_under_way = 0;
    bool poll_again = false;  // Something changed while a poll was in flight.
    bool look_again = false;  // A poll is scheduled to see whether the node still refuses connections.
    std::uint64_t life = 0;   // Number of this index and address; answers to a poll of an older number are dropped.

    BaseSettings settings;  // Settings with which the process of `settings_incarnation` started.
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
  /// Returns true if this controller leads. Steps down and returns false if its confirmed leadership has timed out, so
  /// that another controller may lead.
  bool still_leads();
  void load();
  void on_time_read(Result<StoredRecord> stored);
  void on_schemas_read(Result<StoredRecord> stored);
  void on_cluster_read(Result<StoredRecord> stored);
  void load_again(const Status& why);
  ClusterRecord first_record() const;
  void begin_to_lead();
  /// Writes `next`, makes it the record, and calls `done` with the outcome. Only one write may be in flight.
  void save(ClusterRecord next, std::function<void(const Status&)> done);
  void take_record(ClusterRecord record);
  /// Stores a higher limit of granted times if it is due.
  void store_time_limit();
  /// Reads the stored limit of granted times after a write of it with an unknown outcome.
  void look_for_time_limit();
  void after_save();
  /// Returns the term that is sent to nodes.
  std::uint64_t published_term() const { return term_ + record_.term_base; }

  // Lost records: lost_records.cpp
  /// Returns true if the node knows a newer cluster state or term than these records.
  bool is_beyond_records(const Node& node, const rpc::PollReply& reply) const;
  void strand(const std::string& why);
  void recover(const rpc::RecoverState& request, rpc::Responder respond);
  void write_recovered(RecoveredRecords records, rpc::Responder respond);

  // Polling and publication: publisher.cpp
  void tick();
  Duration tick_pause() const;
  /// After a pause of this process (it was stopped, or the machine was busy) extends the time that nodes have for an
  /// answer by the pause, because no poll was sent meanwhile.
  void excuse_silence();
  void update_nodes();
  void poll(std::size_t i);
  void on_answer(std::uint64_t life, Result<rpc::PollReply> reply);
  void take_answer(Node& node, rpc::PollReply reply);
  std::string mistaken_text(const Node& node, const Result<rpc::PollReply>& reply) const;
  void take_failure(Node& node, const Status& why);
  /// Schedules an early poll of a node that has refused one, to see whether its process has ended.
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
    std::vector<std::uint64_t> bucket_bytes = {};  // These three are ClusterFacts' bucket_bytes, objections, asked_as.
    std::vector<std::string> found = {};
    std::string as = {};
  };
  void enqueue_change(rpc::ChangeNodes request, rpc::Responder respond, Asked asked);
  /// Asks the nodes that the change is about, or all distributors, then enqueues the change.
  void ask_and_enqueue(rpc::ChangeNodes request, rpc::Responder respond);
  Inquiry inquiry_for(const rpc::ChangeNodes& request) const;
  /// Asks all available storage nodes for the sizes of their buckets, then enqueues the change.
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
  /// Queues `change`; it runs when no other change is being written.
  void enqueue(rpc::Request request, rpc::Responder respond, std::function<void(rpc::Request, rpc::Responder)> change);

  // Values in force: those of the live configuration, else of the options.
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
  std::uint64_t term_ = 0;  // Term of this controller; 0 on standby.
  std::uint64_t reign_ =
      0;  // Rises when a term of this controller begins or ends; answers of an earlier one are dropped.
  bool has_confirmed_ = false;
  MonotonicTime confirmed_at_;
  MonotonicTime asked_at_;  // When the last confirmation was requested.
  MonotonicTime elected_at_;
  MonotonicTime awake_at_;  // The last time at which this process was known to run.
  MonotonicTime pending_since_;
  std::string trouble_;  // FleetControllerHealth::trouble.
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
  std::vector<HistoryEntry> slow_history_;  // Lines about slow nodes that are not stored yet.
  std::unique_ptr<Executor> executor_;      // Declared last, because its tasks use all members above.
};

}  // namespace fjord::fleetcontroller
