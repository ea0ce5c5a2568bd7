#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/clock.h"

/// What Admin says about the cluster and its nodes.
namespace fjord {

enum class Health : std::uint8_t {
  Healthy,
  Degraded,     ///< Everything is served, but with fewer replicas or slower than configured.
  Unavailable,  ///< Some documents cannot be read or written.
};
std::string_view to_string(Health health);

struct NodeInfo {
  std::string name;     ///< "storage.2"
  std::string address;  ///< host:port
  std::string state;    ///< The node's state in the cluster state: "up", "down", "retired", ...
  std::string reason;
  std::string wanted;  ///< State that an operator asked for; empty: none.
  std::string group;   ///< Storage nodes: group in the distribution tree.
  std::string capacity;
  std::string slow;   ///< Why the node is marked as slow; empty: it is not slow.
  std::string space;  ///< Measured space and its limit, of a storage node that is short of space; else empty.
  std::uint16_t space_stage = 0;  ///< 1 normal, 2 warn, 3 throttle, 4 refuse external writes, 5 refuse all writes.
  std::uint64_t buckets = 0;
  std::uint64_t documents = 0;      ///< Documents on a storage node.
  std::uint64_t bytes = 0;          ///< Bytes of documents on a storage node.
  std::uint64_t state_version = 0;  ///< Version of the cluster state that the node has applied.
  std::uint64_t config_version = 0;
  Duration answered_ago{-1};      ///< Time since the node's last answer; negative: it never answered.
  Duration maintenance{-1};       ///< Time in maintenance so far; negative: it is not in maintenance.
  Duration maintenance_left{-1};  ///< Time until the node counts as down; negative: no limit, or not in maintenance.

