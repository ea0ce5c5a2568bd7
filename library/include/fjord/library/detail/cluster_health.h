#pragma once

#include <string>
#include <vector>

#include "fjord/rpc/messages.h"

namespace fjord {

/// What `fjord status` says of a cluster.
struct ClusterHealth {
  int level = 0;  ///< 0: all well; 1: degraded; 2: something cannot be served.
  std::vector<std::string> reasons;
  std::uint64_t buckets = 0;
  std::uint64_t buckets_in_sync = 0;
  std::uint64_t buckets_out_of_sync = 0;
  std::uint64_t buckets_unavailable = 0;
  std::uint64_t buckets_damaged =
      0;  ///< With a replica that lost something and is not repaired yet; of any of the others.
  std::uint64_t buckets_failing = 0;   ///< Merges fail again and again.
  std::uint64_t buckets_unplaced = 0;  ///< No storage node is named for them; unavailable, too.
  std::uint64_t nodes_without_space = 0;
  std::uint64_t buckets_under_replicated = 0;  ///< Served with fewer current replicas than they should have.
  std::uint64_t document_copies = 0;           ///< On all storage nodes that are up: each document counts once a copy.
  std::uint64_t bytes = 0;
};

ClusterHealth health_of(const rpc::GetStatusReply& status);

}  // namespace fjord
