#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/library/documents.h"
#include "fjord/library/next_iterator.h"

namespace fjord {

class ClientCore;

struct SubscribeOptions {
  std::string selection = {};            ///< Empty: all documents.
  std::string type = {};                 ///< Only documents of this type; empty: all types but those of jobs.
  std::vector<std::string> fields = {};  ///< Only these fields; none: all.
  std::string resume = {};               ///< Subscription::cursor() of an earlier one with the same question.
  bool from_now = false;                 ///< Without `resume`: documents that are there already are not given.
  Duration poll_interval = milliseconds(500);
  std::size_t buffer_bytes = std::size_t{16} << 20;  ///< Reading pauses while more than this waits here.
};

/// One event of a subscription.
struct Change {
  enum class Kind : std::uint8_t {
    Put,       ///< The document was written, or selected for the first time.
    Remove,    ///< It was removed or is not selected. May name documents that were never given.
    CaughtUp,  ///< Everything up to the moment when this round began has been given.
    Resync,    ///< The cursor is older than the cluster's memory of removes: discard the copy and begin again. Last.
  };
  Kind kind = Kind::Put;
  std::string id;                      ///< Put and Remove.
  const Document* document = nullptr;  ///< Put. Valid until the next change is taken.
  Timestamp version;                   ///< Of the document; Resync: removes before it are forgotten.
};

/// All changes of the documents that a selection matches, at least once, in order for each document. Begins with the
/// documents that are there:
///
///     fjord::Subscription changes = client.subscribe({.selection = "item.price > 3", .resume = saved});
///     for (const fjord::Change& change : changes) { apply(change); save(changes.cursor()); }
///
/// Threading: one thread at a time; stop() any thread. Lifetime: the client outlives it.
class Subscription {
 public:
  Subscription(ClientCore& core, SubscribeOptions options);
  Subscription(Subscription&&) noexcept;
  Subscription& operator=(Subscription&&) noexcept;
  ~Subscription();

  /// Waits for the next change; null after stop(), after Resync and after an error, see status(). Valid until the next
  /// call.
  const Change* next();
  /// The same, but null also if nothing happens within `timeout`; is_over() tells the two apart.
  const Change* next_within(Duration timeout);
  bool is_over() const;
  const Status& status() const;
  /// A text that says which changes have been taken. Later subscriptions go on behind them.
  std::string cursor() const;
  void stop();

  using Iterator = NextIterator<Subscription, Change>;
  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord
