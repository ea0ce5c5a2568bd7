#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document.h"
#include "fjord/library/documents.h"
#include "fjord/library/next.h"
#include "fjord/library/next_iterator.h"
#include "fjord/library/pending.h"

namespace fjord {

class ClientCore;
class EntryDecoder;

/// One of `count` disjoint slices that together cover all documents; `index` counts from 0.
struct VisitSlice {
  std::uint64_t index = 0;
  std::uint64_t count = 1;
};

struct VisitOptions {
  std::string selection = {};            ///< "music.year > 1990"; empty: all documents.
  std::string type = {};                 ///< Only documents of this type; empty: all types but those of jobs.
  std::vector<std::string> fields = {};  ///< Fields to return; empty: all.
  bool ids_only = false;
  bool include_removed = false;  ///< Give remove entries, too.
  Timestamp from{0};             ///< Only versions written at or after this time.
  Timestamp to{0};               ///< Only versions written at or before this time; 0: no limit.
  /// Give each bucket as it was at one moment. Its documents arrive when the bucket has been read completely.
  bool snapshot = false;
  std::uint64_t slices = 1;              ///< Number of slices that are read in parallel.
  std::optional<VisitSlice> slice = {};  ///< Read only this slice, if several programs share the work.
  std::string resume = {};               ///< Visit::cursor() of an earlier visit of the same documents and slices.
  ClientPriority priority = ClientPriority::Default;  ///< Default: the visit has priority Background.
  std::size_t buffer_bytes = std::size_t{16} << 20;   ///< Reading pauses while more bytes than this wait to be taken.
  std::uint32_t visitors_per_node = 4;
  std::uint32_t buckets_per_visitor = 0;     ///< 0: the library chooses.
  std::uint32_t buckets_at_once = 1;         ///< Buckets that one visitor reads at the same time.
  Duration no_progress_limit = seconds(60);  ///< The visit fails if nothing arrives for this long.
  /// The visitor that runs in the storage nodes: "dump" gives each document that matches, another name is that of a
  /// plugin. A resumed visit of a plugin gives the documents of an incomplete bucket again.
  std::string visitor = "dump";
  std::map<std::string, std::string> parameters = {};  ///< Parameters of the visitor.
};

struct VisitStatistics {
  std::uint64_t buckets_total = 0;  ///< 0: not known yet.
  std::uint64_t buckets_done = 0;
  std::uint64_t buckets_repeated = 0;   ///< Number of restarts of a bucket after a failure.
  std::uint64_t documents_read = 0;     ///< Documents that storage nodes have read in completed buckets.
  std::uint64_t documents_matched = 0;  ///< Documents of documents_read that match the selection.
  std::uint64_t bytes = 0;
  std::uint64_t buckets_skipped_by_selection = 0;
  std::uint64_t buckets_skipped_by_slice = 0;
  std::uint64_t buckets_skipped_as_done = 0;
  bool is_located = false;  ///< The selection names the buckets, so that none had to be listed.
  std::map<std::uint16_t, std::uint64_t> buckets_by_node;  ///< Buckets read, by index of the storage node.

  /// Returns 0 to 1; a negative value if it is not known yet.
  double fraction_done() const {
    return buckets_total == 0 ? -1 : static_cast<double>(buckets_done) / static_cast<double>(buckets_total);
  }
};

/// Documents and remove entries of one bucket, as a storage node has sent them: nothing is decoded or copied.
///
/// Threading: one thread at a time; several blocks may be on several threads. Lifetime: it owns its bytes, and may
/// outlive its visit; decode() needs the client.
class DocumentBlock {
 public:
  DocumentBlock(std::string bytes, std::size_t size, std::shared_ptr<EntryDecoder> decoder)
      : bytes_(std::move(bytes)), size_(size), decoder_(std::move(decoder)) {}

  /// Returns the number of entries.
  std::size_t size() const { return size_; }
  /// Returns a reader of the entries. Their views are valid as long as the block.
  DocBlockReader entries() const { return DocBlockReader(bytes_); }
  /// Returns the encoded entries; DocBlockBuilder describes their form.
  const std::string& bytes() const { return bytes_; }
  /// Returns the document of an entry, with the fields of the visit. Waits for the schemas if the client does not know
  /// the document's type. Errors: InvalidArgument for a remove entry; Corruption; UnknownType.
  Result<Document> decode(const EntryView& entry) const;

