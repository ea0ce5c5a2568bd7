#include "direct_phases.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "job_tasks.h"
#include "map_phase.h"

namespace fjord::mapreduce {
namespace {

constexpr std::uint32_t kBucketsOfUnitMax = 64;  // the number of buckets that a visitor reads at once

}  // namespace

DirectMapPhase::DirectMapPhase(JobParts parts)
    : parts_(std::move(parts)), busy_before_us_(parts_.job.busy_us), processor_before_us_(parts_.job.processor_us) {
  parts_.groups = std::make_unique<DirectReduce>(parts_.pass.application(), parts_.environment.bulk);
}

void DirectMapPhase::start() {
  const bool is_first = !buckets_ && !resume_;
  auto options = map_options(parts_);
  if (buckets_) options.buckets = buckets_;
  options.one_round = true;
  options.buckets_at_once = kBucketsOfUnitMax;
  if (resume_) resume_->question = options.fingerprint();
  options.resume = resume_;
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_buckets_known = [this, is_first](std::uint64_t count) {
    if (is_first) parts_.job.counts.map_tasks = count;
  };
  callbacks.on_docblock = [this](BucketId bucket, std::string chunk) {
    on_received(parts_.groups->on_chunk(bucket, std::move(chunk)));
  };
  callbacks.on_bucket_done = [this](BucketId bucket, const std::string& result) {
    const auto report = TaskReport::decode(result);
    if (report) parts_.tasks.count(report->sent_bytes, 1, true);
    on_received(report ? parts_.groups->on_bucket(bucket, *report) : report.error().with_context(bucket.to_string()));
  };
  callbacks.on_finished = [this](const Status& status) { status ? on_ended() : parts_.host.failed(status); };
  parts_.tasks.start(std::move(options), std::move(callbacks));
}

void DirectMapPhase::stop() {
  if (parts_.tasks.has_session()) resume_ = parts_.tasks.cursor();
  add_lost();
}

void DirectMapPhase::add_lost() {
  const std::vector<BucketId> lost = parts_.groups->take_lost();
  lost_.insert(lost_.end(), lost.begin(), lost.end());
}

void DirectMapPhase::on_received(const Status& received) {
  JobState& job = parts_.job;
  if (!received) return parts_.host.failed(received);
  const TaskReport& totals = parts_.groups->totals();
  job.counts.map_tasks_done = parts_.groups->buckets();
  job.counts.documents_read = totals.documents;
  job.counts.bytes_read = totals.bytes;
  job.counts.tuples = totals.tuples;
  job.counts.sent_bytes = totals.sent_bytes;
  job.counts.documents_reused = totals.reused;
  job.busy_us = busy_before_us_ + totals.busy_us;
  job.processor_us = processor_before_us_ + totals.processor_us;
  const std::uint64_t before = job.dead_letters_before();
  if (job.dead_letters.size() != before + totals.dead_letters.size()) {
    job.dead_letters.resize(std::min<std::size_t>(job.dead_letters.size(), before));
    job.dead_letters.insert(job.dead_letters.end(), totals.dead_letters.begin(), totals.dead_letters.end());
  }
  if (const Status within = parts_.tasks.within_limits(); !within) return parts_.host.failed(within);
  const MemoryLimit limit = parts_.memory();
  if (parts_.groups->bytes() <= limit.bytes) return;
  parts_.host.too_large(Status(StatusCode::TooLarge,
                               fmt::format("the groups of the job need more than {} bytes where it runs; the limit is "
                                           "the {}, and the shuffle \"store\" needs no such memory",
                                           limit.bytes, limit.name),
                               limit.details()));
}

void DirectMapPhase::on_ended() {
  add_lost();
  if (!lost_.empty()) {
    std::sort(lost_.begin(), lost_.end());
    buckets_ = std::exchange(lost_, {});
    resume_.reset();
    parts_.host.continue_later();
    return;
  }
  if (const Status whole = parts_.pass.check_input(); !whole) {
    parts_.host.failed(whole);
  } else {
    parts_.host.ended();
  }
}

void DirectReducePhase::start() {
  // Groups of an aggregation become rows quickly, so this thread does it. On another thread the rows could not reuse
  // the memory of the groups: the allocator keeps freed memory for the thread that had it.
  if (parts_.pass.application().is_aggregation()) {
    on_reduced(parts_.groups->finish(static_cast<std::size_t>(parts_.memory().bytes)));
  } else {
    reduce_elsewhere();
  }
}

/// Reduces on another thread: functions of users may take long, and the job must answer calls meanwhile. The reduction
/// owns what it needs until it ends, even if its result is no longer needed.
void DirectReducePhase::reduce_elsewhere() {
  struct Reduction {
    std::shared_ptr<const rpc::ClusterSnapshot> snapshot;  ///< Owns the types that the application uses.
    std::shared_ptr<Application> application;
    std::unique_ptr<DirectReduce> groups;
  };
  auto reduction = std::make_shared<Reduction>(
      Reduction{parts_.pass.snapshot(), parts_.pass.shared_application(), std::move(parts_.groups)});
  parts_.environment.run_long([reduction = std::move(reduction), limit = parts_.memory().bytes,
                               stop = reduction_.get_token(), mailbox = parts_.environment.mailbox,
                               self = guard_.of(*this)] {
    auto rows = std::make_shared<Result<JobRows>>(reduction->groups->finish(static_cast<std::size_t>(limit), stop));
    mailbox.post(while_alive(self, [rows](DirectReducePhase& phase) {
      if (phase.parts_.host.goes_on()) phase.on_reduced(std::move(*rows));
    }));
  });
}

void DirectReducePhase::on_reduced(Result<JobRows> rows) {
  if (!rows) {
    const Status& status = rows.error();
    status.code() == StatusCode::TooLarge ? parts_.host.too_large(status) : parts_.host.failed(status);
    return;
  }
  parts_.rows.rows = std::move(*rows);
  parts_.rows.are_there = true;
  parts_.job.counts.results = parts_.rows.rows.size();
  parts_.groups.reset();
  parts_.host.ended();
}

}  // namespace fjord::mapreduce
