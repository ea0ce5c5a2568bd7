#include "job_runner.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "fjord/common/hash.h"
#include "fjord/common/log.h"

namespace fjord::mapreduce {
namespace {

constexpr std::uint32_t kOutputBucketsMin = 4;
constexpr std::uint32_t kOutputBucketsMax = 16;
constexpr unsigned kBeginAnewMax = 5;
constexpr std::uint32_t kBucketsOfUnitMax = 64;  // as many as a visitor reads at once

std::string job_selection(const char* type, const std::string& job) {
  return std::string(type) + ".job == \"" + job + "\"";
}

}  // namespace

JobRunner::JobRunner(rpc::JobStatus job, RunnerEnvironment environment, Random random,
                     std::function<void()> on_finished)
    : job_(std::move(job)), environment_(environment), random_(random), on_finished_(std::move(on_finished)) {
  spec_.job = job_.job_id;
  spec_.application = job_.spec.application;
  spec_.document_type = job_.spec.document_type;
  spec_.output_namespace = job_.spec.output_namespace.empty() ? "results" : job_.spec.output_namespace;
  spec_.parameters = job_.spec.parameters;
}

rpc::JobStatus JobRunner::status() const {
  rpc::JobStatus status = job_;
  if (session_ != nullptr) status.tasks_repeated = repeated_before_ + session_->progress().buckets_repeated;
  return status;
}

/// Two output buckets a node keep every node busy in reduce; fewer than 16 keep the documents between map and reduce,
/// one for each pair of input and output bucket, from becoming many and small.
void JobRunner::choose_output() {
  const auto snapshot = environment_.snapshot.get();
  std::uint32_t nodes = 0;
  for (std::size_t i = 0; i < snapshot->info().storage_addresses.size(); ++i) {
    if (snapshot->storage_serves(static_cast<std::uint16_t>(i))) ++nodes;
  }
  std::uint32_t buckets = job_.spec.output_buckets;
  if (buckets == 0) {
    buckets = std::clamp(2 * nodes, kOutputBucketsMin, kOutputBucketsMax);
    const unsigned bits = snapshot->distribution_bits();
    if (bits < 16) buckets = std::min(buckets, std::uint32_t{1} << bits);
  }
  // Destinations follow each other from a base whose low bits are zero, so they fall into different buckets.
  const std::uint64_t low_bits = std::bit_ceil(std::uint64_t{buckets}) - 1;
  spec_.output_buckets = job_.output_buckets = buckets;
  spec_.output_base = job_.output_base = hash64(job_.job_id) & ~low_bits & 0x7fff'ffff'ffff'ffff;
  spec_.expected_documents.assign(buckets, 0);
}

visitors::VisitorSessionOptions JobRunner::session_options(const char* library) const {
  const JobServiceOptions& options = environment_.options;
  visitors::VisitorSessionOptions session;
  session.library = library;
  session.deduplicate = false;
  session.bucket_tries_max = options.task_tries_max;
  session.no_progress_limit = options.no_progress_limit;
  const std::uint64_t fitting = options.node_memory_bytes / std::max<std::uint64_t>(1, environment_.task_memory_bytes);
  session.visitors_per_node =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fitting, 1, std::max(1u, options.visitors_per_node_max)));
  if (job_.spec.visitors_per_node != 0) session.visitors_per_node = job_.spec.visitors_per_node;
  return session;
}

void JobRunner::run(visitors::VisitorSessionOptions options, std::function<void(const TaskReport&)> on_task,
                    std::function<void(std::uint64_t)> on_known, std::function<void(Status)> on_finished) {
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_buckets_known = std::move(on_known);
  callbacks.on_bucket_done = [this, on_task = std::move(on_task)](BucketId bucket, const std::string& result) {
    const auto report = TaskReport::decode(result);
    if (report) {
      on_task(*report);
    } else {
      fail(report.error().with_context(bucket.to_string()));
    }
  };
  callbacks.on_finished = std::move(on_finished);
  start_session(std::move(options), std::move(callbacks));
}

