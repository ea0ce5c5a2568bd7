#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/document/docblock.h"
#include "fjord/library/documents.h"
#include "fjord/library/next_iterator.h"

namespace fjord {

class ClientCore;

/// One of `count` disjoint parts that together are everything; `index` counts from 0.
struct VisitSlice {
  std::uint64_t index = 0;
  std::uint64_t count = 1;
};

struct VisitOptions {
  std::string selection = {};            ///< "music.year > 1990"; empty: all documents.
  std::string type = {};                 ///< Only documents of this type; empty: all types but those of jobs.
  std::vector<std::string> fields = {};  ///< Only these fields; none: all.
  bool ids_only = false;
  bool include_removed = false;  ///< Also removes that are still remembered.
  Timestamp from{0};             ///< Only versions written at or after this time.
  Timestamp to{0};               ///< And not after this one; 0: no limit.
  /// Each bucket as it was at one moment. Documents arrive when their bucket is complete.
  bool snapshot = false;
  std::uint64_t slices = 1;                           ///< This many parts are read at the same time.
  std::optional<VisitSlice> slice = {};               ///< Only this part, for one of several programs.
  std::string resume = {};                            ///< Visit::cursor() of an earlier visit with the same question.
  ClientPriority priority = ClientPriority::Default;  ///< Default: Background.
  std::size_t buffer_bytes = std::size_t{16} << 20;   ///< The visit pauses while more than this waits here.
  std::uint32_t visitors_per_node = 4;
  Duration no_progress_limit = seconds(60);  ///< The visit fails when nothing has arrived for this long.
};

struct VisitStatistics {
  std::uint64_t buckets_total = 0;  ///< 0 until it is known.
  std::uint64_t buckets_done = 0;
  std::uint64_t buckets_repeated = 0;   ///< Begun again after a failure.
  std::uint64_t documents_read = 0;     ///< By storage nodes, in complete buckets.
  std::uint64_t documents_matched = 0;  ///< Of these.
  std::uint64_t bytes = 0;
  std::uint64_t buckets_skipped_by_selection = 0;
  std::uint64_t buckets_skipped_by_slice = 0;
  std::uint64_t buckets_skipped_as_done = 0;
  std::map<std::uint16_t, std::uint64_t> buckets_by_node;  ///< By index of the storage node that served them.

  /// 0 to 1; negative while it is not known.
  double fraction_done() const {
    return buckets_total == 0 ? -1 : static_cast<double>(buckets_done) / static_cast<double>(buckets_total);
  }
};

/// Documents that a selection matches, while others write:
///
///     fjord::Visit visit = client.visit({.selection = "music.year > 1990", .slices = 4});
///     for (const fjord::Document& document : visit) use(document);
///     if (!visit.status()) complain(visit.status());
///
/// Every document that matches from beginning to end is given exactly once, also across resumes with cursor(); one that
/// is written meanwhile is given in one of its versions, or not at all if that does not match. Nodes that fail are
/// replaced by others.
///
/// Threading: one thread at a time; stop() and statistics() any thread. Back-pressure: what is read ahead is bounded by
/// buffer_bytes. Lifetime: the client outlives it; the destructor ends the visit.
class Visit {
 public:
  Visit(ClientCore& core, VisitOptions options);
  Visit(Visit&&) noexcept;
  Visit& operator=(Visit&&) noexcept;
  ~Visit();

  /// The next document; null at the end, see status(). Valid until the next call. Removes are skipped; next_entry()
  /// gives them.
  const Document* next();
  /// The next entry without decoding it, for speed and for removes; absent at the end. Its views are valid until the
  /// next call. `types()` decodes it.
  std::optional<EntryView> next_entry();
  /// The version of the document that was given last.
  Timestamp version() const;
  /// The types of the documents that this visit gives.
  std::shared_ptr<const DocumentTypeRepo> types() const;

  /// OK while the visit goes on, and at its end if everything was read. Cancelled after stop().
  const Status& status() const;
  /// A text that says what has been given. A later visit with `resume` gives the rest.
  std::string cursor() const;
  VisitStatistics statistics() const;
  /// Ends the visit: next() returns null. From any thread, also a signal handler's helper thread.
  void stop();

  using Iterator = NextIterator<Visit, Document>;
  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord
