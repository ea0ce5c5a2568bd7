#pragma once

#include <string>
#include <vector>

#include "fjord/rpc/controller_messages.h"

namespace fjord {

/// The health of a cluster, as `fjord status` shows it.
struct ClusterHealth {
  int level = 0;  ///< 0: healthy; 1: degraded; 2: unavailable.
  std::vector<std::string> reasons;
  std::vector<std::string> notes;  ///< Facts that an operator may want to know but need not act on.
  std::uint64_t buckets = 0;
  /// Buckets that are served with as many current replicas as wanted.
  std::uint64_t buckets_in_sync = 0;
  std::uint64_t buckets_out_of_sync = 0;
  std::uint64_t buckets_collecting = 0;  ///< Also counted as out of sync.
  std::uint64_t buckets_unavailable = 0;
  std::uint64_t buckets_damaged = 0;   ///< Buckets with a replica that lost data. Also counted in the fields above.
  std::uint64_t buckets_failing = 0;   ///< Buckets whose merges fail repeatedly.
  std::uint64_t buckets_unplaced = 0;  ///< Buckets without any ideal storage node; also counted as unavailable.
  std::uint64_t nodes_without_space = 0;
  std::uint64_t buckets_under_replicated = 0;  ///< Buckets served with too few up-to-date replicas.
  std::uint64_t document_replicas = 0;         ///< Number of document replicas on all storage nodes that are up.
  std::uint64_t bytes = 0;
};

ClusterHealth health_of(const rpc::GetStatusReply& status);

}  // namespace fjord
