#pragma once

#include <functional>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/common/random.h"
#include "fjord/visitors/visitor_session.h"

namespace fjord::visitors {

/// What the parts of a visitor session share.
struct SessionContext {
  VisitorSessionOptions options;
  VisitorSessionCallbacks callbacks;
  rpc::Transport& transport;
  rpc::SnapshotHolder& snapshot;
  Clock& clock;
  Random random;
  Executor& executor;
  /// Ends the visit with this status.
  std::function<void(Status)> finish;
  /// Calls the tick of the session at this time or earlier.
  std::function<void(MonotonicTime)> wake_at;

  VisitProgress progress = {};
  bool finished = false;  ///< The visit has ended or was cancelled; no callback runs any more.
  bool paused = false;
  MonotonicTime started = {};
  MonotonicTime last_moved = {};  ///< Time of the last progress.
  Status last_reason = {};        ///< Reason of the last repetition.

  /// Notes progress.
  void moved() { last_moved = clock.now(); }
  bool node_up(std::uint16_t node) const {
    const auto known = snapshot.get();
    return known != nullptr && known->storage_serves(node) && node < known->info().storage_addresses.size();
  }
};

}  // namespace fjord::visitors