void JobRunner::start_session(visitors::VisitorSessionOptions options, visitors::VisitorSessionCallbacks callbacks) {
  if (session_ != nullptr) repeated_before_ += session_->progress().buckets_repeated;
  session_ = std::make_unique<visitors::VisitorSession>(std::move(options), std::move(callbacks),
                                                        environment_.transport, environment_.snapshot,
                                                        environment_.clock, random_.fork(), environment_.executor);
  session_->start();
}

void JobRunner::start() {
  if (!choose_shuffle()) return;
  bits_ = snapshot_->distribution_bits();
  if (job_.shuffle == rpc::Shuffle::Direct) {
    map_direct(std::nullopt);
  } else {
    choose_output();
    map();
  }
}

/// False if the job cannot run any more as it could when it was submitted.
bool JobRunner::choose_shuffle() {
  snapshot_ = environment_.snapshot.get();
  const DocumentType* type = snapshot_->types()->find(spec_.document_type);
  auto application =
      type == nullptr
          ? Status(StatusCode::UnknownType, "there is no document type " + spec_.document_type)
          : environment_.applications.create(spec_.application, spec_.parameters, *type, snapshot_->types().get());
  if (!application) {
    outcome_ = rpc::JobPhase::Failed;
    job_.error = application.error();
    end();
    return false;
  }
  application_ = std::move(*application);
  job_.shuffle = job_.spec.shuffle;
  if (job_.shuffle == rpc::Shuffle::Auto) {
    job_.shuffle = application_->is_aggregation() ? rpc::Shuffle::Direct : rpc::Shuffle::Store;
  }
  return true;
}

void JobRunner::map_direct(std::optional<std::vector<BucketId>> buckets) {
  job_.phase = rpc::JobPhase::Map;
  spec_.direct = true;
  spec_.output_buckets = 1;
  if (direct_ == nullptr) {
    direct_ = std::make_unique<DirectReduce>(*application_, environment_.bulk,
                                             environment_.options.sabotage.count_repeated_twice);
  }
  auto options = map_options();
  options.buckets = std::move(buckets);
  options.one_round = true;
  options.buckets_at_once = kBucketsOfUnitMax;
  if (job_.spec.visitors_per_node == 0) {
    options.visitors_per_node = std::min(options.visitors_per_node, environment_.options.direct_visitors_per_node);
  }
  visitors::VisitorSessionCallbacks callbacks;
  const bool is_first = !options.buckets.has_value();
  callbacks.on_buckets_known = [this, is_first](std::uint64_t count) {
    if (is_first) job_.map_tasks = count;
  };
  callbacks.on_docblock = [this](BucketId bucket, std::string chunk) {
    on_direct(direct_->on_chunk(bucket, std::move(chunk)));
  };
  callbacks.on_bucket_done = [this](BucketId bucket, const std::string& result) {
    const auto report = TaskReport::decode(result);
    on_direct(report ? direct_->on_bucket(bucket, *report) : report.error().with_context(bucket.to_string()));
  };
  callbacks.on_finished = [this](const Status& status) {
    if (status) {
      finish_direct();
    } else {
      fail(status);
    }
  };
  start_session(std::move(options), std::move(callbacks));
}

void JobRunner::on_direct(const Status& status) {
  if (!status) {
    fail(status);
    return;
  }
  const TaskReport& totals = direct_->totals();
  job_.map_tasks_done = direct_->buckets();
  job_.documents_read = totals.documents;
  job_.bytes_read = totals.bytes;
  job_.tuples = totals.tuples;
  if (direct_->bytes() <= environment_.job_memory_bytes) return;
  if (job_.spec.shuffle == rpc::Shuffle::Auto) {
    switch_to_store();
  } else {
    fail(Status(StatusCode::TooLarge, "the groups of the job need more than " +
                                          std::to_string(environment_.job_memory_bytes) +
                                          " bytes where it runs; the limit is the setting mapreduce.job_memory_bytes, "
                                          "and the shuffle \"store\" needs no such memory"));
  }
}

