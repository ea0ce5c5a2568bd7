#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/scheduler.h"
#include "fjord/rpc/transport.h"

namespace fjord::fleetcontroller {

/// What is asked of nodes before an operator's change is decided.
struct Inquiry {
  /// The process at this address should be the node of this name, in no newer cluster state; empty: nobody is asked.
  rpc::Address address = {};
  std::string name = {};
  /// Storage nodes without which every bucket has to be served; empty: nobody is asked.
  std::vector<std::uint16_t> stopped = {};
  /// The distributors that are asked about these, by name.
  std::vector<std::pair<std::string, rpc::Address>> distributors = {};
  std::uint64_t state_version = 0;
  Duration poll_timeout{};
  Duration check_timeout{};
};

/// Asks, and calls `done` once with what speaks against the change, one line a reason. A distributor of an earlier
/// version that does not know the question says nothing. Confined to `executor`.
void ask_nodes(const Inquiry& inquiry, rpc::Transport& transport, Executor& executor,
               std::function<void(std::vector<std::string>)> done);

}  // namespace fjord::fleetcontroller
