#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/client/client.h"

namespace fjord {

/// A blocking client: each call returns when its operation has ended.
///
/// Threading: any thread except the client's executor (checked), several at once.
/// Lifetime: `client` outlives this object and every call.
class SyncClient {
 public:
  /// `timeout` applies to each call; zero means the client's default.
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

  /// Errors: NotReady that lists each address and its reason.
  Status wait_ready();
  Status refresh_schemas();

  /// Deploys schemas. Returns the schema version and the parser's warnings after this client has received that version.
  /// Errors: InvalidArgument with the place in the text, or with the data that stored documents would lose, unless
  /// `may_drop` names it ("song.title"); transport errors.
  Result<rpc::DeploySchemasReply> deploy_schemas(std::vector<std::string> schemas,
                                                 std::vector<std::string> may_drop = {});
  Result<rpc::GetStatusReply> status();

  /// Submits a job. Returns its id; an empty `job_id` is replaced by a random one.
  Result<std::string> submit_job(rpc::JobSpec spec, std::string job_id = {});
  /// Returns the jobs of all distributors that are up, oldest first; an empty `job_id` means all. Fails if a
  /// distributor does not answer, because a list with gaps would look complete; a list with the requested job is
  /// returned all the same.
  Result<std::vector<rpc::JobStatus>> list_jobs(std::string job_id = {});
  /// Cancels a job. Errors: NotFound if no distributor has the job.
  Status cancel_job(std::string job_id);
  /// Sends the request to the process that runs the job; if that does not answer, writes it into the job's record.
  /// Errors: NotFound; InvalidArgument for invalid settings, and if the job has ended.
  Status control_job(rpc::ControlJob request);

  /// Calls AsyncClient::call_any() and waits for the reply.
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
