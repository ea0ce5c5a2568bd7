#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/document/document_update.h"
#include "fjord/library/documents.h"
#include "fjord/library/pending.h"

namespace fjord {

class Admin;
struct AggregateRequest;
struct AggregateResult;
struct BulkOptions;
struct BulkSummary;
class ClientCore;
struct ExportOptions;
struct ExportSummary;
struct ImportOptions;
struct ImportSummary;
class Jobs;
struct SearchRequest;
struct SearchResult;
struct SubscribeOptions;
class Subscription;
struct VisitOptions;
class Visit;

/// How a client repeats operations that failed for a reason that may pass. The pause before the n-th retry is drawn
/// from the upper half of backoff_min * 2^(n-1), at most backoff_max. The budget is shared by all operations of the
/// client. It limits retries after BUSY and after lost answers, so that clients do not add to an overload; an operation
/// that would exceed it ends with the result of its last attempt.
struct RetryPolicy {
  Duration attempt_timeout = seconds(5);  ///< Time limit of one attempt; after it a write counts as in doubt.
  Duration backoff_min = milliseconds(5);
  Duration backoff_max = seconds(1);
  std::uint32_t budget_percent = 20;     ///< Retries as a part of all operations.
  std::uint32_t budget_per_second = 10;  ///< Retries in addition to that.
  std::uint32_t budget_burst = 2048;     ///< Retries at once after a time without any.
};

struct ClientSettings {
  Duration timeout = seconds(30);  ///< For operations without a timeout; includes retries.
  RetryPolicy retry = {};
  ClientPriority priority = ClientPriority::Default;
  ReadConsistency consistency = ReadConsistency::Default;
  /// Runs the callbacks of operations, and resumes coroutines: a thread pool or an event loop of the program. Called on
  /// the client's own thread for each, so it must not block; it must exist as long as the client, and run each task
  /// once. Empty: they run on the client's own thread.
  CallbackExecutor executor = {};
};

/// A connection to a cluster, for everything that a program does with it.
///
/// It finds the distributor of each document, sends operations in batches, retries after transient errors, and reports
/// for each write whether it was applied. It sends operations on one document id in the order of the calls, operations
/// on different ids in any order. No member throws; each result carries a Status.
///
/// Threading: every member may be called from any thread, several at once. Cost: the client has one thread, another one
/// for each aggregation, and one connection to each distributor; make one client for the whole program.
/// Lifetime: move-only. Visits, subscriptions, jobs and admin() must end before the client is destroyed, and it must
/// not be destroyed in one of its own callbacks. Operations that are pending then end as Cancelled.
class Client {
 public:
  /// Use fjord::connect().
  explicit Client(std::unique_ptr<ClientCore> core);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  /// Waits until a distributor has answered. Errors: InvalidArgument for a malformed address or setting; NotReady that
  /// names each address and why it did not answer. Optional: every call connects when needed.
  Status ping();

  // --- One document
  //
  // These members have overloads instead of default arguments: g++ before 13 destroys temporary aggregates in a
  // co_await expression wrongly. With such a compiler, pass the options of an awaited operation in a variable.

  Pending<ReadResult> get(std::string id, ReadOptions options);
  Pending<ReadResult> get(std::string id) { return get(std::move(id), ReadOptions()); }
  /// Returns the document as JSON, which the distributor writes.
  Pending<JsonResult> get_json(std::string id, ReadOptions options);
  Pending<JsonResult> get_json(std::string id) { return get_json(std::move(id), ReadOptions()); }
  /// Returns the object of the document's fields as JSON, without fields that are an empty string, array, map, set or
  /// struct. This client writes it.
  Pending<JsonResult> get_fields_json(std::string id, ReadOptions options);
  Pending<WriteResult> put(const Document& document, WriteOptions options);
  Pending<WriteResult> put(const Document& document) { return put(document, WriteOptions()); }
  /// `fields` is a JSON object, {"title": "x", "year": 1999}.
  Pending<WriteResult> put_json(std::string id, std::string fields, WriteOptions options);
  Pending<WriteResult> put_json(std::string id, std::string fields) {
    return put_json(std::move(id), std::move(fields), WriteOptions());
  }
  /// Errors: NotFound if the document does not exist and WriteOptions::create is false.
  Pending<WriteResult> update(const DocumentUpdate& update, WriteOptions options);
  Pending<WriteResult> update(const DocumentUpdate& update) { return this->update(update, WriteOptions()); }
  /// `changes` as in a feed: {"sold": {"increment": 1}} (document/FEED.md).
  Pending<WriteResult> update_json(std::string id, std::string changes, WriteOptions options);
  Pending<WriteResult> update_json(std::string id, std::string changes) {
    return update_json(std::move(id), std::move(changes), WriteOptions());
  }
  Pending<WriteResult> remove(std::string id, WriteOptions options);
  Pending<WriteResult> remove(std::string id) { return remove(std::move(id), WriteOptions()); }

  /// Returns an empty document of the id's type, to be filled with Document::set() and put.
  /// Errors: InvalidId, UnknownType; those of ping().
  Result<Document> new_document(std::string_view id);
  /// Returns a document with the fields of a JSON object, as put_json() takes it. Errors: InvalidArgument for malformed
  /// JSON, with the offset; InvalidField for a field that the type does not have, or a value that does not fit; those
  /// of new_document(id).
  Result<Document> new_document(std::string_view id, std::string_view fields);
  /// Returns an empty update of one document, to be filled with DocumentUpdate's members. Errors: as new_document(id).
  Result<DocumentUpdate> new_update(std::string_view id);
  /// Returns an update with these changes, as update_json() takes them. Errors: as new_document(id, fields).
  Result<DocumentUpdate> new_update(std::string_view id, std::string_view changes);
  /// Returns the document types of the cluster that the client received last. Errors: those of ping().
  Result<std::shared_ptr<const DocumentTypeRepo>> types();

  // --- Many documents

  /// Reads all documents that a selection matches, in no order. visit.h
  Visit visit(VisitOptions options);
  /// Groups and aggregates documents where they are stored. Destroying the client cancels it. aggregate.h
  Pending<AggregateResult> aggregate(AggregateRequest request);
  /// Writes to all documents that a selection matches, while others write too. bulk.h
  BulkSummary update_where(std::string selection, std::string changes, BulkOptions options);
  BulkSummary remove_where(std::string selection, BulkOptions options);
  /// Writes all documents that a selection matches to FILE.jsonl or FILE.csv, both also with .gz behind. After a crash
  /// or a stop request, an export with ExportMode::Resume continues, and the file has each document once. files.h
  ExportSummary export_to(const std::string& path, const ExportOptions& options);
  /// Stores the documents of files, and carries out the updates and removes of feeds. files.h
  ImportSummary import_from(const std::vector<std::string>& paths, const ImportOptions& options);
  /// Follows the changes of documents. subscription.h
  Subscription subscribe(SubscribeOptions options);
  /// Finds the ads whose keywords match a query, and holds an auction among them. search.h
  Pending<SearchResult> search(SearchRequest request);
  /// MapReduce jobs. jobs.h
  Jobs jobs();

  // --- The cluster

  /// Nodes, buckets, settings, schemas. admin.h
  Admin admin();

  /// For the other parts of this library.
  ClientCore& core() const { return *core_; }

 private:
  std::unique_ptr<ClientCore> core_;
};

/// Returns a client of the cluster with these distributors, "host:port,host:port"; one of them that answers is enough.
/// The client connects at its first use. A malformed address makes every call fail with InvalidArgument.
Client connect(std::string_view addresses, ClientSettings settings = {});

}  // namespace fjord
