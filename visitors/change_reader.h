#pragma once

#include <memory>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/storage/spi/bucket_access.h"
#include "fjord/visitors/mailbox.h"

namespace fjord::visitors {

/// Answers readChanges with the changes of buckets since a position, in ascending order of timestamp. Stateless.
///
/// A subscriber's position holds a timestamp, the epoch and a checksum over the metadata up to it. While the epoch of
/// the replica set is the same, no entry can appear below the position. Under another epoch the checksum decides: if it
/// differs, late documents are possible, and the bucket is given from its beginning. docs/design/0008.
///
/// Threading: confined to the executor behind `mailbox`; buckets are read on their stripes.
class ChangeReader {
 public:
  static constexpr std::uint32_t kBytesMax = std::uint32_t{1} << 20;  ///< Approximate maximum size of one answer.

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
