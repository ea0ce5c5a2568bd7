#include "job_submission.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "application_coverage.h"
#include "fjord/document/selection.h"
#include "fjord/mapreduce/passes.h"
#include "task/task.h"

namespace fjord::mapreduce {
namespace {

constexpr std::uint32_t kOutputBucketsMax = 1024;
constexpr std::uint32_t kVisitorsMax = 1024;
/// Maximum number of jobs whose programs are being loaded or wait for that. Each takes a second at most.
constexpr std::size_t kLoadingMax = 16;

}  // namespace

Status check_job(const std::string& job_id, const rpc::JobSpec& spec, const ApplicationRegistry& applications,
                 const std::shared_ptr<const DocumentTypeRepo>& types) {
  if (!is_plain_name(job_id)) {
    return Status(StatusCode::InvalidArgument,
                  "a job id is 1 to 64 letters, digits, dots, minuses and underscores, not \"" + job_id + "\"");
  }
  FJORD_TRY(check_passes(spec, job_id, applications, types));
  if (!spec.output_namespace.empty() && !is_plain_name(spec.output_namespace)) {
    return Status(StatusCode::InvalidArgument, "not a namespace: \"" + spec.output_namespace + "\"");
  }
  if (spec.output_buckets > kOutputBucketsMax || spec.visitors_per_node > kVisitorsMax) {
    return Status(StatusCode::InvalidArgument, "at most 1024 output buckets and 1024 visitors per node");
  }
  if (spec.incremental && spec.shuffle == rpc::Shuffle::Store) {
    return Status(StatusCode::InvalidArgument, "an incremental job has the shuffle direct, not store");
  }
  if (spec.incremental) {
    FJORD_TRY_ASSIGN(const Selection selection, Selection::parse(passes_of(spec).front().selection, *types));
    if (selection.needs_now()) {
      return Status(StatusCode::InvalidArgument, "what an incremental job selects cannot depend on now()");
    }
  }
  return JobSettings::parse(spec.settings).status();
}

void JobSubmission::submit(const rpc::SubmitJob& request, rpc::Responder respond) {
  if (LocalJob* known = table_.find(request.job_id)) return submit_again(request, *known, std::move(respond));
  const auto answer = [&](Status status) { respond(rpc::SubmitJobReply{std::move(status), request.job_id}); };
  auto snapshot = context_.fresh_snapshot();
  if (snapshot == nullptr) {
    return answer(Status(StatusCode::NotReady, "this distributor has no cluster state yet"));
  }
  const ApplicationRegistry& applications = context_.applications;
  if (Status status = check_job(request.job_id, request.spec, applications, snapshot->types()); !status) {
    const std::vector<rpc::JobPass> passes = passes_of(request.spec);
    const bool is_unknown = std::any_of(passes.begin(), passes.end(), [&](const rpc::JobPass& pass) {
      return applications.find(pass.application) == nullptr;
    });
    const std::string& name = context_.options.name;
    return answer(is_unknown && !name.empty() ? status.from_node(name) : std::move(status));
  }
  if (needs_loading(request.spec, applications)) return load(request, std::move(snapshot), std::move(respond));
  cover(request, *snapshot, 0, std::move(respond));
}

void JobSubmission::load(const rpc::SubmitJob& request, std::shared_ptr<const rpc::ClusterSnapshot> snapshot,
                         rpc::Responder respond) {
  const auto answer = [&](Status status) { respond(rpc::SubmitJobReply{std::move(status), request.job_id}); };
  if (const auto known = loading_.find(request.job_id); known != loading_.end()) {
    if (known->second.request.spec != request.spec) {
      return answer(Status(StatusCode::AlreadyExists, "there is another job " + request.job_id));
    }
    known->second.waiting.push_back(std::move(respond));  // A client repeats what it has got no answer to.
    return;
  }
  if (loading_.size() >= kLoadingMax) {
    return answer(Status(StatusCode::Busy, "the programs of too many jobs wait to be loaded"));
  }
  Loading& loading = loading_[request.job_id];
  loading.request = request;
  loading.waiting.push_back(std::move(respond));
  loader_->post([this, request, snapshot = std::move(snapshot), mailbox = context_.mailbox]() mutable {
    Status status = load_passes(request.spec, request.job_id, context_.applications, snapshot->types());
    mailbox.post([this, id = request.job_id, snapshot = std::move(snapshot), status = std::move(status)] {
      loaded(id, *snapshot, status);
    });
  });
}

void JobSubmission::loaded(const std::string& job_id, const rpc::ClusterSnapshot& snapshot, const Status& status) {
  Loading loading = std::move(loading_.extract(job_id).mapped());
  for (rpc::Responder& respond : loading.waiting) {
    if (!status) {
      respond(rpc::SubmitJobReply{status, job_id});
    } else if (LocalJob* known = table_.find(job_id)) {
      submit_again(loading.request, *known, std::move(respond));
    } else {
      cover(loading.request, snapshot, 0, std::move(respond));
    }
  }
}

void JobSubmission::cover(const rpc::SubmitJob& request, const rpc::ClusterSnapshot& snapshot, std::size_t covered,
                          rpc::Responder respond) {
  if (LocalJob* known = table_.find(request.job_id)) return submit_again(request, *known, std::move(respond));
  const ApplicationRegistry& applications = context_.applications;
  const std::vector<rpc::JobPass> passes = passes_of(request.spec);
  std::vector<std::string> versions;
  for (const rpc::JobPass& pass : passes) versions.push_back(applications.find(pass.application)->version);
  while (covered < versions.size() && versions[covered].empty()) ++covered;
  if (covered == versions.size()) return accept(request, std::move(versions), std::move(respond));
  ask_for_application(context_.transport, snapshot, context_.executor, *applications.find(passes[covered].application),
                      [this, request, covered, respond = std::move(respond)](const Status& status) mutable {
                        if (!status) return respond(rpc::SubmitJobReply{status, request.job_id});
                        const auto now = context_.fresh_snapshot();
                        if (now != nullptr) return cover(request, *now, covered + 1, std::move(respond));
                        respond(rpc::SubmitJobReply{
                            Status(StatusCode::NotReady, "this distributor has no cluster state yet"), request.job_id});
                      });
}

void JobSubmission::submit_again(const rpc::SubmitJob& request, LocalJob& job, rpc::Responder respond) {
  if (job.state.spec != request.spec) {
    const Status other(StatusCode::AlreadyExists, "there is another job " + request.job_id);
    return respond(rpc::SubmitJobReply{other, request.job_id});
  }
  if (job.submitters.empty()) return respond(rpc::SubmitJobReply{Status::ok(), request.job_id});
  job.submitters.emplace_back(request.spec, std::move(respond));
}

bool JobSubmission::is_direct(const rpc::SubmitJob& request) const {
  if (request.spec.shuffle != rpc::Shuffle::Auto) return request.spec.shuffle == rpc::Shuffle::Direct;
  const auto first =
      plan_pass(request.spec, request.job_id, 0, context_.applications, context_.snapshot.get()->types());
  return first->application->is_aggregation() || request.spec.incremental;
}

void JobSubmission::accept(const rpc::SubmitJob& request, std::vector<std::string> versions, rpc::Responder respond) {
  // A job with a record is accepted when the record is written, and no write is taken now.
  if (const ClusterState& cluster = context_.snapshot.get()->state(); !cluster.is_cluster_up() && !is_direct(request)) {
    return respond(rpc::SubmitJobReply{
        Status(StatusCode::Unavailable,
               fmt::format("no job is accepted: the cluster is {}{}{}", fjord::to_string(cluster.cluster()),
                           cluster.description().empty() ? "" : ": ", cluster.description())),
        request.job_id});
  }
  JobState state;
  state.job_id = request.job_id;
  state.spec = request.spec;
  state.settings = merge_settings({}, request.spec.settings);
  state.phase = rpc::JobPhase::Queued;
  if (request.spec.passes.empty()) {
    state.application_version = versions.front();
  } else if (std::any_of(versions.begin(), versions.end(), [](const auto& version) { return !version.empty(); })) {
    state.application_versions = std::move(versions);
  }
  state.submitted_unix_us = context_.clock.wall_now().us;
  LocalJob& job = running_.add(std::move(state), 0);
  context_.metrics.submitted.add();
  const std::string& id = request.job_id;
  if (!is_direct(request)) {
    job.submitters.emplace_back(request.spec, std::move(respond));
    running_.save(id, [this, id] {
      LocalJob& recorded = table_.at(id);
      for (auto& [spec, waiting] : std::exchange(recorded.submitters, {})) {
        waiting(rpc::SubmitJobReply{Status::ok(), id});
      }
      if (!is_over(recorded.state.phase)) running_.enqueue(id);  // it is over if it was cancelled meanwhile
    });
    return;
  }
  respond(rpc::SubmitJobReply{Status::ok(), id});
  context_.executor.post_after(context_.options.record_after, [this, id, number = job.number] {
    if (LocalJob* late = table_.find(id, number); late != nullptr && !is_over(late->state.phase)) running_.save(id);
  });
  running_.enqueue(id);
}

}  // namespace fjord::mapreduce
