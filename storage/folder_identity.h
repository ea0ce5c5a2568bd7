#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fjord/common/env.h"

namespace fjord::storage {

/// What tells the folder of a storage node's files from all other folders. It is in the file `identity` of that folder.
/// Format: storage/FORMAT.md, "Identity".
struct FolderIdentity {
  std::uint64_t cluster = 0;  ///< Number of the cluster (ClusterInfo::cluster_id); 0: the folder is in none yet.
  std::uint64_t folder = 0;   ///< Random number, drawn when the identity was made; never 0.
  std::string node;           ///< Name of the node, for example "storage.2".
  bool adopted = false;       ///< The folder held data when the identity was made: an earlier version had filled it.

  friend bool operator==(const FolderIdentity&, const FolderIdentity&) = default;
};

/// Returns the identity as people see it: "folder 5f... of storage.2, cluster 7a...".
std::string to_string(const FolderIdentity& identity);

/// Reads the identity of a folder; nullopt: it has none. Errors: Corruption if the file is malformed; IoError.
Result<std::optional<FolderIdentity>> load_identity(Env& env, const std::string& directory);
/// Replaces the identity of a folder as a whole; it survives a loss of power. Errors: IoError, NoSpace.
Status save_identity(Env& env, const std::string& directory, const FolderIdentity& identity);

/// Returns the identity of the folder that the node `node` is about to open. The folder is created, and gets an
/// identity with the number `drawn`, if it has none or if it has lost everything but its identity. Errors:
/// InvalidArgument if the folder belongs to another node; it is left as it is. Those of load_identity() and
/// save_identity().
Result<FolderIdentity> open_folder(Env& env, const std::string& directory, const std::string& node,
                                   std::uint64_t drawn);

/// What a process that opens a folder finds out of the processes that had it before. An acknowledged write survives the
/// end of a process, but may be lost with the machine's memory when the machine ends, unless it was synced first. So as
/// long as folder and machine are the same, or all of them synced, each process has everything that the ones before it
/// have acknowledged.
struct FolderSession {
  /// Names the time since the machine was started; empty: not known, and no process before is believed.
  std::string boot;
  /// StorageNodeOptions::folder_stamp: a copy of the folder has another one. 0: there is none.
  std::uint64_t stamp = 0;
  /// Incarnation of the process that opens the folder.
  std::uint64_t incarnation = 0;
  /// Changes of buckets, and writes of clients that do not say otherwise, are acknowledged when they survive a loss of
  /// power.
  bool syncs = false;
};

/// Writes down that a process has opened the folder, and returns the incarnations of those before it whose writes it
/// has, oldest first, at most kSessionsMax. To be called before the process acknowledges anything. A record that is
/// malformed, of another folder or a copy counts as none; so does one of another machine start, unless all processes in
/// it synced. Errors: IoError, NoSpace.
Result<std::vector<std::uint64_t>> begin_session(Env& env, const std::string& directory, const FolderIdentity& folder,
                                                 const FolderSession& session);

/// Number of earlier processes that are remembered. The fleet controller has to have heard one of them.
inline constexpr std::size_t kSessionsMax = 16;

}  // namespace fjord::storage
