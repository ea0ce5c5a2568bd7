#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fjord/common/runtime.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/search/stripe_index.h"
#include "fjord/storage/spi/bucket_access.h"

namespace fjord::search {

/// The storage node's side of searches (searchSlices): all stripes search their slices at once, each in one version of
/// its index. A slice is answered only if the replica here is in sync under the cluster state that the question names;
/// the broker asks for the others elsewhere.
///
/// Threading: handle() on any thread. Lifetime: destroyed before the node behind `access`, whose providers are
/// IndexedProvider.
class SearchService final : public rpc::Service {
 public:
  SearchService(Runtime& runtime, spi::BucketAccess& access, const rpc::SnapshotHolder& snapshots);

  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  struct Search;
  void start(rpc::SearchSlices request, rpc::Responder respond);
  void search_stripe(Search& search, const SliceSet& slices, spi::PersistenceProvider& provider);
  /// Adds the answer of a stripe (null: there was nothing to ask) and sends the reply after the last one.
  void finish_part(Search& search, const Result<StripeIndex::Answer>* answer);

  Clock& clock_;
  spi::BucketAccess& access_;
  const rpc::SnapshotHolder& snapshots_;
  Counter& searches_;
  Counter& slices_;
  Counter& refused_;
  Counter& candidates_;
  Counter& scanned_;
  Histogram& seconds_;
};

}  // namespace fjord::search
