#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"

namespace fjord {

class ClientCore;

enum class Health : std::uint8_t {
  Healthy,
  Degraded,     ///< Everything is served, but with fewer replicas or slower than configured.
  Unavailable,  ///< Some documents cannot be read or written.
};
std::string_view to_string(Health health);

struct NodeInfo {
  std::string name;     ///< "storage.2"
  std::string address;  ///< host:port
  std::string state;    ///< "up", "down", "maintenance", "retired", ...
  std::string reason;
  std::string wanted;  ///< State that an operator asked for; empty: none.
  std::string group;   ///< Storage nodes: group in the distribution tree.
  std::string capacity;
  std::string slow;   ///< Why the node is marked as slow; empty: it is not slow.
  std::string space;  ///< Measured space and its limit, of a storage node that is short of space; else empty.
  std::uint64_t buckets = 0;
  std::uint64_t documents = 0;  ///< Documents on a storage node.
  std::uint64_t bytes = 0;      ///< Bytes of documents on a storage node.
  std::uint64_t state_version = 0;
  Duration answered_ago{-1};  ///< Time since the node's last answer; negative: it never answered.
};

struct ClusterStatus {
  Health health = Health::Healthy;
  std::vector<std::string> reasons;  ///< Why it is not healthy.
  std::uint64_t state_version = 0;
  std::uint64_t schema_version = 0;
  std::uint64_t config_version = 0;
  std::string state;         ///< The cluster state as text.
  std::string distribution;  ///< The placement as text.
  std::uint64_t buckets = 0;
  std::uint64_t buckets_out_of_sync = 0;
  std::uint64_t buckets_unavailable = 0;
  std::uint64_t buckets_damaged = 0;
  std::uint64_t buckets_under_replicated = 0;
  std::uint64_t document_replicas = 0;
  std::uint64_t bytes = 0;
  std::vector<NodeInfo> nodes;
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
  StopCheck,  ///< Only asks whether the nodes can be stopped safely.
  Balance,    ///< Places single buckets on other nodes so that all nodes are equally full.
};

struct NodeChange {
  NodeAction action = NodeAction::Up;
  std::vector<std::string> nodes = {};  ///< "storage.2"; Add: "storage" or "distributor"; Balance: none.
  std::string address = {};             ///< Add, Replace.
  std::string group = {};               ///< Add.
  std::string capacity = {};            ///< Add, SetCapacity.
  std::string balance_to = {};          ///< Balance: largest ratio of maximum to mean of bytes, "1.02", or "off".
  std::string reason = {};              ///< Written into the history.
  bool dry_run = true;                  ///< Only compute the plan.
  bool force = false;                   ///< Make the change although it is unsafe.
};

/// The effect of a NodeChange; with dry_run, the effect that it would have.
struct NodePlan {
  bool done = false;
  std::vector<std::string> refusals;  ///< Why the change is refused; empty: it is not.
  std::vector<std::string> warnings;
  std::vector<std::string> nodes;  ///< Names of the changed nodes, or of the added one.
  std::uint64_t state_version = 0;
  std::uint64_t buckets_total = 0;
  std::uint64_t buckets_moved = 0;
  std::uint64_t replicas_moved = 0;
  std::uint64_t bytes_moved = 0;       ///< Estimate.
  std::uint64_t duration_seconds = 0;  ///< Estimate.
};

/// A line of the cluster's history.
struct HistoryEntry {
  std::uint64_t version = 0;
  std::int64_t unix_us = 0;
  std::string what;
  std::string why;
  std::string who;
};

struct SettingInfo {
  std::string name;
  std::string type;
  std::string default_value;
  std::string min;
  std::string max;
  std::string value;   ///< The value in force on most nodes.
  std::string source;  ///< "live configuration", "configuration file" or "built in".
  std::string used_by;
  std::string meaning;
};

struct DeployedSchemas {
  std::uint64_t version = 0;
  std::vector<std::string> warnings;
};

/// One replica of a bucket and its contents.
struct ReplicaInfo {
  std::string node;        ///< "storage.2"
  bool is_member = false;  ///< The replica is in the replica set: reads and writes use it.
  bool is_damaged = false;
  Status status;  ///< An error if the replica did not answer.
  std::uint64_t documents = 0;
  std::uint64_t entries = 0;  ///< Documents and remove entries.
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;                        ///< Equal on replicas with equal contents.
  std::optional<std::uint64_t> document_version_us;  ///< Version of the requested document; absent: not held.
};

struct BucketReplicas {
  std::string bucket;       ///< "0x4000000000000012"
  std::string distributor;  ///< "distributor.1"
  bool is_in_sync = false;
  std::string reason;  ///< Why the bucket is not in sync.
  std::vector<ReplicaInfo> replicas;
};

/// Administration of a cluster. The cluster's history records every change with the user's name.
///
/// Threading: any thread. Every member blocks until the cluster answers. Lifetime: the client must outlive it.
class Admin {
 public:
  explicit Admin(ClientCore& core) : core_(&core) {}

  Result<ClusterStatus> status();
  /// Errors: InvalidArgument, NotFound. A change that is only unsafe is no error: NodePlan::refusals says why.
  Result<NodePlan> change_nodes(const NodeChange& change);
  /// Returns the newest `max` entries, oldest first; all stored entries if `max` is 0.
  Result<std::vector<HistoryEntry>> history(std::uint32_t max = 0);

  Result<std::vector<SettingInfo>> settings();
  /// Changes settings of the running cluster, all or none; an empty value restores the default. Returns a line of text
  /// for each change. Errors: InvalidArgument that names the setting, the value and the allowed range.
  Result<std::vector<std::string>> set(const std::map<std::string, std::string>& values, bool dry_run = false);

  /// Adds or replaces document types. Errors: InvalidArgument with the position in the text if a schema is malformed;
  /// InvalidArgument if stored documents would lose a field that `may_drop` ("song.title") does not name.
  Result<DeployedSchemas> deploy_schemas(std::vector<std::string> schemas, std::vector<std::string> may_drop = {});
  /// Returns the texts of the deployed schemas.
  Result<std::vector<std::string>> schemas();

  /// Returns the bucket of a document with the contents of each replica.
  Result<std::vector<BucketReplicas>> bucket_of(const std::string& document_id);

 private:
  ClientCore* core_;
};

}  // namespace fjord
