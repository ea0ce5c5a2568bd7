#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "fjord/common/runtime.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/search/broker_documents.h"

namespace fjord::search {

struct SearchBrokerOptions {
  std::uint32_t places_max = 100;
  /// For this time a node that did not answer is asked last.
  Duration avoid_for = seconds(1);
  /// Pause before the broker asks again for a slice that no node could search.
  Duration retry_delay = milliseconds(10);
};

/// Searches for clients, in distributor processes: asks one in-sync replica of each slice, merges the answers, and
/// reports what is missing. It chooses nodes from the cluster state alone. Only for a slice that no such node could
/// search it asks the slice's distributor. So a search usually takes one message to each storage node.
///
/// Threading: handle() on any thread; all else on an executor of its own. Lifetime: `snapshots` and `transport` outlive
/// it.
class SearchBroker final : public rpc::Service {
 public:
  /// `documents`: what search.affinity_table and search.synonyms name, and where queries are recorded. `state_in_force`
  /// says whether the cluster state of this process is certainly the current one, or why not.
  SearchBroker(const SearchBrokerOptions& options, Runtime& runtime, rpc::Transport& transport,
               const rpc::SnapshotHolder& snapshots, std::function<Status()> state_in_force,
               BrokerDocuments documents = {});
  ~SearchBroker() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::search
