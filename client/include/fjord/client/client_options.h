#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/rpc/distributor_messages.h"

namespace fjord {

/// Options of an AsyncClient; the defaults suit most programs.
struct ClientOptions {
  /// Distributors (host:port) that are asked for the cluster state. One that answers is enough; the addresses of the
  /// others come with the state. Not empty.
  std::vector<std::string> addresses;
  /// Time limit of an operation or call, retries included, if its caller gives none.
  Duration default_timeout = seconds(30);
  /// Time limit of one attempt. After it a write counts as in doubt and the operation is retried.
  Duration attempt_timeout = seconds(5);
  /// When a batch takes longer than this, the distributor answers with the outcomes it has; the other operations of the
  /// batch go on, and their outcomes follow. 0: all outcomes of a batch come together, when its last operation has
  /// ended.
  Duration partial_answer_after = milliseconds(50);
  /// Time in which a distributor must answer a request for cluster information before the next one is asked.
  Duration cluster_info_timeout = seconds(1);
  /// The pause before the n-th retry is drawn from the upper half of backoff_min * 2^(n-1), at most backoff_max.
  Duration backoff_min = milliseconds(5);
  Duration backoff_max = seconds(1);
  /// Maximum size of a batch. A queue of this size is sent without waiting for earlier batches, up to
  /// `batches_in_flight_max`.
  std::size_t batch_operations_max = 512;
  std::size_t batch_bytes_max = std::size_t{1} << 20;
  /// Gives updates and operations with a condition an idempotency key (`token`) if they have none. Without one, a retry
  /// at another distributor can apply the operation twice.
  bool make_tokens = true;
  /// Maximum number of batches in flight to one distributor, at least 1; slow batches can exceed it.
  std::size_t batches_in_flight_max = 4;
  /// Priority of operations that name none. An overloaded distributor refuses low priorities first.
  rpc::Priority priority = rpc::Priority::Default;
  /// Consistency of gets that name none. Session: a program that has seen a version never sees an older one later,
  /// whatever crashes; a get of a document waits while that document is being written.
  rpc::Consistency consistency = rpc::Consistency::Default;
  /// Window of operations in flight of one priority to one distributor. It starts at the upper limit, halves when the
  /// distributor answers BUSY or not at all, and otherwise grows slowly; operations beyond it wait in the client.
  std::size_t window_operations_max = 2048;
  std::size_t window_operations_min = 4;
  /// Maximum number and maximum bytes of pending operations. Further operations end at once with BUSY, not applied.
  std::size_t pending_operations_max = 100'000;
  std::size_t pending_bytes_max = std::size_t{512} << 20;
  /// Limits on retries after BUSY and after lost answers: a percentage of the operations, a number per second, and a
  /// burst after a time without retries. An operation that would exceed them ends with the result of its last attempt.
  /// Other retries are not limited, because they do not follow from overload.
  std::uint32_t retry_budget_percent = 20;
  std::uint32_t retry_budget_per_second = 10;
  std::uint32_t retry_budget_burst = 2048;
};

}  // namespace fjord
