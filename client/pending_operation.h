#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fjord/client/client.h"
#include "fjord/common/clock.h"
#include "fjord/document/document_id.h"

namespace fjord {

/// Where an operation that has not ended is.
enum class Place : std::uint8_t {
  Behind,    ///< Waits for an earlier operation on the same id.
  Parked,    ///< Waits for the first snapshot of the cluster.
  Queued,    ///< Waits for room on the way to its distributor.
  InFlight,  ///< Sent and not answered.
  Pausing,   ///< Waits to be sent again.
};

/// One operation from the call of execute() to its end.
struct PendingOperation {
  rpc::Operation operation;
  GlobalId gid;
  Status invalid;  ///< Why it cannot be sent at all; else OK.
  MonotonicTime started;
  MonotonicTime deadline;
  AsyncClient::OperationDone done;

  Place place = Place::Behind;
  bool in_doubt = false;  ///< An attempt was sent, and nothing answered since says whether it was applied.
  bool settled = false;
  std::uint32_t attempts = 0;
  std::uint32_t busy_answers = 0;
  std::uint32_t failures = 0;              ///< In a row, for the pause before the next attempt.
  Duration retry_after{0};                 ///< What the last attempt's answer asked for.
  std::size_t size = 0;                    ///< bytes() when it came in.
  Status last;                             ///< Of the last attempt; OK before it.
  std::size_t live_index = 0;              ///< In the dispatcher's list of operations that have not ended.
  std::shared_ptr<PendingOperation> next;  ///< The next operation on the same id.

  bool is_write() const { return operation.kind != rpc::OperationKind::Get; }
  std::size_t bytes() const {
    return operation.id.size() + operation.header.size() + operation.body.size() + operation.json.size() +
           operation.update.size() + operation.condition.size();
  }
};

using PendingPtr = std::shared_ptr<PendingOperation>;

}  // namespace fjord
