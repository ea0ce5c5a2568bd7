#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "fjord/config/cluster_config.h"

namespace fjord::cli {

/// Parameters of the cluster.yaml of a new cluster on this machine.
struct LocalShape {
  int storage = 3;
  int distributors = 1;
  int redundancy = 2;
  int gateways = 1;
  bool usual_ports = true;  ///< Use 8080 and the ports from 19100 on if they are free; else any free ports.
};

/// Creates the folder and its configuration, with loopback addresses and relative directories.
Status create_local_config(const std::string& directory, const std::string& name, const LocalShape& shape);

/// A cluster of separate processes whose configuration, data, logs and process ids are in one folder.
/// Threading: one thread.
class LocalCluster {
 public:
  /// Errors: NotFound if the folder has no cluster.yaml; those of the configuration.
  static Result<LocalCluster> open(const std::string& directory);
  /// Creates the folder and its cluster.yaml; replaces an existing cluster.yaml. Errors: IoError.
  static Status create(const std::string& directory, const LocalShape& shape);
  static bool exists(const std::string& directory);
  /// Adds the storage node `name`, with its own ports and folder, to the cluster.yaml in `directory`. Does nothing if
  /// the file has the node already, from an attempt that the cluster refused. Errors: InvalidArgument if the file does
  /// not end with the list of storage nodes; IoError.
  static Status add_storage(const std::string& directory, config::ProcessName name);

  const config::ClusterConfig& config() const { return config_; }
  /// Returns the value for the environment variable FJORD_CLUSTER.
  std::string addresses() const;
  std::string log_file(config::ProcessName name) const;

  /// Returns the process id, or 0 if the node does not run. Detects an id that another process has reused.
  pid_t running(config::ProcessName name) const;
  /// Starts one fjordd for each name. The processes ignore SIGHUP and do not get the terminal's signals, but stay in
  /// the caller's session: a system that shares the processors among sessions (autogroup) then schedules the threads of
  /// all nodes against each other, so that background work of one node yields to operations on the others. Errors:
  /// IoError.
  Status start(const std::vector<config::ProcessName>& names) const;
  /// Sends a signal. Returns true if the process was running.
  bool send_signal(config::ProcessName name, int signal) const;
  /// Sends SIGTERM, and SIGKILL to processes that still run ten seconds later. Returns the killed ones.
  std::vector<config::ProcessName> stop(const std::vector<config::ProcessName>& names) const;
  /// Removes the data folders of all nodes, which must not run. Errors: IoError.
  Status remove_data() const;
  /// Returns the last lines of the node's log, which may include earlier runs.
  std::string log_tail(config::ProcessName name) const;

 private:
  LocalCluster(std::string directory, config::ClusterConfig config)
      : directory_(std::move(directory)), config_(std::move(config)) {}
  std::string pid_file(config::ProcessName name) const;
  /// Starts a node in the session of this process.
  Status start_here(config::ProcessName name) const;

  std::string directory_;  // An absolute path.
  config::ClusterConfig config_;
};

}  // namespace fjord::cli
