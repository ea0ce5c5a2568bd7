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

/// One version of what nodes agree on.
struct PublishedState {
  std::uint64_t version = 0;
  std::string state;                      ///< Cluster state string.
  std::string distribution;               ///< Text of the DistributionConfig.
  std::vector<std::string> distributors;  ///< Addresses by index.
  std::vector<std::string> storage;
  friend bool operator==(const PublishedState&, const PublishedState&) = default;
};

/// The nodes of the cluster and how buckets are spread over them.
struct NodeTable {
  std::string distribution;  ///< Text of the DistributionConfig: groups and capacities. A removed node is in no group.
  std::vector<std::string> distributors;  ///< Addresses by index; empty: was removed. An index is never given again.
  std::vector<std::string> storage;
  std::uint64_t distribution_bits = 8;  ///< Unless the live configuration says otherwise.
  /// Buckets that are kept elsewhere than the algorithm says; they count while there are `exceptions_bits` bits.
  std::vector<PlacementException> exceptions = {};
  std::uint64_t exceptions_bits = 0;
  friend bool operator==(const NodeTable&, const NodeTable&) = default;
};

/// One line of `fjord state log`.
struct HistoryEntry {
  std::uint64_t version = 0;  ///< Of the cluster state; for an operator's doing the one that was in force.
  std::uint64_t term = 0;
  std::int64_t unix_us = 0;
  std::int64_t active_unix_us = 0;  ///< When the state became active; 0: it did not, or the line is of something else.
  std::string what;
  std::string why;
  std::string who;
  friend bool operator==(const HistoryEntry&, const HistoryEntry&) = default;
};

struct ConfigVersion {
  std::uint64_t version = 0;
  std::int64_t unix_us = 0;
  std::string who;
  std::map<std::string, std::string> values;  ///< What is not at its default, in the canonical form.
  friend bool operator==(const ConfigVersion&, const ConfigVersion&) = default;
};

/// Everything that a fleet controller must not forget, the schemas apart (they are large and change seldom).
struct ClusterRecord {
  std::uint64_t term = 0;  ///< Of the controller that wrote it.
  /// What is added to the store's terms: after records were lost the store counts from the beginning again, and nodes
  /// have heard of higher ones.
  std::uint64_t term_base = 0;
  PublishedState active;
  std::optional<PublishedState> pending;
  NodeTable nodes;
  std::map<std::string, std::uint64_t> incarnations;  ///< By node name, as published.
  std::map<std::string, WantedState> wanted;          ///< By node name; also of nodes that are not known.
  std::vector<ConfigVersion> configs;                 ///< By rising version; the last is in force. May be empty.
  std::vector<HistoryEntry> history;                  ///< Oldest first.

  std::uint64_t config_version() const { return configs.empty() ? 0 : configs.back().version; }
  const std::map<std::string, std::string>& config() const;
  /// When the newest line of the history was written; 0: there is none.
  std::int64_t changed_unix_us() const { return history.empty() ? 0 : history.back().unix_us; }
  /// Forgets what is older than is kept.
  void add_history(HistoryEntry entry);
  void add_config(ConfigVersion config);

  friend bool operator==(const ClusterRecord&, const ClusterRecord&) = default;
};

struct SchemaRecord {
  std::uint64_t version = 0;
  std::vector<std::string> schemas;
  friend bool operator==(const SchemaRecord&, const SchemaRecord&) = default;
};

/// Bytes with a format version and a checksum. Errors of the parsing: Corruption, also for a version that is not known.
std::string encode(const ClusterRecord& record);
std::string encode(const SchemaRecord& record);
Result<ClusterRecord> parse_cluster_record(std::string_view bytes);
Result<SchemaRecord> parse_schema_record(std::string_view bytes);

}  // namespace fjord::fleetcontroller
