#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"

namespace fjord::config {

enum class Role { FleetController, Distributor, Storage, Gateway };
/// "fleetcontroller", "distributor", "storage", "gateway".
std::string_view to_string(Role role);

/// Names one process of a cluster, e.g. storage.2.
struct ProcessName {
  Role role = Role::Storage;
  std::uint16_t index = 0;

  /// Reads what to_string() prints. Errors: InvalidArgument.
  static Result<ProcessName> parse(std::string_view text);
  std::string to_string() const;
  friend bool operator==(const ProcessName&, const ProcessName&) = default;
};

/// Addresses and data folder of one process.
struct ProcessConfig {
  std::string address;           ///< host:port of the Thrift server.
  std::string http;              ///< host:port of /metrics and /health; empty: no HTTP server.
  std::string directory;         ///< Data folder; empty for a role without files.
  double capacity = 1.0;         ///< Storage nodes: relative weight in placement.
  int index = -1;                ///< Storage nodes: index in the cluster; -1: the position in the list.
  std::string engine;            ///< Storage nodes: engine; empty: ClusterConfig::engine.
  std::string tls_address;       ///< Gateways: host:port of HTTP with TLS; empty: none.
  std::string certificate;       ///< Gateways: file for tls_address.
  std::string key;               ///< Gateways: file for tls_address.
  std::string access_log;        ///< Gateways: "true", "problems" or "false".
  std::string console_edits;     ///< Gateways: "true" or "false".
  std::string confirm_removals;  ///< Gateways: "true" or "false".
  std::string allowed_hosts;     ///< Gateways: "a,b"; empty: by the addresses.
};

/// One cluster, as its YAML file describes it. The table of keys (keys.cpp) has the defaults, ranges and meanings; the
/// reference page docs/reference/configuration.md is generated from it.
struct ClusterConfig {
  bool allow_remote = false;
  bool allow_shared_folders = false;
  std::int64_t redundancy = 0;
  std::int64_t distribution_bits = 0;
  std::string groups;

  ProcessConfig fleetcontroller;                 ///< First element of fleet_controllers.
  std::vector<ProcessConfig> fleet_controllers;  ///< At least one.
  std::string zookeeper;                         ///< ZooKeeper servers "host:port,..."; empty: the embedded store.
  std::string zookeeper_root;
  std::int64_t session_timeout_ms = 0;
  std::int64_t poll_interval_ms = 0;
  std::int64_t poll_timeout_ms = 0;
  std::int64_t down_after_ms = 0;
  std::int64_t start_grace_ms = 0;

  std::vector<ProcessConfig> distributors;
  std::vector<ProcessConfig> storage;
  std::vector<ProcessConfig> gateways;  ///< The `address` of a gateway is that of its HTTP server.

  std::string engine;        ///< "slotfile" or "leveldb".
  std::int64_t stripes = 0;  ///< 0: the largest power of two up to the number of CPUs, at most 2.
  std::int64_t slotfile_bytes_max = 0;
  std::int64_t entries_max = 0;
  std::int64_t slotfiles_max = 0;
  std::int64_t open_files_max = 0;
  std::string durability;
  std::int64_t space_warn_percent = 0;
  std::int64_t space_throttle_percent = 0;
  std::int64_t space_refuse_external_percent = 0;
  std::int64_t space_refuse_all_percent = 0;
  std::int64_t space_hysteresis_percent = 0;
  std::int64_t space_reserve_bytes = 0;
  std::int64_t visitors_max = 0;  ///< 0: derived from the number of CPUs.
  std::int64_t docblock_bytes = 0;
  std::int64_t visitor_idle_ms = 0;
  std::string plugin_directory;
  std::int64_t plugin_memory_bytes = 0;
  std::int64_t plugin_call_timeout_ms = 0;

  std::int64_t merges_max = 0;
  std::int64_t pending_bytes_max = 0;
  std::int64_t pending_operations_max = 0;
  std::int64_t document_bytes_max = 0;
  std::int64_t operation_timeout_ms = 0;
  std::int64_t storage_timeout_ms = 0;

  std::int64_t io_threads = 0;
  std::int64_t poll_us = 0;
  std::int64_t frame_bytes_max = 0;
  std::int64_t connections_max = 0;
  std::int64_t frame_timeout_ms = 0;
  std::int64_t idle_timeout_ms = 0;
  std::int64_t received_bytes_max = 0;
  std::string log_level;
  std::string log_directory;  ///< Empty: standard error.
  std::int64_t log_file_bytes_max = 0;
  std::int64_t log_files_max = 0;

  std::set<std::string> given;  ///< Paths of the keys that the file sets: "storage_options.entries_max".

  /// Returns the names of the live settings whose initial value the file sets: "storage.entries_max".
  std::set<std::string> live_settings_given() const;
  /// Returns the index of the storage node at position `place` in `storage`.
  std::uint16_t storage_index(std::size_t place) const;
  /// Returns the configuration of a process; null if the cluster has no such process.
  const ProcessConfig* find(ProcessName name) const;
  /// Returns all processes: fleet controllers, distributors, storage nodes, gateways.
  std::vector<ProcessName> names() const;
  /// Returns the text of the DistributionConfig: redundancy and groups.
  std::string distribution() const;
  std::vector<std::string> distributor_addresses() const;
  /// Returns the addresses by node index; empty for an index without a node.
  std::vector<std::string> storage_addresses() const;
  std::vector<std::string> fleet_controller_addresses() const;
};

/// Returns a configuration with all keys at their defaults and without nodes.
ClusterConfig default_config();

/// Reads YAML. `file` is its name in messages. Relative directories are relative to the folder of `file`.
/// Errors: InvalidArgument "file:line: key: ..." that names the key, the value and what is expected.
Result<ClusterConfig> parse_config(std::string_view yaml, const std::string& file);
/// Reads a YAML file. Errors: IoError, NotFound; those of parse_config().
Result<ClusterConfig> load_config(const std::string& file);

/// Returns the reference of all keys as a Markdown page, the text of docs/reference/configuration.md.
std::string reference_page();
/// Returns the reference of all keys as text for a terminal.
std::string reference_text();

}  // namespace fjord::config
