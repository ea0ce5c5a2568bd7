#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/client/client.h"

namespace fjord {

/// The AsyncClient for programs that wait: each call returns when its operation has ended.
///
/// Threading: any thread except the client's executor (checked), several at once.
/// Lifetime: `client` outlives it and every call.
class SyncClient {
 public:
  /// Zero as `timeout`, here and in each call: the client's default.
  explicit SyncClient(AsyncClient& client, Duration timeout = Duration(0)) : client_(client), timeout_(timeout) {}

  AsyncClient& client() const { return client_; }

  OperationOutcome execute(rpc::Operation operation);
  OperationOutcome get(std::string id);
  OperationOutcome get_json(std::string id);
  OperationOutcome put(std::string id, EncodedDocument document);
  OperationOutcome put_json(std::string id, std::string fields);
  OperationOutcome update(const DocumentUpdate& update);
  OperationOutcome update_json(std::string id, std::string changes);
  OperationOutcome remove(std::string id);

  /// Errors: NotReady that names each address and its reason.
  Status wait_ready();
  Status refresh_schemas();

  /// Returns the schema version and the parser's warnings; waits until this client knows that version.
  /// Errors: InvalidArgument with the place in the text, or with what stored documents would not survive, unless
  /// `may_drop` names it ("song.title"); transport errors.
  Result<rpc::DeploySchemasReply> deploy_schemas(std::vector<std::string> schemas,
                                                 std::vector<std::string> may_drop = {});
  Result<rpc::GetStatusReply> status();

  /// An empty `job_id` is replaced by a random one. Returns the job's id.
  Result<std::string> submit_job(rpc::JobSpec spec, std::string job_id = {});
  /// The jobs of all distributors that are up, oldest first; an empty `job_id` means all. Errors: if a distributor does
  /// not answer, as a list with gaps would look complete.
  Result<std::vector<rpc::JobStatus>> list_jobs(std::string job_id = {});
  /// Errors: NotFound if no distributor knows the job.
  Status cancel_job(std::string job_id);
  /// Asks the process that runs the job, or writes into its record if that does not answer. Errors: NotFound;
  /// InvalidArgument for settings, and if the job has ended.
  Status control_job(rpc::ControlJob request);

  /// AsyncClient::call_any, waited for.
  template <typename R>
  Result<typename R::Reply> call_any(R request) {
    Result<rpc::Reply> reply = call_any_request(rpc::Request(std::move(request)));
    if (!reply) return reply.error();
    if (auto* typed = std::get_if<typename R::Reply>(&*reply)) return std::move(*typed);
    return Status(StatusCode::Corruption, "the answer is of another call");
  }

 private:
  Result<rpc::Reply> call_any_request(rpc::Request request);
  Result<std::vector<AsyncClient::Answer>> call_all_request(rpc::Request request);

  AsyncClient& client_;
  Duration timeout_;
};

}  // namespace fjord
