#pragma once

#include <algorithm>
#include <cstddef>
#include <variant>

#include "fjord/common/clock.h"
#include "fjord/rpc/messages.h"

namespace fjord::rpc {

/// Largest batch of operations that the thread which received it may work on (common/run_inline.h). A larger batch goes
/// to the thread of its executor: it is worth the wake-up, and meanwhile the I/O thread can receive the next one.
constexpr std::size_t kShortBatchMax = 64;
/// Time for which a thread may work on messages that it has received before it looks for further ones.
constexpr Duration kInlineBudget = milliseconds(1);

inline bool is_short(const Execute& batch) { return batch.operations.size() <= kShortBatchMax; }

/// Only reads are short: a write can wait for a disk.
inline bool is_short(const Apply& batch) {
  return batch.operations.size() <= kShortBatchMax &&
         std::all_of(batch.operations.begin(), batch.operations.end(),
                     [](const StorageOperation& one) { return one.kind == OperationKind::Get; });
}

/// Returns true for the answers to small batches of operations. Callers may work long on any other answer.
inline bool is_short(const Reply& reply) {
  if (const auto* executed = std::get_if<ExecuteReply>(&reply)) return executed->results.size() <= kShortBatchMax;
  if (const auto* applied = std::get_if<ApplyReply>(&reply)) return applied->results.size() <= kShortBatchMax;
  if (const auto* strict = std::get_if<ExecuteStrictReply>(&reply)) {
    return strict->batch.results.size() <= kShortBatchMax;
  }
  return false;
}

}  // namespace fjord::rpc
