#include "job_tasks.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "fjord/common/hash.h"
#include "fjord/document/docblock.h"

namespace fjord::mapreduce {
namespace {

constexpr double kBusyShare = 0.6;  // share of the tasks' time above which processors are the bottleneck
constexpr Duration kUsagePoll = milliseconds(100);  // poll interval for the processor time of a job with cpu_max
constexpr std::uint32_t kThrottledVisitors = 2;     // few tasks at once exceed the throttle by little
constexpr std::uint32_t kThrottledUnitBuckets = 4;

}  // namespace

std::uint32_t JobTasks::visitors_per_node() const {
  const JobServiceOptions& options = environment_.options;
  std::uint32_t visitors = settings_.visitors_per_node != 0 ? settings_.visitors_per_node : job_.spec.visitors_per_node;
  if (visitors == 0) {
    const auto task_bytes = std::max<std::uint64_t>(1, environment_.task_memory_bytes);
    visitors = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(options.node_memory_bytes / task_bytes, 1,
                                                                    std::max(1u, options.visitors_per_node_max)));
    if (is_direct_map()) visitors = std::min(visitors, options.direct_visitors_per_node);
  }
  if (settings_.throttle != 0) visitors = std::min(visitors, kThrottledVisitors);
  return std::max(1u, static_cast<std::uint32_t>(visitors * environment_.share_percent / 100));
}

std::uint32_t JobTasks::buckets_per_visitor() const {
  if (settings_.throttle == 0 && environment_.share_percent >= 100) return 0;
  return is_direct_map() ? kThrottledUnitBuckets : 1;
}

visitors::VisitorSessionOptions JobTasks::options(const char* library) const {
  const JobServiceOptions& options = environment_.options;
  visitors::VisitorSessionOptions session;
  session.library = library;
  session.deduplicate = false;
  session.bucket_tries_max = options.task_tries_max;
  session.no_progress_limit = options.no_progress_limit;
  session.backup_after = options.backup_after;
  session.visitors_per_node = visitors_per_node();
  session.buckets_per_visitor = buckets_per_visitor();
  session.group = hash64(job_.job_id);
  session.weight = settings_.weight;
  session.priority = settings_.priority;
  if (session.priority == rpc::Priority::Default) {
    const bool is_awaited = pass_.is_planned() && pass_.application().is_aggregation();
    session.priority = is_awaited ? rpc::Priority::Normal : rpc::Priority::Background;
  }
  if (settings_.cpu_max != 0) session.poll_wait = kUsagePoll;
  return session;
}

visitors::VisitorSessionOptions JobTasks::reading_options() const {
  auto session = options("dump");
  session.deduplicate = true;
  session.follow_bits = true;
  return session;
}

void JobTasks::run(visitors::VisitorSessionOptions options, Callbacks callbacks) {
  visitors::VisitorSessionCallbacks session;
  session.on_buckets_known = std::move(callbacks.on_known);
  session.on_bucket_done = [this, on_task = std::move(callbacks.on_task)](BucketId bucket, const std::string& result) {
    const auto report = TaskReport::decode(result);
    if (host_.puts_documents()) note_repeated();
    Status status = report ? on_task(bucket, *report) : report.error().with_context(bucket.to_string());
    if (status) status = within_limits();
    if (!status) host_.failed(status);
  };
  session.on_begin = [this](std::size_t buckets) { return wait_before(buckets); };
  session.on_finished = [this, on_ended = std::move(callbacks.on_ended)](const Status& status) {
    if (host_.puts_documents()) note_repeated();
    if (status) {
      on_ended();
    } else {
      host_.failed(status);
    }
  };
  start(std::move(options), std::move(session));
}

void JobTasks::read(visitors::VisitorSessionOptions options, std::function<Status(const std::string& docblock)> take,
                    std::function<void()> on_ended) {
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_begin = [this](std::size_t) { return wait_for_share(environment_.clock.now()); };
  callbacks.on_docblock = [this, take = std::move(take)](BucketId, const std::string& docblock) {
    if (const Status status = take(docblock); !status) host_.failed(status);
  };
  callbacks.on_finished = [this, on_ended = std::move(on_ended)](const Status& status) {
    if (status) {
      on_ended();
    } else {
      host_.failed(status);
    }
  };
  start(std::move(options), std::move(callbacks));
}

void JobTasks::start(visitors::VisitorSessionOptions options, visitors::VisitorSessionCallbacks callbacks) {
  if (session_ != nullptr) repeated_before_ += session_->progress().buckets_repeated;
  repeated_noted_ = 0;
  job_.processor_us = processor_us();  // Abandoned tasks send no report: takes what the session has received so far.
  processor_before_us_ = job_.processor_us;
  callbacks.on_processor_time = [this] {
    if (const Status within = within_limits(); !within) host_.failed(within);
  };
  if (!callbacks.on_begin) callbacks.on_begin = [this](std::size_t buckets) { return wait_before(buckets); };
  session_ = std::make_unique<visitors::VisitorSession>(std::move(options), std::move(callbacks),
                                                        environment_.transport, environment_.snapshot,
                                                        environment_.clock, random_.fork(), environment_.executor);
  session_->start();
}

