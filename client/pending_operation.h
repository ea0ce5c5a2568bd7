#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "fjord/client/client.h"
#include "fjord/common/clock.h"
#include "fjord/document/document_id.h"

namespace fjord {

/// The stage of an operation that has not ended.
enum class Place : std::uint8_t {
  Behind,    ///< Waits for an earlier operation on the same id.
  Parked,    ///< Waits for the first snapshot of the cluster.
  Queued,    ///< Waits in the queue of its distributor.
  InFlight,  ///< Was sent and is not answered.
  Pausing,   ///< Waits for the pause before its retry to end.
};

/// One operation from the call of execute() to its end.
struct PendingOperation {
  rpc::Operation operation;
  GlobalId gid;
  Status invalid;  ///< OK if the operation can be sent; else the reason why not.
  MonotonicTime started;
  MonotonicTime deadline;
  AsyncClient::OperationDone done;

  Place place = Place::Behind;
  bool in_doubt = false;  ///< An attempt was sent, and no answer since said whether it was applied.
  bool settled = false;
  std::optional<std::uint16_t> distributor;  ///< The distributor that got the last attempt.
  std::uint32_t attempts = 0;
  std::uint32_t busy_answers = 0;
  std::uint32_t failures = 0;              ///< Consecutive failures; determines the pause before the next attempt.
  Duration retry_after{0};                 ///< Pause that the last answer asked for.
  std::size_t size = 0;                    ///< Size in bytes when execute() was called.
  Status last;                             ///< Status of the last attempt; OK before the first one.
  std::size_t live_index = 0;              ///< Index in the dispatcher's list of pending operations.
  std::shared_ptr<PendingOperation> next;  ///< The next operation on the same id.

  bool is_write() const { return operation.kind != rpc::OperationKind::Get; }
  std::size_t bytes() const {
    return operation.id.size() + operation.header.size() + operation.body.size() + operation.json.size() +
           operation.update.size() + operation.condition.size();
  }
};

using PendingPtr = std::shared_ptr<PendingOperation>;

}  // namespace fjord
