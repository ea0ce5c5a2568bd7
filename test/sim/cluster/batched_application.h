#pragma once

#include "fjord/mapreduce/application.h"
#include "fjord/rpc/transport.h"

namespace fjord::sim {

inline constexpr const char* kBatchedApplication = "batched";

/// The application fieldstats as one of a plugin: it has a version, and takes documents and keys in batches, of a size
/// that differs from task to task as that of a real one does with time, combined now and then.
void add_batched_application(mapreduce::ApplicationRegistry& registry);

/// A storage node's word that it has it.
class OffersBatched final : public rpc::Service {
 public:
  bool handle(rpc::Request& request, rpc::Responder& respond) override;
};

}  // namespace fjord::sim