void JobTasks::abandon() {
  if (session_ != nullptr) session_->abandon();
}

void JobTasks::end_pass() {
  session_.reset();
  repeated_before_ = 0;
}

void JobTasks::settings_changed() {
  throttle_.set(settings_.throttle, settings_.throttle_by, environment_.clock.now());
}

void JobTasks::share_changed(bool runs) {
  if (runs && session_ != nullptr) session_->set_visitors(visitors_per_node(), buckets_per_visitor());
}

void JobTasks::begin_phase() {
  phase_began_ = environment_.clock.now();
  busy_before_us_ = job_.busy_us;
}

void JobTasks::count(std::uint64_t bytes, std::uint64_t documents, bool is_sent) {
  throttle_.bucket_done(bytes, documents, is_sent ? 0 : pass_.redundancy(), environment_.clock.now());
}

/// Returns for how long the next task must wait because foreground operations leave jobs less than their full share. A
/// visit that only reads has no other wait.
Duration JobTasks::wait_for_share(MonotonicTime now) {
  const std::int64_t share = environment_.share_percent;
  const Duration pause = share >= 100 ? Duration(0) : milliseconds(10) * (100 / std::max<std::int64_t>(1, share) - 1);
  if (share < 100 && now < last_begin_ + pause) return last_begin_ + pause - now;
  last_begin_ = now;
  return Duration(0);
}

Duration JobTasks::wait_before(std::size_t buckets) {
  if (job_.phase == rpc::JobPhase::CleanUp) return Duration(0);
  if (host_.puts_documents() && !callbacks_.is_owner()) return environment_.options.renew_interval;
  const MonotonicTime now = environment_.clock.now();
  const MonotonicTime begun = last_begin_;
  if (const Duration pause = wait_for_share(now); pause > Duration(0)) return pause;
  const Duration wait = throttle_.wait(buckets, now);
  if (wait > Duration(0)) last_begin_ = begun;
  waits_until_ = now + wait;
  return wait;
}

void JobTasks::note_repeated() {
  const std::uint64_t before = std::exchange(repeated_noted_, session_->progress().buckets_repeated);
  if (repeated_noted_ != before) host_.note_late_writes();
}

std::uint64_t JobTasks::repeated() const {
  if (session_ == nullptr) return job_.counts.tasks_repeated;
  return repeated_before_ + session_->progress().buckets_repeated;
}

std::uint64_t JobTasks::documents_open() const {
  const bool maps = job_.phase == rpc::JobPhase::Map;
  return maps && session_ != nullptr ? session_->progress().documents_open : 0;
}

std::uint64_t JobTasks::processor_us() const {
  if (session_ == nullptr) return job_.processor_us;
  return std::max(job_.processor_us, processor_before_us_ + session_->progress().processor_us);
}

JobOutlook JobTasks::outlook() const {
  const PassCounts& counts = job_.counts;
  const bool reduces = job_.phase == rpc::JobPhase::Reduce;
  const auto left = progress_.left(reduces ? counts.reduce_tasks_done : counts.map_tasks_done,
                                   reduces ? counts.reduce_tasks : counts.map_tasks, environment_.clock.now());
  JobOutlook outlook;
  outlook.left = left.time;
  outlook.left_error = left.error;
  return outlook;
}

std::string JobTasks::bound_by() const {
  const MonotonicTime now = environment_.clock.now();
  if (throttle_.is_on() && waits_until_ > now) return "throttle";
  if (environment_.share_percent < 100) {
    return fmt::format("foreground ({} % of its tasks)", environment_.share_percent);
  }
  if (session_ == nullptr) return "";
  if (session_->progress().buckets_done == 0) return "waiting for the first tasks";
  const auto snapshot = environment_.snapshot.get();
  double tasks = 0;
  for (std::size_t i = 0; i < snapshot->info().storage_addresses.size(); ++i) {
    if (snapshot->storage_serves(static_cast<std::uint16_t>(i))) tasks += visitors_per_node();
  }
  const auto elapsed = static_cast<double>((now - phase_began_).count());
  const auto busy = static_cast<double>(job_.busy_us - busy_before_us_);
  if (busy > kBusyShare * elapsed * std::max(1.0, tasks)) return "processors of the storage nodes";
  return "reading and writing on the storage nodes, or room for tasks there";
}

}  // namespace fjord::mapreduce
