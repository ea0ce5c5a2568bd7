#pragma once

#include <compare>
#include <cstddef>
#include <deque>

#include "aimd_window.h"
#include "fjord/client/client_options.h"
#include "fjord/common/clock.h"
#include "fjord/rpc/transport.h"
#include "pending_operation.h"

namespace fjord {

/// Key of a channel. Each kind of operation has its own channel, so that reads do not wait for writes, nor urgent
/// operations for less urgent ones.
struct ChannelKey {
  rpc::Address address;
  rpc::Priority priority = rpc::Priority::Default;
  bool is_write = false;
  bool is_strict = false;  ///< True for operations that an older node has to refuse: see rpc::is_strict().
  friend auto operator<=>(const ChannelKey&, const ChannelKey&) = default;
};

/// Queue, window and state of one distributor for operations of one kind.
struct Channel {
  explicit Channel(const ClientOptions& options)
      : window(options.window_operations_min, options.window_operations_max) {}

  /// Adjusts the window after `operations` operations of a batch have ended. The window is cut once for all batches
  /// that were sent before the cut.
  void adjust_window(MonotonicTime sent, std::size_t operations, bool was_busy, MonotonicTime now) {
    if (!was_busy) {
      for (std::size_t i = 0; i < operations; ++i) window.on_result(false);
    } else if (sent >= cut_at) {
      window.cut();
      cut_at = now;
    }
  }

  rpc::Address address;
  bool is_strict = false;
  std::deque<PendingPtr> queue;
  std::size_t queue_bytes = 0;
  std::size_t in_flight = 0;             ///< Number of batches in flight.
  std::size_t operations_in_flight = 0;  ///< Number of operations in the batches in flight.
  AimdWindow window;                     ///< Limits operations_in_flight.
  MonotonicTime cut_at;                  ///< Time of the last cut of the window.
  MonotonicTime paused_until;            ///< End of the pause that the distributor asked for.
  MonotonicTime last_sent;
  bool timer_armed = false;  ///< A timer is set that will send the queue even if a slow batch is still in flight.
  bool dirty = false;        ///< The dispatcher will look at this channel in the next pump().
};

}  // namespace fjord