void JobRunner::finish_direct() {
  if (std::vector<BucketId> lost = direct_->take_lost(); !lost.empty()) {
    // Not from inside the session's callback: it is about to be replaced.
    environment_.executor.post([this, lost = std::move(lost), settled = std::weak_ptr<int>(alive_)]() mutable {
      if (!settled.expired() && outcome_ == rpc::JobPhase::Done) map_direct(std::move(lost));
    });
    return;
  }
  job_.phase = rpc::JobPhase::Reduce;
  auto rows = direct_->finish(static_cast<std::size_t>(environment_.job_memory_bytes));
  if (!rows && rows.error().code() == StatusCode::TooLarge && job_.spec.shuffle == rpc::Shuffle::Auto) {
    switch_to_store();
  } else if (!rows) {
    fail(rows.error());
  } else {
    rows_ = std::move(*rows);
    job_.results = rows_.size();
    direct_.reset();
    end();
  }
}

/// The groups do not fit here. What was counted is forgotten: the documents are read once more.
void JobRunner::switch_to_store() {
  log::info("job", "{}: {} groups and more are too many for one process; it goes on through the store", job_.job_id,
            direct_->buckets());
  session_->cancel([this, settled = std::weak_ptr<int>(alive_)] {
    if (settled.expired() || outcome_ != rpc::JobPhase::Done) return;
    direct_.reset();
    spec_.direct = false;
    job_.shuffle = rpc::Shuffle::Store;
    job_.map_tasks_done = job_.documents_read = job_.bytes_read = job_.tuples = 0;
    choose_output();
    map();
  });
}

visitors::VisitorSessionOptions JobRunner::map_options() const {
  auto options = session_options(kMapVisitor);
  options.parameters = spec_.to_parameters();
  options.selection = job_.spec.document_type;
  if (!job_.spec.selection.empty()) options.selection += " and (" + job_.spec.selection + ")";
  options.header_only = !application_->needs_body();
  return options;
}

void JobRunner::map() {
  job_.phase = rpc::JobPhase::Map;
  run(
      map_options(),
      [this](const TaskReport& report) {
        ++job_.map_tasks_done;
        job_.documents_read += report.documents;
        job_.bytes_read += report.bytes;
        job_.tuples += report.tuples;
        job_.spilled_bytes += report.spilled_bytes;
        for (const auto& [destination, count] : report.tuple_documents) {
          if (destination < spec_.expected_documents.size()) spec_.expected_documents[destination] += count;
          job_.tuple_documents += count;
        }
      },
      [this](std::uint64_t buckets) { job_.map_tasks = buckets; },
      [this](const Status& status) {
        if (status) {
          reduce();
        } else {
          fail(status);
        }
      });
}

void JobRunner::reduce() {
  job_.phase = rpc::JobPhase::Reduce;
  const unsigned bits = environment_.snapshot.get()->distribution_bits();
  std::set<BucketId> buckets;
  for (std::uint32_t destination = 0; destination < spec_.output_buckets; ++destination) {
    if (spec_.expected_documents[destination] > 0) buckets.insert(spec_.bucket(destination, bits));
  }
  job_.reduce_tasks = buckets.size();
  if (buckets.empty()) {
    clean_up();
    return;
  }
  auto options = session_options(kReduceVisitor);
  options.parameters = spec_.to_parameters();
  options.selection = job_selection(kTuplesType, spec_.job);
  options.buckets.emplace(buckets.begin(), buckets.end());
  run(
      std::move(options),
      [this](const TaskReport& report) {
        ++job_.reduce_tasks_done;
        // A bucket that its distributor knows nothing of comes without a report; then tuples are lost.
        reduced_documents_ += report.documents;
        job_.results += report.results;
        job_.spilled_bytes += report.spilled_bytes;
      },
      {},
      [this](const Status& status) {
        if (!status) {
          fail(status);
        } else if (reduced_documents_ != job_.tuple_documents) {
          fail(Status(StatusCode::Corruption, "reduce read " + std::to_string(reduced_documents_) +
                                                  " tuple documents, map put " + std::to_string(job_.tuple_documents)));
        } else {
          clean_up();
        }
      });
}

