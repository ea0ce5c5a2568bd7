#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_type.h"
#include "fjord/library/documents.h"
#include "fjord/library/next.h"
#include "fjord/library/next_iterator.h"
#include "fjord/library/pending.h"

namespace fjord {

class ClientCore;

struct SubscribeOptions {
  std::string selection = {};            ///< Empty: all documents.
  std::string type = {};                 ///< Only documents of this type; empty: all types but those of jobs.
  std::vector<std::string> fields = {};  ///< Only these fields; none: all.
  std::string resume = {};               ///< cursor() of an earlier subscription with equal selection, type and fields.
  bool from_now = false;                 ///< Skip the documents that exist at the start. Without effect with `resume`.
  Duration poll_interval = milliseconds(500);
  std::size_t buffer_bytes = std::size_t{16} << 20;  ///< Reading pauses while more bytes than this wait to be taken.
  bool decode =
      true;  ///< False: Change::document is null, and Change::id empty for puts; Change::entry has all. Faster.
};

/// One event of a subscription.
struct Change {
  enum class Kind : std::uint8_t {
    Put,       ///< The document was written, or selected for the first time.
    Remove,    ///< The document was removed or no longer matches. May name a document that was never given.
    CaughtUp,  ///< All changes up to the start of this round have been given.
    Resync,    ///< Remove entries newer than the cursor were dropped: discard all data and begin again. The last event.
  };
  Kind kind = Kind::Put;
  std::string id;                      ///< Set for Put and Remove.
  const Document* document = nullptr;  ///< Set for Put. Valid until the next change is taken.
  std::optional<EntryView> entry;      ///< Set for Put and Remove, undecoded. Valid until the next change is taken.
  Timestamp version;  ///< Version of the document; Resync: remove entries before this time were dropped.
};

/// All changes of the documents that a selection matches: each at least once, in order for each document. It begins
/// with the existing documents:
///
///     fjord::Subscription changes = client.subscribe({.selection = "item.price > 3", .resume = saved});
///     for (const fjord::Change& change : changes) { apply(change); save(changes.cursor()); }
///
/// Threading: one thread at a time; stop() and the destructor on any thread. Lifetime: the client must outlive it.
class Subscription {
 public:
  Subscription(ClientCore& core, SubscribeOptions options);
  Subscription(Subscription&&) noexcept;
  Subscription& operator=(Subscription&&) noexcept;
  ~Subscription();

  /// Waits for the next change. Returns null after stop(), after Resync and after an error (status()). The change is
  /// valid until the next call.
  ///
  ///     while (const fjord::Change* change = co_await changes.next()) apply(*change);  // resumes the coroutine
  ///
  /// While a coroutine waits, only stop() may be called. If the subscription is destroyed meanwhile, the coroutine gets
  /// null, and status() is Cancelled until the coroutine waits again.
  Next<Subscription, Change> next();
  /// Like next(), but also returns null if no change comes within `timeout`; is_over() is false then.
  const Change* next_within(Duration timeout);

  // The same without waiting, for programs that take what has arrived:
  //
  //     while (!changes.is_over()) {
  //       while (const fjord::Change* change = changes.try_next()) apply(*change);
  //       co_await changes.ready();
  //     }

  /// Returns what next() returns; null also if it would wait.
  const Change* try_next();
  /// Returns true after Resync was given, after stop() and after an error.
  bool is_over() const;
  /// Ends when there may be a change, or when the subscription is over. Until then only stop() may be called. Ends as
  /// Cancelled if the subscription is destroyed before.
  Pending<Status> ready();
  /// Returns the document types for decoding Change::entry. They change when a document of a new type comes.
  std::shared_ptr<const DocumentTypeRepo> types() const;
  const Status& status() const;
  /// Returns a text that identifies the changes taken so far. A subscription with this text in SubscribeOptions::resume
  /// continues after them.
  std::string cursor() const;
  void stop();

  using Iterator = NextIterator<Subscription, Change>;
  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

 private:
  friend class Next<Subscription, Change>;
  const Change* wait_next();

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord
