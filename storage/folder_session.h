#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/common/env.h"
#include "folder_identity.h"

namespace fjord::storage {

/// What a process that opens a folder finds out of the processes that had it before. An acknowledged write survives the
/// end of a process, but may be lost with the machine's memory when the machine ends. So as long as folder and machine
/// are the same, each process has everything that the ones before it have acknowledged.
struct FolderSession {
  /// Names the time since the machine was started; empty: not known, and no process before is believed.
  std::string boot;
  /// StorageNodeOptions::folder_stamp: a copy of the folder has another one. 0: there is none.
  std::uint64_t stamp = 0;
  /// Incarnation of the process that opens the folder.
  std::uint64_t incarnation = 0;
};

/// Writes down that a process has opened the folder, and returns the incarnations of those before it whose writes it
/// has, oldest first, at most kSessionsMax. To be called before the process acknowledges anything. A record that is
/// malformed, of another machine start, another folder or a copy counts as none. Errors: IoError, NoSpace.
Result<std::vector<std::uint64_t>> begin_session(Env& env, const std::string& directory, const FolderIdentity& folder,
                                                 const FolderSession& session);

/// Number of earlier processes that are remembered. The fleet controller has to have heard one of them.
inline constexpr std::size_t kSessionsMax = 16;

}  // namespace fjord::storage
