#include "claim_reader.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fjord/document/docblock.h"
#include "fjord/document/document.h"
#include "fjord/visitors/visitor_session.h"

namespace fjord::sim {
namespace {

constexpr std::size_t kGetsMax = 200;
/// Time that a call may end later than its limit says.
constexpr Duration kSlack = seconds(5);

/// The state of calls under way. Callbacks share it, because the cluster may end before they run.
struct Calls {
  std::size_t left = 0;
  std::size_t failed = 0;
  std::string problem;

  void fail(std::string text) {
    ++failed;
    if (problem.empty()) problem = std::move(text);
  }
};

/// Returns the type in the id of a document, "id:namespace:type:...".
std::string type_of(const std::string& id) {
  const std::size_t begin = id.find(':', 3) + 1;
  return id.substr(begin, id.find(':', begin) - begin);
}

}  // namespace

std::string ClaimReader::get_all(Duration limit, bool may_refuse) {
  std::vector<const std::pair<const std::string, Acknowledged::Document>*> all;
  for (const auto& document : acknowledged_.documents()) {
    if (document.second.timestamp_us != 0) all.push_back(&document);
  }
  for (std::size_t i = 0; all.size() > kGetsMax && i < kGetsMax; ++i) {
    std::swap(all[i], all[i + random_.below(all.size() - i)]);
  }
  if (all.size() > kGetsMax) all.resize(kGetsMax);
  auto calls = std::make_shared<Calls>();
  calls->left = all.size();
  for (const auto* document : all) {
    const auto& [id, known] = *document;
    cluster_.admin().get(id, limit, [calls, may_refuse, id = id, known = known](const OperationOutcome& got) {
      --calls->left;
      if (got.is_ok() || got.status.code() == StatusCode::NotFound) {
        const std::string why = Acknowledged::why_not(known, got.is_ok() ? got.timestamp_us : 0);
        if (!why.empty()) calls->fail(fmt::format("get {}: {}, {}", id, got.status.to_string(), why));
      } else if (!may_refuse) {
        calls->fail(fmt::format("get {}: {}", id, got.status.to_string()));
      }
    });
  }
  if (!cluster_.run_until([&] { return calls->left == 0; }, limit + kSlack)) return "a get never ended";
  if (calls->failed == 0) return {};
  return fmt::format("{} of {} gets, the first: {}", calls->failed, all.size(), calls->problem);
}

std::string ClaimReader::visit(Duration limit) {
  struct Visit {
    rpc::SnapshotHolder snapshots;
    std::unique_ptr<visitors::VisitorSession> session;
    std::map<std::string, std::uint64_t> seen;
    std::optional<Status> end;
  };
  auto visit = std::make_shared<Visit>();
  AsyncClient& client = cluster_.admin();
  visitors::VisitorSessionOptions options;
  options.ids_only = true;
  options.docblock_bytes = 2000;
  options.bootstrap = client.options().addresses;
  options.deadline = limit;
  options.call_timeout = seconds(1);
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_docblock = [visit = visit.get()](BucketId, const std::string& docblock) {
    DocBlockReader reader(docblock);
    while (std::optional<EntryView> entry = reader.next()) visit->seen[std::string(entry->id)] = entry->timestamp.us;
  };
  callbacks.on_finished = [visit = visit.get()](const Status& status) {
    visit->end = status;
    visit->session.reset();
  };
  client.executor().post(
      [this, visit, &client, options = std::move(options), callbacks = std::move(callbacks)]() mutable {
        visit->session = std::make_unique<visitors::VisitorSession>(
            std::move(options), std::move(callbacks), client.transport(), visit->snapshots,
            cluster_.scheduler().clock(), random_.fork(), client.executor());
        visit->session->start();
      });
  if (!cluster_.run_until([&] { return visit->end.has_value(); }, limit + kSlack)) return "a visit never ended";
  if (!*visit->end) return "a visit: " + visit->end->to_string();
  for (const auto& [id, known] : acknowledged_.documents()) {
    const auto seen = visit->seen.find(id);
    // A visit may give an older version only of a document that changes meanwhile, and none does.
    const std::string why = Acknowledged::why_not(known, seen == visit->seen.end() ? 0 : seen->second);
    if (!why.empty()) {
      return fmt::format("a visit that ended well gave {} documents, and not {}, {}", visit->seen.size(), id, why);
    }
  }
  return {};
}

std::string ClaimReader::count_by_job(Duration limit) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> counts;  ///< By type: fewest and most documents.
  for (const auto& [id, known] : acknowledged_.documents()) {
    const std::string type = type_of(id);
    if (type.starts_with("fjord_")) continue;  // A job that goes on in the copy may write more of them.
    auto& [fewest, most] = counts[type];
    fewest += known.must_exist() ? 1 : 0;
    ++most;
  }
  const auto chosen = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
  if (chosen == counts.end() || chosen->second.first == 0) return {};
  struct Job {
    bool submitted = false;
    std::optional<rpc::JobStatus> status;
    bool asked = false;
    std::string problem;
  };
  auto job = std::make_shared<Job>();
  AsyncClient& client = cluster_.admin();
  rpc::SubmitJob submit;
  submit.job_id = client.new_job_id();
  submit.spec.application = "noop";
  submit.spec.document_type = chosen->first;
  const std::string id = submit.job_id;
  client.call_any(std::move(submit), limit, [job](const Result<rpc::SubmitJobReply>& reply) {
    job->submitted = true;
    if (!reply) job->problem = reply.error().to_string();
    if (reply && !reply->status) job->problem = reply->status.to_string();
  });
  if (!cluster_.run_until([&] { return job->submitted; }, limit + kSlack)) return "a job is not taken";
  if (!job->problem.empty()) return "a job is not taken: " + job->problem;
  const MonotonicTime end = cluster_.scheduler().clock().now() + limit;
  while (!job->status || job->status->finished_unix_us == 0) {
    if (cluster_.scheduler().clock().now() > end) return "a job never ended";
    job->asked = false;
    client.call_all(rpc::ListJobs{id}, seconds(2), [job](auto answers) {
      job->asked = true;
      if (!answers) return;
      for (auto& [address, reply] : *answers) {
        if (reply && reply->status && !reply->jobs.empty()) job->status = reply->jobs.front();
      }
    });
    cluster_.run_until([&] { return job->asked; }, seconds(5));
    cluster_.scheduler().run_for(milliseconds(200));
  }
  if (job->status->phase != rpc::JobPhase::Done) return "a job failed: " + job->status->error.to_string();
  const auto [fewest, most] = chosen->second;
  if (job->status->documents_read >= fewest && job->status->documents_read <= most) return {};
  return fmt::format("a job read {} documents of type {} instead of {} to {}", job->status->documents_read,
                     chosen->first, fewest, most);
}

std::string ClaimReader::put_everywhere(unsigned bits, Duration limit) {
  std::map<std::uint64_t, std::string> ids;  ///< One document of each distribution bucket.
  for (unsigned i = 0; ids.size() < (std::uint64_t{1} << bits); ++i) {
    const std::string id = fmt::format("id:claim:item::{}", i);
    const Result<DocumentId> parsed = DocumentId::parse(id);
    ids.try_emplace(bucket_of(parsed->gid(), bits).bits(), id);
  }
  auto calls = std::make_shared<Calls>();
  calls->left = ids.size();
  for (const auto& [bucket, id] : ids) {
    cluster_.admin().put_json(id, R"({"value": "claim"})", limit, [calls, id = id](const OperationOutcome& outcome) {
      --calls->left;
      if (!outcome.is_ok()) calls->fail(fmt::format("put {}: {}", id, outcome.status.to_string()));
    });
  }
  if (!cluster_.run_until([&] { return calls->left == 0; }, limit + kSlack)) return "a put never ended";
  if (calls->failed == 0) return {};
  return fmt::format("{} of {} puts, the first: {}", calls->failed, ids.size(), calls->problem);
}

}  // namespace fjord::sim
