#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

#include "fjord/config/cluster_config.h"

namespace fjord::cli {

/// What makes the cluster.yaml of a new cluster on this machine.
struct LocalShape {
  int storage = 3;
  int distributors = 1;
  int redundancy = 2;
  bool usual_ports = true;  ///< 19100 and up if all of them are free; otherwise any.
};

/// Makes the folder and in it a configuration with addresses on loopback. Directories are relative.
Status create_local_config(const std::string& directory, const std::string& name, const LocalShape& shape);

/// A cluster of separate processes whose configuration, data, logs and process ids are in one folder.
/// Threading: one thread.
class LocalCluster {
 public:
  /// Errors: NotFound if the folder has no cluster.yaml; those of the configuration.
  static Result<LocalCluster> open(const std::string& directory);
  /// Makes the folder and its cluster.yaml, in place of the one that is there. Errors: IoError.
  static Status create(const std::string& directory, const LocalShape& shape);
  static bool exists(const std::string& directory);
  /// Adds the storage node of that name, with ports and a folder of its own, to the cluster.yaml in `directory`. One
  /// that is there already, as it was added before the cluster refused it, stays as it is.
  /// Errors: InvalidArgument if the file does not end with the list of storage nodes; IoError.
  static Status add_storage(const std::string& directory, config::ProcessName name);

  const config::ClusterConfig& config() const { return config_; }
  /// What FJORD_CLUSTER should be.
  std::string addresses() const;
  std::string log_file(config::ProcessName name) const;

  /// The process id, or 0 if it does not run. A process that was given the id of one of ours later is not mistaken for
  /// it.
  pid_t running(config::ProcessName name) const;
  /// Starts fjordd for each, deaf to SIGHUP and away from the terminal's signals, in the session of the caller: a
  /// system that gives each session its share of the processors (autogroup) then weighs the threads of all nodes
  /// against each other, whichever command started them, and background work yields to operations across nodes, too.
  /// Errors: IoError.
  Status start(const std::vector<config::ProcessName>& names) const;
  /// True if it ran.
  bool send_signal(config::ProcessName name, int signal) const;
  /// SIGTERM, and SIGKILL for what still runs ten seconds later. Returns those that had to be killed.
  std::vector<config::ProcessName> stop(const std::vector<config::ProcessName>& names) const;
  /// The last lines of its log, of this start and earlier ones.
  std::string log_tail(config::ProcessName name) const;

 private:
  LocalCluster(std::string directory, config::ClusterConfig config)
      : directory_(std::move(directory)), config_(std::move(config)) {}
  std::string pid_file(config::ProcessName name) const;
  /// In the session of this process.
  Status start_here(config::ProcessName name) const;

  std::string directory_;  // absolute
  config::ClusterConfig config_;
};

}  // namespace fjord::cli
