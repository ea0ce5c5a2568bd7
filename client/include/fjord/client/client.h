#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fjord/client/client_options.h"
#include "fjord/client/operation_outcome.h"
#include "fjord/client/operations.h"
#include "fjord/common/executor.h"
#include "fjord/common/runtime.h"
#include "fjord/document/document.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/messages.h"
#include "fjord/rpc/transport.h"

namespace fjord {

/// Puts, gets, updates and removes documents. The client finds the distributor of each document, sends operations in
/// batches, retries after transient errors, and reports for each operation whether it was applied.
///
/// Every write carries (client id, sequence), which stays the same over its retries; a distributor recognises
/// duplicates by it as long as the distributor runs. Updates and operations with a condition also carry a random
/// idempotency key (`token`, see ClientOptions::make_tokens), which replicas store beside the document: a retry is
/// applied at most once, whichever distributor receives it. If an operation ended in doubt, executing it again with the
/// token of its outcome shows whether it was applied. Operations on one document id are sent one after the other, in
/// the order of the calls; others in any order. Transient errors (Busy, WrongDistribution, Unavailable, NotReady) and
/// lost answers are retried with growing, random pauses until the operation's deadline. Permanent errors are reported
/// at once.
///
/// Threading: every member can be called from any thread and returns without waiting. All callbacks run on `executor`,
/// never inside the call. Callbacks can call the client again.
/// Lifetime: `runtime`, `transport` and `executor` outlive the client. The destructor does not wait: pending operations
/// end as Cancelled on `executor` (or without a callback, if the executor is destroyed first). Such a callback must not
/// use the client, which is already destroyed. After the destructor, the transport is not called any more.
class AsyncClient {
 public:
  using OperationDone = UniqueFunction<void(OperationOutcome)>;
  using StatusDone = UniqueFunction<void(Status)>;

  AsyncClient(ClientOptions options, Runtime& runtime, rpc::Transport& transport, Executor& executor);
  ~AsyncClient();
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;

  // --- Documents

  /// Starts an operation (operations.h makes them); `done` is called exactly once. The client sets
  /// `operation.sequence`. A `timeout` of zero means the default one. Cost: two allocations, and one copy of the
  /// operation for each attempt.
  void execute(rpc::Operation operation, Duration timeout, OperationDone done);
  void get(std::string id, Duration timeout, OperationDone done);
  void get_json(std::string id, Duration timeout, OperationDone done);
  void put(std::string id, EncodedDocument document, Duration timeout, OperationDone done);
  /// `fields` is a JSON object; the distributor makes a document from it.
  void put_json(std::string id, std::string fields, Duration timeout, OperationDone done);
  /// Errors: NotFound if there is no document and the update does not allow to create one.
  void update(const DocumentUpdate& update, Duration timeout, OperationDone done);
  void update_json(std::string id, std::string changes, Duration timeout, OperationDone done);
  void remove(std::string id, Duration timeout, OperationDone done);

  /// Returns the number of operations that were started and have not ended.
  std::size_t pending() const;

  // --- Cluster information

  /// Returns the newest state, schemas and addresses; null before the first answer of a distributor. The client fetches
  /// the snapshot at first use and updates it from answers; see also wait_ready().
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot() const;
  const rpc::SnapshotHolder& snapshots() const;
  /// Calls `done` with OK as soon as there is a snapshot. Errors: NotReady that lists each address and why it failed.
  /// For all functions with a `timeout`, zero means the default one.
  void wait_ready(Duration timeout, StatusDone done);
  /// Asks a distributor for a newer state and newer schemas; OK once one has answered. For callers that found a
  /// document type which the snapshot does not have.
  void refresh_schemas(Duration timeout, StatusDone done);
  /// Calls `done` with OK as soon as the snapshot has the schemas of that version or a newer one. Errors: NotReady.
  void wait_schema_version(std::uint64_t version, Duration timeout, StatusDone done);
  /// Applies the cluster information of another call's answer (`newer_info` of a message), if it is newer.
  void take_cluster_info(const rpc::ClusterInfo& info);

  // --- Other calls to distributors

  /// One answer of one distributor.
  struct Answer {
    rpc::Address address;
    Result<rpc::Reply> reply;
  };
  /// Sends `request` to a distributor that is up. If the answer is NotReady or there is none in time, sends it to the
  /// next distributor, in rounds with pauses between them, until `timeout`. After a Timeout, SubmitJob is repeated at
  /// the same distributor only. A reply is passed on whatever its status, except NotReady. Errors: NotReady that lists
  /// each address and its reason; Timeout.
  void call_any_request(rpc::Request request, Duration timeout, UniqueFunction<void(Result<rpc::Reply>)> done);
  /// Sends `request` once to every distributor that is up. The answers are in the order of the distributors' indexes.
  /// Errors: Unavailable if no distributor is up; NotReady if there is no snapshot.
  void call_all_request(rpc::Request request, Duration timeout, UniqueFunction<void(Result<std::vector<Answer>>)> done);

  /// Typed call_any_request(): `done(Result<R::Reply>)`.
  template <typename R, typename F>
  void call_any(R request, Duration timeout, F done) {
    call_any_request(rpc::Request(std::move(request)), timeout,
                     [done = std::move(done)](Result<rpc::Reply> reply) mutable { done(typed<R>(std::move(reply))); });
  }
  /// Typed call_all_request(): `done(Result<std::vector<std::pair<rpc::Address, Result<R::Reply>>>>)`.
  template <typename R, typename F>
  void call_all(R request, Duration timeout, F done) {
    using Answers = std::vector<std::pair<rpc::Address, Result<typename R::Reply>>>;
    call_all_request(rpc::Request(std::move(request)), timeout,
                     [done = std::move(done)](Result<std::vector<Answer>> answers) mutable {
                       if (!answers) return done(Result<Answers>(answers.error()));
                       Answers out;
                       out.reserve(answers->size());
                       for (Answer& answer : *answers) {
                         out.emplace_back(std::move(answer.address), typed<R>(std::move(answer.reply)));
                       }
                       done(Result<Answers>(std::move(out)));
                     });
  }

  /// Returns a random id for SubmitJob: "job-" and 16 hexadecimal digits.
  std::string new_job_id();

  Executor& executor() const;
  rpc::Transport& transport() const;
  const Clock& clock() const;
  const ClientOptions& options() const;
  /// Returns the id by which distributors recognise duplicates of this client's operations. Never 0.
  std::uint64_t client_id() const;

 private:
  template <typename R>
  static Result<typename R::Reply> typed(Result<rpc::Reply> reply) {
    if (!reply) return reply.error();
    if (auto* value = std::get_if<typename R::Reply>(&*reply)) return std::move(*value);
    return Status(StatusCode::Corruption, "the answer is of another call");
  }

  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace fjord
