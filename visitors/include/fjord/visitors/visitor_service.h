#pragma once

#include <cstdint>
#include <memory>

#include "fjord/common/runtime.h"
#include "fjord/common/setting.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/storage/spi/bucket_access.h"
#include "fjord/visitors/visitor.h"

namespace fjord::visitors {

struct VisitorServiceOptions {
  /// CPUs of this node. The default of the tunable storage.visitors_max is 2.5 a CPU. This keeps all CPUs busy while
  /// some visitors wait for reads and puts; more had no effect in measurements.
  unsigned cpus = 2;
  std::uint32_t docblock_bytes =
      setting_default("storage_options.docblock_bytes");   ///< Default and maximum size of a block.
  unsigned docblocks_pending = 4;                          ///< Blocks that are read but not acknowledged, per visitor.
  std::uint32_t reply_bytes_max = std::uint32_t{8} << 20;  ///< Maximum docblock bytes of an answer with several events.
  Duration poll_wait_max = seconds(5);
  Duration idle_max = milliseconds(setting_default(
      "storage_options.visitor_idle_ms"));  ///< Time without a call of its client after which a visitor is destroyed.
};

/// The storage node's side of visits (createVisitor, visitorNext, destroyVisitor) and of subscriptions (readChanges).
///
/// Each visitor runs on an executor of a pool. At most `storage.visitors_max` run at once and the others wait.
/// Documents are read on the stripes, one block ahead of the visitor, and only while fewer than `docblocks_pending`
/// blocks wait for the client's acknowledgement.
///
/// Threading: handle() on any thread. Lifetime: destroyed before the node behind `access`; the destructor stops running
/// visitors and waits for them.
class VisitorService final : public rpc::Service {
 public:
  VisitorService(const VisitorServiceOptions& options, Runtime& runtime, spi::BucketAccess& access,
                 const rpc::SnapshotHolder& snapshot, const VisitorRegistry& registry);
  ~VisitorService() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord::visitors