  bool is_storage() const { return name.starts_with("storage."); }
};

struct ClusterStatus {
  Health health = Health::Healthy;
  std::vector<std::string> reasons;  ///< Why the cluster is not healthy.
  /// Facts that need no action, such as features that not all nodes announce while their versions are mixed.
  std::vector<std::string> notes;
  std::uint64_t state_version = 0;
  std::uint64_t schema_version = 0;
  std::uint64_t config_version = 0;
  std::string state;         ///< The cluster state as text.
  std::string distribution;  ///< The placement as text.
  std::uint64_t buckets = 0;
  std::uint64_t buckets_in_sync = 0;  ///< Buckets served with as many current replicas as wanted.
  std::uint64_t buckets_out_of_sync = 0;
  /// Buckets whose replicas the distributor is still asking storage nodes for, at most 2 s after a change of the
  /// cluster state. Operations on them wait. Also counted as out of sync.
  std::uint64_t buckets_collecting = 0;
  std::uint64_t buckets_unavailable = 0;
  std::uint64_t buckets_damaged = 0;
  std::uint64_t buckets_failing = 0;   ///< Buckets whose merges fail repeatedly.
  std::uint64_t buckets_unplaced = 0;  ///< Buckets for which there is no storage node; also counted as unavailable.
  /// Buckets served with fewer current replicas than the redundancy. They count as out of sync, too, unless they wait
  /// for a node in maintenance.
  std::uint64_t buckets_under_replicated = 0;
  std::uint64_t nodes_without_space = 0;
  std::uint64_t document_replicas = 0;
  std::uint64_t bytes = 0;
  std::vector<NodeInfo> nodes;
};

/// The cluster state, what it will be replaced by, and who decides.
struct ClusterStateInfo {
  std::string state;                 ///< "version:7 distributor:2 storage:4 .2.s:d"
  std::string distribution;          ///< The placement as text.
  std::string pending_state;         ///< State that is not in force yet; empty: none.
  std::string pending_distribution;  ///< Placement that comes into force with the pending state.
  std::string waits_for;             ///< Why the pending state is not in force yet.
  std::string leader;                ///< "fleetcontroller.0"
  std::uint64_t term = 0;            ///< Number of the leadership of the fleet controller.
  std::uint64_t schema_version = 0;
  std::uint64_t config_version = 0;
};

/// A line of the cluster's history.
struct HistoryEntry {
  std::uint64_t version = 0;
  std::uint64_t term = 0;
  std::int64_t unix_us = 0;
  std::int64_t active_unix_us = 0;  ///< When the state came into force; 0: it did not.
  std::string what;
  std::string why;
  std::string who;
};

struct RecoverOptions {
  bool dry_run = true;
  bool force = false;           ///< Recover although some nodes do not answer.
  std::string controller = {};  ///< Address of the fleet controller; empty: the one that a distributor uses.
};

/// What a fleet controller without records has rebuilt from the reports of nodes; with dry_run, would rebuild.
struct RecoveredState {
  bool done = false;
  std::vector<std::string> refusals;  ///< Why nothing was recovered; empty: something was, or with dry_run would be.
  std::vector<std::string> warnings;
  std::vector<std::string> found;  ///< What each node reported, one line for each.
  std::string state;
  std::string distribution;
  std::uint64_t state_version = 0;
  std::uint64_t next_version = 0;  ///< Smallest version of the next cluster state.
  std::uint64_t term = 0;
  std::uint64_t schema_version = 0;
  std::uint64_t schemas = 0;
  std::uint64_t config_version = 0;
  std::uint64_t settings = 0;
};

enum class NodeAction : std::uint8_t {
  Up,           ///< Takes back an earlier Maintenance, Retire or Down.
  Maintenance,  ///< The node is away for a while; its replicas are not created elsewhere.
  Retire,       ///< The node's buckets move to other nodes while it goes on serving.
  Down,
  Add,
  Remove,  ///< Takes a node out of the cluster once it is retired and empty.
  Replace,
  SetCapacity,
  StopCheck,   ///< Only asks whether the nodes can be stopped safely.
  Balance,     ///< Places single buckets on other nodes so that all nodes are equally full.
  AcceptLoss,  ///< Gives up the data of storage nodes that came back without it.
};

struct NodeChange {
  NodeAction action = NodeAction::Up;
  std::vector<std::string> nodes = {};  ///< "storage.2"; Add: "storage" or "distributor"; Balance: none.
  std::string address = {};             ///< Add and Replace: host:port of the new process.
  std::string group = {};               ///< Add: group of the new storage node.
  std::string capacity = {};            ///< Add and SetCapacity: the node's new capacity.
  std::string balance_to = {};          ///< Balance: largest ratio of maximum to mean of bytes, "1.02", or "off".
  std::string reason = {};              ///< Written into the history.
  bool dry_run = true;                  ///< Only compute the plan.
  bool force = false;                   ///< Make the change although it is unsafe.
};

/// The effect of a NodeChange; with dry_run, the effect that it would have.
struct NodePlan {
  bool done = false;
  std::vector<std::string> refusals;  ///< Why the change is refused; empty: it is allowed.
  std::vector<std::string> warnings;
  std::vector<std::string> nodes;  ///< Names of the changed nodes, or of the added one.
  std::uint64_t state_version = 0;
  std::uint64_t buckets_total = 0;
  std::uint64_t buckets_moved = 0;
  std::uint64_t replicas_moved = 0;
  std::uint64_t bytes_moved = 0;       ///< Estimated.
  std::uint64_t duration_seconds = 0;  ///< Estimated.
  std::vector<std::string> notes;      ///< Remarks on the movement of data, one line each.
};

/// What is left to do of a NodeChange.
struct NodeChangeProgress {
  bool is_known = false;     ///< False: the cluster did not answer.
  bool is_in_force = false;  ///< All nodes have the new cluster state, and an added or replaced node is up in it.
  std::vector<std::string> waits_for;  ///< Added or replaced nodes that are not up, as "storage.3: never answered".
  std::uint64_t buckets_left = 0;
  double fraction_done = -1;  ///< 0 to 1; negative: not known yet.
  Duration left{0};           ///< Estimated time until the change is complete; 0: no estimate.
};
/// Returns what is left, in words: "12 buckets left".
std::string to_string(const NodeChangeProgress& left);

/// A function that plugins offer to visits or jobs.
struct PluginFunction {
  std::string name;
  bool is_application = false;  ///< An application for jobs; else a visitor, for VisitOptions::visitor.
  std::string version;
  std::string help;
  std::vector<std::string> nodes;  ///< Nodes that offer it; distributors only for an application.
};

/// A library that a node does not use, or a node that does not answer.
struct PluginProblem {
  std::string node;
  std::string library;  ///< Empty: the node does not answer.
  std::string problem;
};

struct Plugins {
  std::vector<PluginFunction> functions;
  std::vector<PluginProblem> problems;
  std::size_t storage_nodes = 0;  ///< Number of nodes that answered.
  std::size_t distributors = 0;
};

}  // namespace fjord
