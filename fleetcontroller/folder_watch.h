#pragma once

#include <cstdint>
#include <string>

#include "cluster_record.h"
#include "fjord/rpc/messages.h"
#include "state_generator.h"

namespace fjord::fleetcontroller {

/// What follows from the folder that a storage node names in its answer to a poll.
struct FolderVerdict {
  bool is_lost = false;  ///< What the node held earlier counts as lost.
  FolderRecord next;     ///< The record of the node's folder; equal to the known one if nothing has changed.
};

/// Compares the folder that a storage node names with the record of it. `known` is null if the node's folder was never
/// recorded. `has_served`: another process than the one that answered was in a published cluster state under this name.
/// A pure function.
///
/// - A folder of number 0 is that of an earlier version, which names none: nothing changes.
/// - The first folder of a node is taken: the node is new, or its cluster comes from an earlier version and the folder
///   held data when it was named. A folder that was empty then, of a node that has served, has lost that data.
/// - Another folder than the recorded one has lost the data. If the lost folder comes back, its successor is the lost
///   one: it may have taken writes when no other node was there.
FolderVerdict judge_folder(const FolderRecord* known, bool has_served, std::uint64_t folder, bool adopted,
                           std::int64_t unix_us);

/// Returns why the data of a node counts as lost, for people.
std::string lost_text(const FolderRecord& record);

/// Returns the number of a new cluster: the one that all of these storage nodes name, if they name the same one,
/// because the records were lost and the nodes have the data of that cluster; otherwise `drawn`.
std::uint64_t choose_cluster_id(const std::vector<rpc::PollReply>& storage, std::uint64_t drawn);

/// Returns a number of a cluster or a folder as people see it: 16 hexadecimal digits.
std::string identity_text(std::uint64_t id);

}  // namespace fjord::fleetcontroller
