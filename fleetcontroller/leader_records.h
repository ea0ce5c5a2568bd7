#pragma once

#include <functional>
#include <optional>

#include "candidate.h"
#include "cluster_record.h"
#include "fjord/rpc/messages.h"
#include "state_recovery.h"
#include "time_grants.h"

namespace fjord::fleetcontroller {

/// The records of the cluster as its leader reads and writes them: the cluster, the schemas, the identities, the limit
/// of granted times. The leader tells others only what is written. It reads the records again after a write that failed
/// or whose outcome is unknown.
///
/// Threading: confined to the controller's executor.
class LeaderRecords {
 public:
  using Done = std::function<void(const Status&)>;
  struct Events {
    std::function<void()> loaded;   ///< All records are read, and the cluster record is written under the present term.
    std::function<void()> written;  ///< A write is over; the next one may begin.
  };

  LeaderRecords(const FleetControllerOptions& options, const Clock& clock, ClusterStateStore& store,
                Candidate& candidate, Executor& executor, Events events);

  void begin_term();
  void end_term() { is_writing_ = false; }

  /// Returns true while a write is in flight. Only one may be.
  bool is_writing() const { return is_writing_; }
  /// Writes `next`, makes it the record, and calls `done` with the outcome.
  void save(ClusterRecord next, Done done);
  void save_schemas(SchemaRecord next, Done done);
  void save_identity(IdentityRecord next, Done done);
  /// Writes records that were recovered from the knowledge of nodes, then reads all records again.
  void replace(RecoveredRecords recovered, Done done);

  /// Stores a higher limit of granted times if it is due.
  void store_time_limit();
  /// Returns the time that may be granted to distributors.
  std::uint64_t grant_time() { return grants_.grant(clock_.wall_now()); }
  /// Returns the floor of timestamps of the state after newest(). Granted times stay below it.
  std::uint64_t freeze_time() { return grants_.freeze(newest().time_floor_us()); }

  const ClusterRecord& cluster() const { return cluster_; }
  const SchemaRecord& schemas() const { return schemas_; }
  const IdentityRecord& identity() const { return identity_; }
  const ClusterState& active() const { return active_; }
  const std::optional<ClusterState>& pending() const { return pending_; }
  const ClusterState& newest() const { return pending_ ? *pending_ : active_; }
  /// Returns the term that is sent to nodes.
  std::uint64_t published_term() const { return candidate_.term() + cluster_.term_base; }
  /// Returns the part of the records that a process with these versions does not have.
  rpc::ClusterInfo news_for(const rpc::PollReply& known, Duration lease) const;
  /// Returns true if a process with these versions lacks a part of the records.
  bool has_news_for(const rpc::PollReply& known) const;
  /// Returns true if a node that answered this knows a newer cluster state or term than these records.
  bool are_behind(const rpc::PollReply& reply) const;

 private:
  void load();
  void on_time_read(const StoredRecord& stored);
  void on_schemas_read(const StoredRecord& stored);
  void on_identity_read(const StoredRecord& stored);
  void on_cluster_read(const StoredRecord& stored);
  void load_again(const Status& why);
  using Taken = std::function<void(std::uint64_t revision)>;
  /// Writes a record other than the cluster's, and calls `taken` and then `done` once it is stored.
  void store_beside(std::string_view record, std::uint64_t revision, std::string bytes, Taken taken, Done done);
  ClusterRecord first_record() const;
  void take(ClusterRecord record);
  /// Reads the stored limit of granted times after a write of it with an unknown outcome.
  void look_for_time_limit();

  const FleetControllerOptions& options_;
  const Clock& clock_;
  ClusterStateStore& store_;
  Candidate& candidate_;
  Executor& executor_;
  Events events_;

  ClusterRecord cluster_;
  std::uint64_t revision_ = 0;
  SchemaRecord schemas_;
  std::uint64_t schema_revision_ = 0;
  IdentityRecord identity_;
  std::uint64_t identity_revision_ = 0;
  ClusterState active_;                  // Parsed from cluster_.
  std::optional<ClusterState> pending_;  // Parsed from cluster_.
  bool is_writing_ = false;
  TimeGrants grants_;
  std::uint64_t time_revision_ = 0;
  bool is_storing_time_ = false;
};

}  // namespace fjord::fleetcontroller
