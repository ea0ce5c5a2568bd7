#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/common/result.h"
#include "state_generator.h"

namespace fjord::fleetcontroller {

/// One version of the cluster state, with the distribution and the addresses that nodes need to use it.
struct PublishedState {
  std::uint64_t version = 0;
  std::string state;                      ///< Cluster state string.
  std::string distribution;               ///< Text of the DistributionConfig.
  std::vector<std::string> distributors;  ///< Addresses by index.
  std::vector<std::string> storage;
  friend bool operator==(const PublishedState&, const PublishedState&) = default;
};

/// The nodes of the cluster and the distribution of buckets over them.
struct NodeTable {
  std::string distribution;  ///< Text of the DistributionConfig: groups and capacities. A removed node is in no group.
  std::vector<std::string> distributors;  ///< Addresses by index; empty if removed. An index is never reused.
  std::vector<std::string> storage;
  std::uint64_t distribution_bits = 8;  ///< Used unless the live configuration has another value.
  /// The table of overrides. It is in force only while the cluster state has `exceptions_bits` distribution bits; its
  /// read shares only while all serving nodes announce the feature.
  std::vector<PlacementException> exceptions = {};
  std::uint64_t exceptions_bits = 0;
  std::vector<ReadShare> read_shares = {};
  friend bool operator==(const NodeTable&, const NodeTable&) = default;
};

/// One line of `fjord state log`.
struct HistoryEntry {
  std::uint64_t version = 0;  ///< Version of the cluster state; action of an operator: the version in force then.
  std::uint64_t term = 0;
  std::int64_t unix_us = 0;
  std::int64_t active_unix_us = 0;  ///< When the state became active; 0: it did not, or the line is not about a state.
  std::string what;
  std::string why;
  std::string who;
  friend bool operator==(const HistoryEntry&, const HistoryEntry&) = default;
};

struct ConfigVersion {
  std::uint64_t version = 0;
  std::int64_t unix_us = 0;
  std::string who;
  std::map<std::string, std::string> values;  ///< Settings that are not at their defaults, as integers in decimal.
  friend bool operator==(const ConfigVersion&, const ConfigVersion&) = default;
};

/// The move of one replica, or of a part of a bucket's reads, by a step of the balancer.
struct BalancedReplica {
  std::uint64_t bucket = 0;
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint64_t bytes = 0;          ///< Bytes of one replica; 0 if only reads move.
  std::uint16_t read_permille = 0;  ///< The part of all reads of the bucket that moves; 0: the replica moves.
  friend bool operator==(const BalancedReplica&, const BalancedReplica&) = default;
};

/// One change of the table of overrides. Applied backwards it restores the table before it.
struct BalanceStep {
  std::uint64_t id = 0;  ///< Rises with each step; an id is never used again.
  /// "load": planned from loads; "initial": from a sample of documents; "bytes": from sizes (fjord node balance);
  /// "revert".
  std::string kind;
  std::int64_t unix_us = 0;
  std::uint64_t state_version = 0;  ///< Cluster state for which the step was planned.
  std::uint64_t round = 0;          ///< Round of the balancer; 0: the step was made outside of a round.
  std::vector<PlacementException> removed;
  std::vector<PlacementException> added;
  std::vector<ReadShare> reads_removed;
  std::vector<ReadShare> reads_added;
  std::vector<BalancedReplica> moves;
  std::uint64_t bytes_total = 0;       ///< Bytes of all replicas at that time; 0: not known.
  std::uint64_t imbalance_before = 0;  ///< In thousandths; 0: not known.
  std::uint64_t imbalance_after = 0;   ///< In thousandths, as the plan expected it.
  std::string who;
  std::string why;
  std::uint64_t reverts = 0;  ///< Revert: the oldest step that it takes back.

  std::uint64_t bytes() const;  ///< Sum of the bytes of `moves`.
  friend bool operator==(const BalanceStep&, const BalanceStep&) = default;
};

/// The durable data of a fleet controller, except the schemas (they are large and change seldom).
struct ClusterRecord {
  std::uint64_t term = 0;  ///< Published term of the controller that wrote the record.
  /// Number added to the store's terms. It is above 0 if records were lost before: then the store counted from the
  /// beginning again, but nodes refuse a lower term than they have seen.
  std::uint64_t term_base = 0;
  PublishedState active;
  std::optional<PublishedState> pending;
  NodeTable nodes;
  std::map<std::string, std::uint64_t> incarnations;  ///< Published incarnations by node name.
  std::map<std::string, WantedState> wanted;          ///< Wanted states by node name, also of unknown nodes.
  /// What is wanted again of nodes that were being retired before their maintenance, when that ends.
  std::map<std::string, WantedState> wanted_after = {};
  std::vector<ConfigVersion> configs;  ///< By rising version; the last one is in force. May be empty.
  std::vector<HistoryEntry> history;   ///< Oldest first.
  std::uint64_t balance_step = 0;      ///< Id of the newest step of the balancer.
  /// The newest steps, oldest first; all are about buckets of nodes.exceptions_bits bits.
  std::vector<BalanceStep> balance_steps;

  std::uint64_t config_version() const { return configs.empty() ? 0 : configs.back().version; }
  const std::map<std::string, std::string>& config() const;
  /// Returns the time of the newest line of the history; 0: there is none.
  std::int64_t changed_unix_us() const { return history.empty() ? 0 : history.back().unix_us; }
  /// Adds a line to the history and drops the oldest lines above the limit.
  void add_history(HistoryEntry entry);
  void add_config(ConfigVersion config);

  friend bool operator==(const ClusterRecord&, const ClusterRecord&) = default;
};

struct SchemaRecord {
  std::uint64_t version = 0;
  std::vector<std::string> schemas;
  /// The schemas before each deployment that dropped something, the oldest first: documents may still have values of
  /// it.
  std::vector<std::vector<std::string>> dropped = {};
  friend bool operator==(const SchemaRecord&, const SchemaRecord&) = default;
};

/// The folder of a storage node, as the node has named it.
struct FolderRecord {
  std::uint64_t folder = 0;  ///< Its number; 0: the next folder of the node is taken, whichever it is.
  /// Number of the folder whose data is lost, because the node came back with `folder` in its place; 0: none is. It
  /// stays until the data is complete on other nodes, an operator accepts the loss, or that folder comes back.
  std::uint64_t lost = 0;
  std::int64_t lost_unix_us = 0;
  friend bool operator==(const FolderRecord&, const FolderRecord&) = default;
};

/// Stands for the number of a lost folder that is not known.
inline constexpr std::uint64_t kUnknownFolder = 1;

/// What tells this cluster, and the folders of its storage nodes, from others. It is a record of its own because
/// programs of earlier versions read the cluster's record.
struct IdentityRecord {
  std::uint64_t cluster_id = 0;                      ///< Random; 0: not drawn yet.
  std::map<std::string, FolderRecord> folders = {};  ///< By node name.
  friend bool operator==(const IdentityRecord&, const IdentityRecord&) = default;
};

/// Encodes a record as bytes with a format version and a checksum.
std::string encode(const ClusterRecord& record);
std::string encode(const IdentityRecord& record);
std::string encode(const SchemaRecord& record);
/// Parses an encoded record. Errors: Corruption if the bytes are malformed or have an unknown format version.
Result<ClusterRecord> parse_cluster_record(std::string_view bytes);
Result<SchemaRecord> parse_schema_record(std::string_view bytes);
Result<IdentityRecord> parse_identity_record(std::string_view bytes);

}  // namespace fjord::fleetcontroller
