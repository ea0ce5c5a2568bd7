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
  Degraded,     ///< Everything is served, with less safety or speed than there should be.
  Unavailable,  ///< Something cannot be served.
};
std::string_view to_string(Health health);

struct NodeInfo {
  std::string name;     ///< "storage.2"
  std::string address;  ///< host:port
  std::string state;    ///< "up", "down", "maintenance", "retired", ...
  std::string reason;
  std::string wanted;  ///< What an operator asked for; empty: nothing.
  std::string group;   ///< Storage nodes: of the placement.
  std::string capacity;
  std::string slow;   ///< Why the node is marked as slow; empty: it is not.
  std::string space;  ///< Storage nodes that are short of space: what was measured, and the limit.
  std::uint64_t buckets = 0;
  std::uint64_t documents = 0;  ///< Storage nodes.
  std::uint64_t bytes = 0;      ///< Storage nodes.
  std::uint64_t state_version = 0;
  Duration answered_ago{-1};  ///< Negative: never.
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
  Up,           ///< Takes back what was asked for before.
  Maintenance,  ///< Away for a while: nothing is copied meanwhile.
  Retire,       ///< Its buckets move to other nodes while it serves.
  Down,
  Add,
  Remove,  ///< Out of the cluster, when it is retired and empty.
  Replace,
  SetCapacity,
  StopCheck,  ///< Only asks whether the nodes can be stopped safely.
  Balance,    ///< Keeps single buckets elsewhere so that all nodes are equally full.
};

struct NodeChange {
  NodeAction action = NodeAction::Up;
  std::vector<std::string> nodes = {};  ///< "storage.2"; Add: "storage" or "distributor"; Balance: none.
  std::string address = {};             ///< Add, Replace.
  std::string group = {};               ///< Add.
  std::string capacity = {};            ///< Add, SetCapacity.
  std::string balance_to = {};          ///< Balance: largest ratio of maximum to mean of bytes, "1.02", or "off".
  std::string reason = {};              ///< For the history.
  bool dry_run = true;                  ///< Only say what it would do.
  bool force = false;                   ///< Although it is refused otherwise.
};

/// What a change of nodes does, or would do.
struct NodePlan {
  bool done = false;
  std::vector<std::string> refusals;  ///< Why it was not done; empty: it was, or would be.
  std::vector<std::string> warnings;
  std::vector<std::string> nodes;  ///< Changed; the name of a node that was added.
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
  std::string value;   ///< In force on most nodes.
  std::string source;  ///< "live configuration", "configuration file" or "built in".
  std::string used_by;
  std::string meaning;
};

struct DeployedSchemas {
  std::uint64_t version = 0;
  std::vector<std::string> warnings;
};

/// What one replica of a bucket holds.
struct ReplicaInfo {
  std::string node;        ///< "storage.2"
  bool is_member = false;  ///< It counts for reads and writes.
  bool is_damaged = false;
  Status status;  ///< Why it did not answer.
  std::uint64_t documents = 0;
  std::uint64_t entries = 0;  ///< With removes that are remembered.
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;                        ///< Equal on replicas that hold the same.
  std::optional<std::uint64_t> document_version_us;  ///< Of the document that was asked for, if it is there.
};

struct BucketReplicas {
  std::string bucket;       ///< "0x4000000000000012"
  std::string distributor;  ///< "distributor.1"
  bool is_in_sync = false;
  std::string reason;  ///< Why it is not.
  std::vector<ReplicaInfo> replicas;
};

/// Administration of a cluster. Every change is written into the cluster's history with the name of the user.
///
/// Threading: any thread. Every member waits for the cluster. Lifetime: the client outlives it.
class Admin {
 public:
  explicit Admin(ClientCore& core) : core_(&core) {}

  Result<ClusterStatus> status();
  /// Errors: InvalidArgument, NotFound. What is merely unsafe is in NodePlan::refusals.
  Result<NodePlan> change_nodes(const NodeChange& change);
  /// The newest `max` lines, oldest first; 0: all that are kept.
  Result<std::vector<HistoryEntry>> history(std::uint32_t max = 0);

  Result<std::vector<SettingInfo>> settings();
  /// Changes settings of the running cluster, all or none; an empty value restores the default. Returns a line for each
  /// change. Errors: InvalidArgument that names the setting, the value and what is allowed.
  Result<std::vector<std::string>> set(const std::map<std::string, std::string>& values, bool dry_run = false);

  /// Adds or replaces document types. Errors: InvalidArgument with the place in the text, or with what stored documents
  /// would lose, unless `may_drop` names it ("song.title").
  Result<DeployedSchemas> deploy_schemas(std::vector<std::string> schemas, std::vector<std::string> may_drop = {});
  /// The texts that are deployed.
  Result<std::vector<std::string>> schemas();

  /// The bucket of a document and what each of its replicas holds.
  Result<std::vector<BucketReplicas>> bucket_of(const std::string& document_id);

 private:
  ClientCore* core_;
};

}  // namespace fjord
