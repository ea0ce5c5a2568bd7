#pragma once

#include "fjord/mapreduce/application.h"
#include "fjord/rpc/transport.h"

namespace fjord::sim {

inline constexpr const char* kBatchedApplication = "batched";

/// Adds the application `kBatchedApplication`: fieldstats, run as an application of a plugin is. It has a version, and
/// takes documents and keys in batches. The batch size and whether it combines are random per task.
void add_batched_application(mapreduce::ApplicationRegistry& registry);

/// The service of a storage node that says that the node has this application (answers ListPlugins).
class OffersBatched final : public rpc::Service {
 public:
  bool handle(rpc::Request& request, rpc::Responder& respond) override;
};

}  // namespace fjord::sim
