#pragma once

#include <functional>
#include <memory>

#include "fjord/common/runtime.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/storage/spi/bucket_access.h"

namespace fjord::search {

struct SearchServiceOptions {
  unsigned stripes = 1;  ///< Threads that search.
  /// Share of the machine that this process uses, 0 to 1; called on the threads of stripes. Empty: only the time that
  /// stripes spend on searches counts as load.
  std::function<double()> machine_load = {};
};

/// The storage node's side of searches (searchSlices): all stripes search their slices at once, each in one version of
/// its index. A slice is searched only if the replica here is in sync under the cluster state that the question names;
/// the broker asks other nodes for the rest.
///
/// Threading: handle() on any thread. Lifetime: destroyed before the node behind `access`, whose providers are
/// IndexedProvider; searches that still wait on stripes go on without it.
class SearchService final : public rpc::Service {
 public:
  SearchService(Runtime& runtime, spi::BucketAccess& access, const rpc::SnapshotHolder& snapshots,
                SearchServiceOptions options = {});
  ~SearchService() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fjord::search
