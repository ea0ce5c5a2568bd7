#pragma once

#include <cstdint>
#include <memory>

#include "fjord/common/runtime.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/storage/spi/bucket_access.h"
#include "fjord/visitors/visitor.h"

namespace fjord::visitors {

struct VisitorServiceOptions {
  /// CPUs of this node. The tunable storage.visitors_max is by default 2.5 a CPU: enough to keep all of them busy while
  /// some visitors wait for reads and puts, and more has shown no effect.
  unsigned cpus = 2;
  std::uint32_t docblock_bytes = std::uint32_t{1}
                                 << 20;  ///< Where the client names none; also the most it may ask for.
  unsigned docblocks_pending = 4;        ///< Read but not acknowledged, per visitor.
  std::uint32_t reply_bytes_max = std::uint32_t{8} << 20;  ///< Docblocks in one answer; at least one event goes out.
  Duration poll_wait_max = seconds(5);
  Duration idle_max = seconds(60);  ///< A visitor whose client has not called for so long is destroyed.
};

/// The storage node's side of visits: createVisitor, visitorNext, destroyVisitor; and of subscriptions: readChanges.
///
/// Each visitor runs on an executor of a pool; at most `storage.visitors_max` run at once and others wait their turn.
/// Documents are read on the stripes, one block ahead of the visitor, and never while more than `docblocks_pending`
/// blocks wait for the client's acknowledgement.
///
/// Threading: handle() from anywhere. Lifetime: destroy it before the node behind `access`; visitors that run then are
/// told to stop and waited for.
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
