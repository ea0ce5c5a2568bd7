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

/// Puts, gets, updates and removes documents: finds the distributor of each by itself, sends operations in batches,
/// retries what is transient, and tells for each operation whether it was applied.
///
/// Every put and remove carries (client id, sequence), kept over its retries, by which a distributor recognises them as
/// long as it runs. Updates and operations with a condition carry a random token, too (ClientOptions::make_tokens),
/// which replicas remember beside the document: a retry is applied at most once, whoever gets it. What ended in doubt
/// can be executed again with the token that the outcome names; that settles it. Operations on one document id are sent
/// one after the other, in the order of the calls; others in any order. Transient errors (Busy, WrongDistribution,
/// Unavailable, NotReady) and lost answers are retried with growing, random pauses until the operation's deadline;
/// permanent errors are reported at once.
///
/// Threading: every member may be called from any thread and returns without waiting. All callbacks run on `executor`,
/// never inside the call. Callbacks may call the client again.
/// Lifetime: `runtime`, `transport` and `executor` outlive the client. The destructor does not wait: what is pending
/// then ends as Cancelled on `executor` (or silently, if the executor is destroyed first), and such a callback must not
/// use the client, which is gone. The transport is not called any more.
class AsyncClient {
 public:
  using OperationDone = UniqueFunction<void(OperationOutcome)>;
  using StatusDone = UniqueFunction<void(Status)>;

  AsyncClient(ClientOptions options, Runtime& runtime, rpc::Transport& transport, Executor& executor);
  ~AsyncClient();
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;

  // --- Documents

  /// Starts an operation (operations.h makes them); `done` is called exactly once. `operation.sequence` is set by the
  /// client. A `timeout` of zero
  /// means the default one. Cost: two allocations, one copy of the operation an attempt.
  void execute(rpc::Operation operation, Duration timeout, OperationDone done);
  void get(std::string id, Duration timeout, OperationDone done);
  void get_json(std::string id, Duration timeout, OperationDone done);
  void put(std::string id, EncodedDocument document, Duration timeout, OperationDone done);
  /// `fields` is a JSON object; the distributor makes a document of it.
  void put_json(std::string id, std::string fields, Duration timeout, OperationDone done);
  /// Errors: NotFound if there is no document and the update may not make one.
  void update(const DocumentUpdate& update, Duration timeout, OperationDone done);
  void update_json(std::string id, std::string changes, Duration timeout, OperationDone done);
  void remove(std::string id, Duration timeout, OperationDone done);

  /// Operations that were started and have not ended.
  std::size_t pending() const;

  // --- What the client knows of the cluster

  /// The newest state, schemas and addresses; null before the first answer of a distributor. It is fetched at first use
  /// and kept up to date by what answers carry; see also wait_ready().
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot() const;
  const rpc::SnapshotHolder& snapshots() const;
  /// OK as soon as there is a snapshot. Errors: NotReady that names each address and why it did not help. Here and
  /// below a `timeout` of zero means the default one.
  void wait_ready(Duration timeout, StatusDone done);
  /// Asks a distributor for anything newer than the snapshot, schemas and state; OK once one has answered. For callers
  /// that met a document type which the snapshot does not know.
  void refresh_schemas(Duration timeout, StatusDone done);
  /// OK as soon as the snapshot has the schemas of that version or a newer one. Errors: NotReady.
  void wait_schema_version(std::uint64_t version, Duration timeout, StatusDone done);
  /// Takes in what somebody else's answer carried (newer_info of a message); nothing happens if it is not newer.
  void take_cluster_info(const rpc::ClusterInfo& info);

  // --- Other calls to distributors

  /// One answer of one distributor.
  struct Answer {
    rpc::Address address;
    Result<rpc::Reply> reply;
  };
  /// Sends `request` to one distributor that is up, to the next one if that is NotReady, round after round with pauses
  /// until `timeout`. After a Timeout of one attempt the next distributor is asked too, except for SubmitJob, which is
  /// repeated at the same one. A reply is passed on whatever its status, except NotReady.
  /// Errors: NotReady that names each address and its reason; Timeout.
  void call_any_request(rpc::Request request, Duration timeout, UniqueFunction<void(Result<rpc::Reply>)> done);
  /// Sends `request` once to every distributor that is up. The answers are in the order of the distributors' indexes.
  /// Errors: NotReady as wait_ready(); Unavailable if no distributor is up.
  void call_all_request(rpc::Request request, Duration timeout, UniqueFunction<void(Result<std::vector<Answer>>)> done);

  /// call_any_request with types: `done(Result<R::Reply>)`.
  template <typename R, typename F>
  void call_any(R request, Duration timeout, F done) {
    call_any_request(rpc::Request(std::move(request)), timeout,
                     [done = std::move(done)](Result<rpc::Reply> reply) mutable { done(typed<R>(std::move(reply))); });
  }
  /// call_all_request with types: `done(Result<std::vector<std::pair<rpc::Address, Result<R::Reply>>>>)`.
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

  /// A random id for SubmitJob, "job-" and 16 hexadecimal digits.
  std::string new_job_id();

  Executor& executor() const;
  rpc::Transport& transport() const;
  const Clock& clock() const;
  const ClientOptions& options() const;
  /// Under which this client's operations are recognised when they arrive twice. Never 0.
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