 private:
  std::string bytes_;
  std::size_t size_;
  std::shared_ptr<EntryDecoder> decoder_;
};

/// The documents that a selection matches, read while other clients write:
///
///     fjord::Visit visit = client.visit({.selection = "music.year > 1990", .slices = 4});
///     for (const fjord::Document& document : visit) use(document);
///     if (!visit.status()) complain(visit.status());
///
/// A visit gives every document that matches throughout the visit exactly once, also across resumes with cursor(). It
/// gives a document that is written meanwhile in one of its versions, or skips it if that version does not match. If a
/// node fails, the visit reads from another replica.
///
/// Threading: one thread at a time; stop() and statistics() on any thread. Back-pressure: buffer_bytes bounds the
/// documents read ahead. Lifetime: the client must outlive the visit; the destructor ends the visit, on any thread.
class Visit {
 public:
  Visit(ClientCore& core, VisitOptions options);
  Visit(Visit&&) noexcept;
  Visit& operator=(Visit&&) noexcept;
  ~Visit();

  /// Returns the next document; null at the end and after an error (status()). Valid until the next call. Skips remove
  /// entries; next_entry() returns them.
  ///
  ///     while (const fjord::Document* document = visit.next()) use(*document);           // waits
  ///     while (const fjord::Document* document = co_await visit.next()) use(*document);  // resumes the coroutine
  ///
  /// While a coroutine waits, only stop() and statistics() may be called. If the visit is destroyed meanwhile, the
  /// coroutine gets null, and status() is Cancelled until the coroutine waits again.
  Next<Visit, Document> next();
  /// Returns the next entry undecoded, a document or a remove entry; absent at the end. Faster than next(). Its views
  /// are valid until the next call. Decode it with types().
  std::optional<EntryView> next_entry();
  /// Returns the next entries together, undecoded, in the blocks that storage nodes have sent; absent at the end.
  /// Faster than next_entry(), and other threads can decode the blocks:
  ///
  ///     while (std::optional<fjord::DocumentBlock> block = visit.next_block()) pool.post(decode(std::move(*block)));
  ///
  /// cursor() counts all entries of the block as given.
  std::optional<DocumentBlock> next_block();
  /// Returns true if next() has to wait for the cluster, so that a program can flush what it has before.
  bool would_wait() const;

  // A program that must not wait for documents takes those that have arrived:
  //
  //     while (!visit.is_over()) {
  //       while (const fjord::Document* document = visit.try_next()) use(*document);
  //       co_await visit.ready();
  //     }

  /// Returns what next(), next_entry() and next_block() return, but nothing instead of waiting.
  const Document* try_next();
  std::optional<EntryView> try_next_entry();
  std::optional<DocumentBlock> try_next_block();
  /// Returns true at the end and after an error.
  bool is_over() const;
  /// Ends when there may be more, or when the visit is over. Until then only stop() and statistics() may be called.
  /// Ends as Cancelled if the visit is destroyed before.
  Pending<Status> ready();
  /// Returns the version of the document or entry given last.
  Timestamp version() const;
  /// Returns the document types for decoding this visit's entries.
  std::shared_ptr<const DocumentTypeRepo> types() const;

  /// Returns OK during the visit, and at its end if all documents were read; Cancelled after stop(); else the error.
  const Status& status() const;
  /// Returns a text that identifies the documents given so far. A visit with this text in VisitOptions::resume gives
  /// the others.
  std::string cursor() const;
  /// Returns a function that makes the text of cursor() as of now, on any thread and as often as wanted. This call only
  /// copies what the text is made of: 12 bytes for each document that was given of a bucket that is not complete yet.
  std::function<std::string()> cursor_of_now() const;
  /// As cursor(), but counts complete buckets only, so that the text stays short. A visit that resumes from it gives
  /// the documents of incomplete buckets again.
  std::string bucket_cursor() const;
  VisitStatistics statistics() const;
  /// Ends the visit: next() returns null. Any thread, such as a helper thread of a signal handler.
  void stop();

  using Iterator = NextIterator<Visit, Document>;
  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

 private:
  friend class Next<Visit, Document>;
  const Document* wait_next();

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fjord