void JobRunner::clean_up() {
  job_.phase = rpc::JobPhase::CleanUp;
  const unsigned bits = environment_.snapshot.get()->distribution_bits();
  std::set<BucketId> buckets;
  for (std::uint32_t destination = 0; destination < spec_.output_buckets; ++destination) {
    buckets.insert(spec_.bucket(destination, bits));
  }
  auto options = session_options(kRemoveVisitor);
  options.selection = job_selection(kTuplesType, spec_.job);
  options.ids_only = true;
  options.buckets.emplace(buckets.begin(), buckets.end());
  run(
      std::move(options), [](const TaskReport&) {}, {},
      [this](const Status& status) {
        if (!status) {
          log::warning("job", "{}: intermediate documents were left behind: {}", job_.job_id, status.to_string());
        }
        end();
      });
}

void JobRunner::fail(const Status& status) {
  if (outcome_ != rpc::JobPhase::Done || begins_anew_) return;
  begins_anew_ = may_begin_anew(status);
  if (!begins_anew_) {
    outcome_ = rpc::JobPhase::Failed;
    job_.error = status;
  }
  stop();
}

/// Tasks are named after buckets, which more distribution bits cut into smaller ones: a bucket that had not been read
/// by then is nowhere as a whole any more.
bool JobRunner::may_begin_anew(const Status& status) const {
  return is_transient(status.code()) && environment_.snapshot.get()->distribution_bits() != bits_ &&
         begun_anew_ < kBeginAnewMax;
}

void JobRunner::cancel() {
  if (outcome_ != rpc::JobPhase::Done || job_.phase == rpc::JobPhase::CleanUp) return;
  outcome_ = rpc::JobPhase::Cancelled;
  job_.error = Status(StatusCode::Cancelled, "the job was cancelled");
  if (begins_anew_) return;  // It has been stopped.
  job_.phase = rpc::JobPhase::CleanUp;
  stop();
}

void JobRunner::stop() {
  // Not from inside the session's callback: it is about to be replaced.
  session_->cancel([this, settled = std::weak_ptr<int>(alive_)] {
    if (settled.expired()) return;
    if (spec_.direct) {
      end();  // nothing was put
    } else {
      clean_up();
    }
  });
}

void JobRunner::begin_anew() {
  log::info("job", "{} begins anew: the cluster has other distribution bits since it began", job_.job_id);
  ++begun_anew_;
  begins_anew_ = false;
  direct_.reset();
  spec_.direct = false;
  reduced_documents_ = 0;
  job_.map_tasks = job_.map_tasks_done = job_.reduce_tasks = job_.reduce_tasks_done = 0;
  job_.documents_read = job_.bytes_read = job_.spilled_bytes = 0;
  job_.tuples = job_.tuple_documents = job_.results = 0;
  start();
}

void JobRunner::abandon() {
  if (session_ != nullptr) session_->abandon();
}

void JobRunner::end() {
  if (begins_anew_ && outcome_ == rpc::JobPhase::Done) {
    environment_.executor.post([this, settled = std::weak_ptr<int>(alive_)] {
      if (!settled.expired()) begin_anew();
    });
    return;
  }
  job_.tasks_repeated = status().tasks_repeated;
  job_.phase = outcome_;
  on_finished_();
}

}  // namespace fjord::mapreduce
