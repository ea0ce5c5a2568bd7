#pragma once

#include <memory>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/storage/spi/bucket_access.h"
#include "fjord/visitors/mailbox.h"

namespace fjord::visitors {

/// Answers readChanges: what changed in buckets since a position, by rising timestamp. Keeps nothing between calls.
///
/// The position of a subscriber says how far it is and what was there up to then (a checksum over the metadata). Under
/// the same epoch of the replica set nothing can have come in below it. Under another one the checksum tells: if it is
/// not the same, documents may have come in late, and the bucket is given from its beginning. docs/design/0008.
///
/// Threading: confined to the executor behind `mailbox`; buckets are read on their stripes.
class ChangeReader {
 public:
  static constexpr std::uint32_t kBytesMax = std::uint32_t{1} << 20;  ///< Of one answer, roughly.

  ChangeReader(spi::BucketAccess& access, const rpc::SnapshotHolder& snapshot, Clock& clock, Mailbox mailbox)
      : access_(access), snapshot_(snapshot), clock_(clock), mailbox_(std::move(mailbox)) {}

  void read(rpc::ReadChanges request, rpc::Responder respond);

 private:
  struct Question;
  struct Call;
  void next(std::shared_ptr<Call> call);

  spi::BucketAccess& access_;
  const rpc::SnapshotHolder& snapshot_;
  Clock& clock_;
  Mailbox mailbox_;
};

}  // namespace fjord::visitors
