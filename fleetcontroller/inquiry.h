#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/common/scheduler.h"
#include "fjord/rpc/transport.h"

namespace fjord::fleetcontroller {

/// The questions to nodes before the controller decides about an operator's change.
struct Inquiry {
  /// Address of a process that should be the node `name` and have no newer cluster state; empty: no process is asked.
  rpc::Address address = {};
  std::string name = {};
  /// Storage nodes without which all buckets must still be served; empty: distributors are not asked.
  std::vector<std::uint16_t> stopped = {};
  /// Names and addresses of the distributors to ask about `stopped`.
  std::vector<std::pair<std::string, rpc::Address>> distributors = {};
  std::uint64_t state_version = 0;
  Duration poll_timeout{};
  Duration check_timeout{};
};

/// Asks the nodes and calls `done` once with the reasons against the change, one line each. A distributor of an earlier
/// version that does not know the call counts as having no objection. Confined to `executor`.
void ask_nodes(const Inquiry& inquiry, rpc::Transport& transport, Executor& executor,
               std::function<void(std::vector<std::string>)> done);

/// The question to storage nodes for the sizes of their buckets.
struct SizeInquiry {
  std::vector<std::pair<std::string, rpc::Address>> storage = {};  ///< Names and addresses of the nodes.
  unsigned bits = 0;                                               ///< Distribution bits.
  std::uint64_t state_version = 0;
  Duration timeout{};
};

/// Asks the nodes and calls `done` once with the bytes of one replica of each distribution bucket (BucketSizes).
/// Errors: InvalidArgument if there are too many bits; Unavailable if a node does not answer. Confined to `executor`.
void ask_bucket_sizes(const SizeInquiry& inquiry, rpc::Transport& transport, Executor& executor,
                      std::function<void(Result<std::vector<std::uint64_t>>)> done);

}  // namespace fjord::fleetcontroller
