#pragma once

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
class Jobs;
struct SubscribeOptions;
class Subscription;
struct VisitOptions;
class Visit;

struct ClientSettings {
  Duration timeout = seconds(30);  ///< Of operations that name none, retries included.
  ClientPriority priority = ClientPriority::Default;
  ReadConsistency consistency = ReadConsistency::Default;
};

/// A connection to a cluster, for everything that a program does with it.
///
/// It finds the distributor of each document by itself, sends operations in batches, retries what is transient, and
/// says of each write whether it was applied. Operations on one document id are sent in the order of the calls; others
/// in any order. Nothing throws; each result carries a Status.
///
/// Threading: every member may be called from any thread, several at once. Cost: the client has one thread and one
/// connection to each distributor; make one for the whole program.
/// Lifetime: move-only. Visits, subscriptions, jobs and admin() must end before the client is destroyed, and it must
/// not be destroyed in one of its own callbacks. What is pending then ends as Cancelled.
class Client {
 public:
  /// Use fjord::connect().
  explicit Client(std::unique_ptr<ClientCore> core);
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  /// Waits until a distributor has answered. Errors: InvalidArgument for a malformed address; NotReady that names each
  /// address and why it did not answer. Calling it is optional: each call connects by itself.
  Status ping();

  // --- One document
  //
  // Without default arguments: g++ before 13 destroys aggregates wrongly that a co_await expression makes. There, give
  // options to an operation that is awaited in a variable.

  Pending<ReadResult> get(std::string id, ReadOptions options);
  Pending<ReadResult> get(std::string id) { return get(std::move(id), ReadOptions()); }
  /// The document as JSON, which the distributor makes.
  Pending<JsonResult> get_json(std::string id, ReadOptions options);
  Pending<JsonResult> get_json(std::string id) { return get_json(std::move(id), ReadOptions()); }
  Pending<WriteResult> put(const Document& document, WriteOptions options);
  Pending<WriteResult> put(const Document& document) { return put(document, WriteOptions()); }
  /// `fields` is a JSON object, {"title": "x", "year": 1999}.
  Pending<WriteResult> put_json(std::string id, std::string fields, WriteOptions options);
  Pending<WriteResult> put_json(std::string id, std::string fields) {
    return put_json(std::move(id), std::move(fields), WriteOptions());
  }
  /// Errors: NotFound if there is no document and the update may not make one.
  Pending<WriteResult> update(const DocumentUpdate& update, WriteOptions options);
  Pending<WriteResult> update(const DocumentUpdate& update) { return this->update(update, WriteOptions()); }
  /// `changes` as in a feed: {"sold": {"increment": 1}} (document/FEED.md).
  Pending<WriteResult> update_json(std::string id, std::string changes, WriteOptions options);
  Pending<WriteResult> update_json(std::string id, std::string changes) {
    return update_json(std::move(id), std::move(changes), WriteOptions());
  }
  Pending<WriteResult> remove(std::string id, WriteOptions options);
  Pending<WriteResult> remove(std::string id) { return remove(std::move(id), WriteOptions()); }

  /// An empty document of the type that the id names, to be filled with Document::set() and put.
  /// Errors: InvalidId, UnknownType; those of ping().
  Result<Document> new_document(std::string_view id);
  /// An update of one document, to be filled with DocumentUpdate's members. Errors: as new_document().
  Result<DocumentUpdate> new_update(std::string_view id);
  /// The document types of the cluster, as of the last answer. Errors: those of ping().
  Result<std::shared_ptr<const DocumentTypeRepo>> types();

  // --- Many documents

  /// Reads all documents that a selection matches, in no order. visit.h
  Visit visit(VisitOptions options);
  /// Groups and aggregates documents where they are stored, and waits for the rows. aggregate.h
  AggregateResult aggregate(AggregateRequest request);
  /// Writes to all documents that a selection matches, while others write too. bulk.h
  BulkSummary update_where(std::string selection, std::string changes, BulkOptions options);
  BulkSummary remove_where(std::string selection, BulkOptions options);
  /// Follows the changes of documents. subscription.h
  Subscription subscribe(SubscribeOptions options);
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

/// A client of the cluster with these distributors, "host:port,host:port"; one that answers is enough. Connects when it
/// is first used. A malformed address makes every call fail with InvalidArgument.
Client connect(std::string_view addresses, ClientSettings settings = {});

}  // namespace fjord
