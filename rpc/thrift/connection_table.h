#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "fjord/common/unique_function.h"

namespace fjord::rpc {

/// The connections of a server on all its loops. Chooses the ones that end when there are too many, or when they hold
/// too much memory, so that a peer can take neither the descriptors nor the memory of a process for itself.
///
/// A connection is new until its first call, which tells a node of the cluster from a client by what it asks for; the
/// peer's name is not proved by it. New connections end first, the oldest of them before the others, then clients
/// without a call in work. The reserve holds connections of nodes, and new ones, which may be those of nodes.
///
/// Threading: any thread, except where a function says otherwise.
class ConnectionTable {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Kind { New, Client, Node };
  enum class Why { Full, Memory };

  struct Limits {
    std::size_t clients_max = 0;           ///< Connections of clients.
    std::size_t reserved = 0;              ///< Further connections.
    std::size_t bytes_max = 0;             ///< Memory of all connections.
    std::size_t half_frame_bytes_max = 0;  ///< Part of it in frames that have not arrived whole.
  };

  /// What the table knows of one connection. The thread of the connection writes it.
  class Entry {
   public:
    Kind kind() const { return kind_.load(std::memory_order_relaxed); }
    /// Returns true if the table has ended the connection: it takes no more calls.
    bool is_ended() const { return is_ended_.load(std::memory_order_relaxed); }
    Clock::time_point active_at() const { return Clock::time_point(active_at_.load(std::memory_order_relaxed)); }
    /// Notes the time of a call, or of its answer.
    void note_active(Clock::time_point at) { active_at_.store(at.time_since_epoch(), std::memory_order_relaxed); }
    /// Notes whether a call has no answer yet.
    void note_waiting(bool is_waiting) { is_waiting_.store(is_waiting, std::memory_order_relaxed); }

   private:
    friend class ConnectionTable;

    std::atomic<Kind> kind_{Kind::New};
    std::atomic<bool> is_ended_{false};
    std::atomic<bool> is_waiting_{false};
    std::atomic<Clock::duration> active_at_{Clock::now().time_since_epoch()};
    std::atomic<std::size_t> bytes_{0};
    std::atomic<std::size_t> half_frame_bytes_{0};
    std::function<void(Why)> end_;
  };

  explicit ConnectionTable(const Limits& limits) : limits_(limits) {}

  /// Adds a new connection; ends another one if there are too many. Returns null if none of them may end. `end` is
  /// called at most once, on any thread, and must not call the table.
  std::shared_ptr<Entry> add(std::function<void(Why)> end);
  void remove(const Entry& entry);
  /// Notes a call. Returns false if the peer is a client and there are too many that wait for answers.
  bool note_call(Entry& entry, bool is_of_node);
  /// Notes the memory of a connection: `half_frame_bytes` of it are the beginning of a frame. May end this or another
  /// connection. Returns false while the connection must not read more.
  bool hold(Entry& entry, std::size_t bytes, std::size_t half_frame_bytes);

 private:
  Entry* find_victim(bool may_be_new) FJORD_REQUIRES(mutex_);
  /// Takes the entry out, and returns the function that ends its connection.
  std::function<void(Why)> take_out(Entry& entry) FJORD_REQUIRES(mutex_);
  void end_largest_half_frame();
  void forget_memory(Entry& entry);

  const Limits limits_;
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::size_t> half_frame_bytes_{0};
  std::mutex mutex_;
  std::unordered_map<const Entry*, std::shared_ptr<Entry>> entries_ FJORD_GUARDED_BY(mutex_);
  std::size_t clients_ FJORD_GUARDED_BY(mutex_) = 0;
};

}  // namespace fjord::rpc
