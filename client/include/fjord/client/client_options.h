#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/rpc/messages.h"

namespace fjord {

/// How a AsyncClient behaves; the defaults suit most programs.
struct ClientOptions {
  /// host:port of distributors that are asked for the cluster state. One that answers is enough; the addresses of the
  /// others come with the state. Not empty.
  std::vector<std::string> addresses;
  /// Deadline of an operation or call whose caller says none, retries included.
  Duration default_timeout = seconds(30);
  /// How long one attempt may take before it counts as in doubt and is repeated.
  Duration attempt_timeout = seconds(5);
  /// When a batch takes longer than this, the distributor tells the outcomes that it knows; the other operations of the
  /// batch go on, and their outcomes follow. 0: all outcomes of a batch come together, when its last operation has
  /// ended.
  Duration partial_answer_after = milliseconds(50);
  /// How long one distributor may take to answer a question about the cluster before the next one is asked.
  Duration cluster_info_timeout = seconds(1);
  /// The wait before the n-th retry is drawn from the upper half of backoff_min * 2^(n-1), at most backoff_max.
  Duration backoff_min = milliseconds(5);
  Duration backoff_max = seconds(1);
  /// A batch is sent at the latest when so much waits for one distributor, if a batch may be sent at all.
  std::size_t batch_operations_max = 512;
  std::size_t batch_bytes_max = std::size_t{1} << 20;
  /// Gives updates and operations with a condition a token if they have none. Without it a repetition that another
  /// distributor gets may be applied twice.
  bool make_tokens = true;
  /// Batches on their way to one distributor at once, at least 1.
  std::size_t batches_in_flight_max = 4;
  /// Of operations that name none: who is refused first by a distributor with too much to do.
  rpc::Priority priority = rpc::Priority::Default;
  /// Of gets that name none. Session: a program that has seen a version never sees an older one later, whatever
  /// crashes; a get of a document that is being written waits for that.
  rpc::Consistency consistency = rpc::Consistency::Default;
  /// Operations of one priority on their way to one distributor. The window begins at the upper limit, halves when the
  /// distributor answers BUSY or not at all, and grows again by little while it does not; what is beyond it waits here.
  std::size_t window_operations_max = 2048;
  std::size_t window_operations_min = 4;
  /// Operations that have not ended, and their bytes. What comes beyond ends at once with BUSY, not applied.
  std::size_t pending_operations_max = 100'000;
  std::size_t pending_bytes_max = std::size_t{512} << 20;
  /// Retries after BUSY and after lost answers: at most so many for every 100 operations, and beside these so many a
  /// second, and at most so many at once after a time without. An operation that would need another one ends with what
  /// its last attempt brought. Other retries are not counted; their cause is never that too much is sent.
  std::uint32_t retry_budget_percent = 20;
  std::uint32_t retry_budget_per_second = 10;
  std::uint32_t retry_budget_burst = 2048;
};

}  // namespace fjord
