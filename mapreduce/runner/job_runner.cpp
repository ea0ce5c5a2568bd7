#include "job_runner.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <set>
#include <utility>

#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "output_spread.h"

namespace fjord::mapreduce {
namespace {

constexpr std::uint32_t kOutputBucketsMin = 4;
constexpr std::uint32_t kOutputBucketsMax = 16;
constexpr unsigned kBeginAnewMax = 5;
constexpr std::uint32_t kBucketsOfUnitMax = 64;     // as many as a visitor reads at once
constexpr Duration kUsagePoll = milliseconds(100);  // poll interval for the processor time of a job with cpu_max
constexpr std::uint32_t kThrottledVisitors = 2;     // keeps overshoot small
constexpr std::uint32_t kThrottledUnitBuckets = 4;

std::string job_selection(const char* type, const std::string& job) {
  return std::string(type) + ".job == \"" + job + "\"";
}

Status cancelled() { return Status(StatusCode::Cancelled, "the job was cancelled"); }

}  // namespace

JobRunner::JobRunner(JobState job, RunnerEnvironment environment, Random random, RunnerCallbacks callbacks)
    : job_(std::move(job)), environment_(environment), random_(random), callbacks_(std::move(callbacks)) {
  spec_.job = job_.job_id;
  spec_.output_namespace = job_.spec.output_namespace.empty() ? "results" : job_.spec.output_namespace;
  spec_.run = job_.run;
  apply(job_.settings.empty() ? job_.spec.settings : job_.settings);
}

// --- From outside

JobState JobRunner::state() const {
  JobState state = job_;
  if (session_ != nullptr) state.counts.tasks_repeated = repeated_before_ + session_->progress().buckets_repeated;
  state.processor_us = processor_us();
  return state;
}

JobOutlook JobRunner::outlook() const {
  JobOutlook outlook;
  const bool reduces = job_.phase == rpc::JobPhase::Reduce;
  if (reduces || job_.phase == rpc::JobPhase::Map) {
    const auto left =
        progress_.left(reduces ? job_.counts.reduce_tasks_done : job_.counts.map_tasks_done,
                       reduces ? job_.counts.reduce_tasks : job_.counts.map_tasks, environment_.clock.now());
    outlook.left = left.time;
    outlook.left_error = left.error;
  }
  if (reduces || job_.phase == rpc::JobPhase::Map || job_.phase == rpc::JobPhase::Put) outlook.bound_by = bound_by();
  return outlook;
}

JobState JobRunner::record() const {
  JobState record = state();
  if (job_.shuffle == rpc::Shuffle::Store && job_.phase == rpc::JobPhase::Map) {
    if (maps_) {
      record.resume = session_->token().to_text();
    } else if (resume_) {
      record.resume = resume_->to_text();
    }
  }
  return record;
}

void JobRunner::cancel() {
  if (outcome_ != rpc::JobPhase::Done || job_.phase == rpc::JobPhase::CleanUp) return;
  outcome_ = rpc::JobPhase::Cancelled;
  job_.error = cancelled();
  if (begins_anew_) return;  // The job is already being stopped.
  stop();
}

void JobRunner::pause() {
  if (job_.paused || outcome_ != rpc::JobPhase::Done || job_.phase == rpc::JobPhase::CleanUp) return;
  if (puts_documents()) note_late_writes();
  job_.paused = true;
  progress_.pause(environment_.clock.now());
  if (between_ || session_ == nullptr) return;
  resume_ = session_->token();
  maps_ = false;
  session_->cancel();
  if (direct_ != nullptr) {
    const std::vector<BucketId> lost = direct_->take_lost();
    lost_.insert(lost_.end(), lost.begin(), lost.end());
  }
}

void JobRunner::resume() {
  if (!job_.paused) return;
  job_.paused = false;
  progress_.resume(environment_.clock.now());
  if (between_ || outcome_ != rpc::JobPhase::Done || !phase_) return;
  if (job_.phase == rpc::JobPhase::Map && environment_.snapshot.get()->distribution_bits() != job_.bits) {
    begin_anew();
  } else {
    phase_();
  }
}

void JobRunner::apply(std::vector<rpc::Parameter> settings) {
  job_.settings = std::move(settings);
  if (const auto parsed = JobSettings::parse(job_.settings)) settings_ = *parsed;
  spec_.counts_processors = settings_.cpu_max != 0;
  throttle_.set(settings_.throttle, settings_.throttle_by, environment_.clock.now());
  share_changed();
}

void JobRunner::share_changed() {
  const bool runs =
      session_ != nullptr && !job_.paused && !between_ &&
      (job_.phase == rpc::JobPhase::Map || job_.phase == rpc::JobPhase::Reduce || job_.phase == rpc::JobPhase::Put);
  if (runs) session_->set_visitors(visitors_per_node(), buckets_per_visitor());
}

void JobRunner::abandon() {
  reduction_.request_stop();
  if (session_ != nullptr) session_->abandon();
}

// --- What a phase needs

/// Chooses the output buckets. Two per node keep every node busy in reduce. More than 16 would make the tuple
/// documents, one for each pair of input and output bucket, many and small. A job keeps the output buckets it has,
/// because they may contain its documents.
void JobRunner::choose_output() {
  if (job_.output_buckets == 0) place_output();
  job_.expected_documents.assign(job_.output_buckets, 0);
  set_output();
}

void JobRunner::place_output() {
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
  job_.output_buckets = buckets;
  job_.output_base = spread_output(*snapshot, buckets, job_.job_id);
}

void JobRunner::set_output() {
  spec_.direct = false;
  spec_.output_buckets = job_.output_buckets;
  spec_.output_base = job_.output_base;
}

std::uint32_t JobRunner::visitors_per_node() const {
  const JobServiceOptions& options = environment_.options;
  std::uint32_t visitors = settings_.visitors_per_node != 0 ? settings_.visitors_per_node : job_.spec.visitors_per_node;
  if (visitors == 0) {
    const auto task_bytes = std::max<std::uint64_t>(1, environment_.task_memory_bytes);
    visitors = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(options.node_memory_bytes / task_bytes, 1,
                                                                    std::max(1u, options.visitors_per_node_max)));
    if (spec_.direct) visitors = std::min(visitors, options.direct_visitors_per_node);
  }
  if (settings_.throttle != 0) visitors = std::min(visitors, kThrottledVisitors);
  return std::max(1u, static_cast<std::uint32_t>(visitors * environment_.share_percent / 100));
}

std::uint32_t JobRunner::buckets_per_visitor() const {
  if (settings_.throttle == 0 && environment_.share_percent >= 100) return 0;
  return spec_.direct ? kThrottledUnitBuckets : 1;
}

visitors::VisitorSessionOptions JobRunner::session_options(const char* library) const {
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
    const bool somebody_waits = application_ != nullptr && application_->is_aggregation();
    session.priority = somebody_waits ? rpc::Priority::Normal : rpc::Priority::Background;
  }
  if (settings_.cpu_max != 0) session.poll_wait = kUsagePoll;
  return session;
}

void JobRunner::run(visitors::VisitorSessionOptions options, std::function<void(const TaskReport&)> on_task,
                    std::function<void(std::uint64_t)> on_known, std::function<void(Status)> on_finished) {
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_buckets_known = std::move(on_known);
  callbacks.on_bucket_done = [this, on_task = std::move(on_task)](BucketId bucket, const std::string& result) {
    if (maps_ && resume_ && bucket.used_bits() != job_.bits) {
      fail(Status(StatusCode::NotReady, "the distribution bits have changed"));
      return;
    }
    const auto report = TaskReport::decode(result);
    if (puts_documents()) note_repeated();
    if (report) {
      on_task(*report);
    } else {
      fail(report.error().with_context(bucket.to_string()));
    }
  };
  callbacks.on_begin = [this](std::size_t buckets) { return wait_before(buckets); };
  callbacks.on_finished = [this, on_finished = std::move(on_finished)](const Status& status) {
    if (puts_documents()) note_repeated();
    on_finished(status);
  };
  start_session(std::move(options), std::move(callbacks));
}

void JobRunner::start_session(visitors::VisitorSessionOptions options, visitors::VisitorSessionCallbacks callbacks) {
  if (session_ != nullptr) repeated_before_ += session_->progress().buckets_repeated;
  repeated_noted_ = 0;
  job_.processor_us = processor_us();  // Abandoned tasks report nothing; what the session has heard of them counts.
  processor_before_us_ = job_.processor_us;
  callbacks.on_processor_time = [this] {
    if (const Status within = check_limits(); !within) fail(within);
  };
  session_ = std::make_unique<visitors::VisitorSession>(std::move(options), std::move(callbacks),
                                                        environment_.transport, environment_.snapshot,
                                                        environment_.clock, random_.fork(), environment_.executor);
  session_->start();
}

/// Returns the pause before the next task begins if the foreground leaves jobs less than their full share. Visits that
/// only read wait for nothing else.
Duration JobRunner::wait_for_share(MonotonicTime now) {
  const std::int64_t share = environment_.share_percent;
  const Duration pause = share >= 100 ? Duration(0) : milliseconds(10) * (100 / std::max<std::int64_t>(1, share) - 1);
  if (share < 100 && now < last_begin_ + pause) return last_begin_ + pause - now;
  last_begin_ = now;
  return Duration(0);
}

Duration JobRunner::wait_before(std::size_t buckets) {
  if (job_.phase == rpc::JobPhase::CleanUp) return Duration(0);
  if (puts_documents() && !callbacks_.is_owner()) return environment_.options.renew_interval;
  const MonotonicTime now = environment_.clock.now();
  const MonotonicTime begun = last_begin_;
  if (const Duration pause = wait_for_share(now); pause > Duration(0)) return pause;
  const Duration wait = throttle_.wait(buckets, now);
  if (wait > Duration(0)) last_begin_ = begun;
  waits_until_ = now + wait;
  return wait;
}

std::function<void()> JobRunner::if_alive(std::function<void()> then) {
  return [settled = std::weak_ptr<int>(alive_), then = std::move(then)] {
    if (!settled.expired()) then();
  };
}

/// Begins a phase that can be paused; resume() calls `phase` again to continue it.
void JobRunner::in_phase(std::function<void()> phase) {
  between_ = false;
  phase_ = std::move(phase);
  phase_began_ = environment_.clock.now();
  busy_before_us_ = job_.busy_us;
  if (!job_.paused) phase_();
}

void JobRunner::commit(std::function<void()> then) {
  between_ = true;
  end_mapping();
  callbacks_.commit(if_alive(std::move(then)));
}

/// Ends mapping but keeps its cursor, so that the record names the mapped buckets that its counts include.
void JobRunner::end_mapping() {
  if (std::exchange(maps_, false)) resume_ = session_->token();
}

void JobRunner::take_dead_letters(const TaskReport& report) {
  job_.dead_letters.insert(job_.dead_letters.end(), report.dead_letters.begin(), report.dead_letters.end());
}

// --- Phases

void JobRunner::start() {
  const bool has_begun = job_.bits != 0;
  if (!choose_pass()) return;
  // The former owner may have done more than the record says.
  if (has_begun && job_.phase != rpc::JobPhase::CleanUp) note_late_writes();
  if (job_.cancel_wanted) {
    outcome_ = rpc::JobPhase::Cancelled;
    job_.error = cancelled();
    stopped();
  } else if (!has_begun) {
    begin();
  } else if (!go_on()) {
    begin_anew();
  }
}

/// Plans the current pass. Returns false and ends the job if it can no longer run as it was submitted.
bool JobRunner::choose_pass() {
  snapshot_ = environment_.snapshot.get();
  const std::size_t pass = job_.passes_done.size();
  const auto& versions = job_.application_versions;
  spec_.version = pass < versions.size() ? versions[pass] : job_.application_version;
  auto plan = plan_pass(job_.spec, job_.job_id, pass, environment_.applications, snapshot_->types());
  const Status fits =
      plan ? environment_.applications.check_version(plan->pass.application, spec_.version) : plan.error();
  if (!fits) {
    outcome_ = rpc::JobPhase::Failed;
    job_.error = fits;
    stopped();
    return false;
  }
  direct_.reset();
  plan_.application.reset();  // must be destroyed before its types
  plan_ = std::move(*plan);
  application_ = plan_.application.get();
  spec_.application = plan_.pass.application;
  spec_.document_type = plan_.pass.document_type;
  spec_.parameters = plan_.pass.parameters;
  spec_.once = !job_.passes_done.empty();
  spec_.reads_rows = plan_.reads_rows;
  spec_.columns = plan_.reads_rows ? plan_.columns_before : std::vector<AggregateColumn>();
  spec_.row_selection = plan_.reads_rows ? plan_.pass.selection : std::string();
  choose_shuffle();
  return true;
}

void JobRunner::choose_shuffle() {
  if (job_.shuffle != rpc::Shuffle::Auto) return;  // an earlier owner has chosen
  job_.shuffle = job_.spec.shuffle;
  if (job_.shuffle == rpc::Shuffle::Auto) {
    const bool is_incremental = job_.spec.incremental && job_.passes_done.empty();
    const bool is_direct = application_->is_aggregation() || is_incremental;
    job_.shuffle = is_direct ? rpc::Shuffle::Direct : rpc::Shuffle::Store;
  }
}

void JobRunner::begin() {
  job_.bits = environment_.snapshot.get()->distribution_bits();
  job_.phase = rpc::JobPhase::Map;
  resume_.reset();
  // The cursor of an earlier run or pass, if the job was taken over in it.
  job_.resume.clear();
  lost_.clear();
  progress_.begin(0, environment_.clock.now());
  if (job_.shuffle == rpc::Shuffle::Direct) {
    map_direct(std::nullopt);
    return;
  }
  // The record must be written first: a new owner must use the same names of tuple documents and remove them.
  choose_output();
  commit([this] {
    if (outcome_ == rpc::JobPhase::Done) in_phase([this] { map(); });
  });
}

/// Continues as the record says. Returns false if that is impossible: a direct job has lost its groups with its
/// process, or the distribution bits differ, so that the tasks are others.
bool JobRunner::go_on() {
  if (job_.output_buckets == 0) return false;
  set_output();
  const auto& sabotage = environment_.options.sabotage;
  if (sabotage.lose_dead_letters) job_.dead_letters.clear();
  if (job_.phase == rpc::JobPhase::CleanUp && job_.outcome != rpc::JobPhase::Unknown) {
    outcome_ = job_.outcome;
    read_kept_rows();
    return true;
  }
  if (job_.phase == rpc::JobPhase::Put) {
    put();
    return true;
  }
  if (job_.shuffle != rpc::Shuffle::Store) return false;
  const bool fits = job_.bits == environment_.snapshot.get()->distribution_bits() &&
                    job_.expected_documents.size() == spec_.output_buckets;
  if (!fits) return false;
  if (job_.phase == rpc::JobPhase::Map) {
    resume_.reset();
    if (!job_.resume.empty()) {
      auto token = visitors::VisitToken::parse(job_.resume);
      if (!token) return false;
      if (!sabotage.count_again_after_takeover) resume_ = std::move(*token);
    } else if (job_.counts.map_tasks_done != 0) {
      return false;
    }
    progress_.begin(job_.counts.map_tasks_done, environment_.clock.now());
    in_phase([this] { map(); });
    return true;
  }
  if (job_.phase != rpc::JobPhase::Reduce) return false;
  reduce();
  return true;
}

void JobRunner::map_direct(std::optional<std::vector<BucketId>> buckets) {
  job_.phase = rpc::JobPhase::Map;
  spec_.direct = true;
  spec_.output_buckets = 1;
  if (direct_ == nullptr) {
    direct_ = std::make_unique<DirectReduce>(*application_, environment_.bulk,
                                             environment_.options.sabotage.count_repeated_twice);
    before_direct_ = {job_.busy_us, job_.processor_us};
  }
  resume_.reset();
  in_phase([this, buckets = std::move(buckets)] { run_direct(buckets); });
}

void JobRunner::run_direct(std::optional<std::vector<BucketId>> buckets) {
  const bool is_first = !buckets.has_value() && !resume_;
  auto options = map_options();
  if (buckets.has_value()) options.buckets = std::move(buckets);
  options.one_round = true;
  options.buckets_at_once = kBucketsOfUnitMax;
  if (resume_) resume_->question = options.fingerprint();
  options.resume = resume_;
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_buckets_known = [this, is_first](std::uint64_t count) {
    if (is_first) job_.counts.map_tasks = count;
  };
  callbacks.on_docblock = [this](BucketId bucket, std::string chunk) {
    on_direct(direct_->on_chunk(bucket, std::move(chunk)));
  };
  callbacks.on_bucket_done = [this](BucketId bucket, const std::string& result) {
    const auto report = TaskReport::decode(result);
    if (report) throttle_.bucket_done(report->sent_bytes, 1, 0, environment_.clock.now());
    on_direct(report ? direct_->on_bucket(bucket, *report) : report.error().with_context(bucket.to_string()));
  };
  callbacks.on_begin = [this](std::size_t count) { return wait_before(count); };
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
  job_.counts.map_tasks_done = direct_->buckets();
  job_.counts.documents_read = totals.documents;
  job_.counts.bytes_read = totals.bytes;
  job_.counts.tuples = totals.tuples;
  job_.counts.sent_bytes = totals.sent_bytes;
  job_.busy_us = before_direct_.busy_us + totals.busy_us;
  job_.processor_us = before_direct_.processor_us + totals.processor_us;
  job_.counts.documents_reused = totals.reused;
  const std::uint64_t before = job_.dead_letters_before();
  if (job_.dead_letters.size() != before + totals.dead_letters.size()) {
    job_.dead_letters.resize(std::min<std::size_t>(job_.dead_letters.size(), before));
    take_dead_letters(totals);
  }
  if (const Status within = check_limits(); !within) {
    fail(within);
    return;
  }
  if (direct_->bytes() <= memory_limit()) return;
  if (job_.spec.shuffle == rpc::Shuffle::Auto) {
    switch_to_store();
  } else {
    fail(Status(StatusCode::TooLarge,
                fmt::format("the groups of the job need more than {} bytes where it runs; the limit is the {}, and the "
                            "shuffle \"store\" needs no such memory",
                            memory_limit(), memory_limit_name()),
                memory_limit_details()));
  }
}

void JobRunner::finish_direct() {
  const std::vector<BucketId> open = direct_->take_lost();
  lost_.insert(lost_.end(), open.begin(), open.end());
  if (!lost_.empty()) {
    std::sort(lost_.begin(), lost_.end());
    between_ = true;
    // Deferred: the session is about to be replaced and must not be on the stack.
    environment_.executor.post(if_alive([this] {
      if (outcome_ == rpc::JobPhase::Done) map_direct(std::exchange(lost_, {}));
    }));
    return;
  }
  if (const Status whole = check_input(); !whole) {
    fail(whole);
    return;
  }
  job_.phase = rpc::JobPhase::Reduce;
  // Groups of an aggregation become rows quickly, so this thread does it. On another thread the rows could not reuse
  // the memory of the groups: the allocator keeps freed memory for the thread that had it.
  if (application_->is_aggregation()) {
    on_direct_reduced(direct_->finish(static_cast<std::size_t>(memory_limit())));
  } else {
    reduce_elsewhere();
  }
}

/// Reduces on another thread: functions of users may take long, and the job must answer calls meanwhile. The reduction
/// owns what it needs until it ends, even if its result is no longer needed.
void JobRunner::reduce_elsewhere() {
  between_ = true;
  reduction_ = std::stop_source();
  struct Reduction {
    std::shared_ptr<const rpc::ClusterSnapshot> snapshot;  ///< Owns the types that the application uses.
    std::shared_ptr<Application> application;
    std::unique_ptr<DirectReduce> direct;
  };
  auto reduction = std::make_shared<Reduction>(Reduction{snapshot_, plan_.application, std::move(direct_)});
  environment_.run_long([this, reduction = std::move(reduction), limit = memory_limit(), run = job_.run,
                         stop = reduction_.get_token(), mailbox = environment_.mailbox,
                         alive = std::weak_ptr<int>(alive_)] {
    auto rows = std::make_shared<Result<Rows>>(reduction->direct->finish(static_cast<std::size_t>(limit), stop));
    mailbox.post([this, rows, run, alive] {
      if (alive.expired() || outcome_ != rpc::JobPhase::Done || begins_anew_ || job_.run != run) return;
      on_direct_reduced(std::move(*rows));
    });
  });
}

void JobRunner::on_direct_reduced(Result<Rows> rows) {
  if (!rows && rows.error().code() == StatusCode::TooLarge && job_.spec.shuffle == rpc::Shuffle::Auto) {
    switch_to_store();
  } else if (!rows) {
    fail(rows.error());
  } else {
    rows_ = std::move(*rows);
    has_rows_ = true;
    job_.counts.results = rows_.size();
    direct_.reset();
    reduced();
  }
}

/// Restarts the job through the store because its groups do not fit into this process. All counts are reset, and the
/// documents are read again.
void JobRunner::switch_to_store() {
  log::info("job", "{}: {} groups and more are too many for one process; it goes on through the store", job_.job_id,
            job_.counts.map_tasks_done);
  between_ = true;
  session_->cancel(if_alive([this] {
    if (outcome_ != rpc::JobPhase::Done) return;
    job_.shuffle = rpc::Shuffle::Store;
    reset_counts();
    begin();
  }));
}

void JobRunner::reset_counts() {
  direct_.reset();
  rows_.clear();
  has_rows_ = false;
  lost_.clear();
  resume_.reset();
  spec_.direct = false;
  reduced_documents_ = 0;
  job_.phase = rpc::JobPhase::Map;
  const std::uint64_t repeated = job_.counts.tasks_repeated;
  job_.counts = {};
  job_.counts.tasks_repeated = repeated;
  job_.dead_letters.resize(std::min<std::size_t>(job_.dead_letters.size(), job_.dead_letters_before()));
}

visitors::VisitorSessionOptions JobRunner::map_options() const {
  TaskSpec spec = spec_;
  spec.dead_letters_max = static_cast<std::uint32_t>(settings_.dead_letters_max);
  spec.expected_documents.clear();
  spec.puts_results = true;  // map tasks need not know what reduce puts
  spec.puts_rows = false;
  spec.into = {};
  auto options = session_options(kMapVisitor);
  options.selection = input_selection();
  if (plan_.reads_rows) options.buckets = output_buckets();
  const bool is_incremental = job_.spec.incremental && job_.passes_done.empty();
  if (spec_.direct && is_incremental) spec.incremental = options.selection;
  options.parameters = spec.to_parameters();
  options.header_only = !application_->needs_body() && !plan_.reads_rows;
  return options;
}

void JobRunner::map() {
  job_.phase = rpc::JobPhase::Map;
  auto options = map_options();
  if (resume_) resume_->question = options.fingerprint();
  options.resume = resume_;
  maps_ = true;
  run(
      std::move(options), [this](const TaskReport& report) { on_mapped(report); },
      [this](std::uint64_t buckets) { job_.counts.map_tasks = job_.counts.map_tasks_done + buckets; },
      [this](const Status& status) {
        if (const Status whole = status ? check_input() : status; !whole) {
          fail(whole);
        } else {
          commit([this] {
            if (outcome_ == rpc::JobPhase::Done) reduce();
          });
        }
      });
}

void JobRunner::on_mapped(const TaskReport& report) {
  ++job_.counts.map_tasks_done;
  job_.counts.documents_read += report.documents;
  job_.counts.bytes_read += report.bytes;
  job_.counts.tuples += report.tuples;
  job_.counts.spilled_bytes += report.spilled_bytes;
  job_.counts.sent_bytes += report.sent_bytes;
  job_.busy_us += report.busy_us;
  job_.processor_us += report.processor_us;
  std::uint64_t documents = 0;
  for (const auto& [destination, count] : report.tuple_documents) {
    if (destination < job_.expected_documents.size()) job_.expected_documents[destination] += count;
    documents += count;
  }
  job_.counts.tuple_documents += documents;
  take_dead_letters(report);
  throttle_.bucket_done(report.sent_bytes, documents, snapshot_->distribution().redundancy(), environment_.clock.now());
  if (const Status within = check_limits(); !within) fail(within);
}

void JobRunner::reduce() {
  job_.phase = rpc::JobPhase::Reduce;
  in_phase([this] { run_reduce(); });
}

/// Runs reduce from its beginning, even if it had begun before: results are overwritten with the same bytes.
void JobRunner::run_reduce() {
  const unsigned bits = environment_.snapshot.get()->distribution_bits();
  spec_.expected_documents = job_.expected_documents;
  std::set<BucketId> buckets;
  for (std::uint32_t destination = 0; destination < spec_.output_buckets; ++destination) {
    if (spec_.expected_documents[destination] > 0) buckets.insert(spec_.bucket(destination, bits));
  }
  job_.counts.reduce_tasks = buckets.size();
  job_.counts.reduce_tasks_done = job_.counts.results = job_.counts.documents_put = reduced_documents_ = 0;
  progress_.begin(0, environment_.clock.now());
  if (buckets.empty()) {
    reduce_nothing();
    return;
  }
  set_outputs();
  auto options = session_options(kReduceVisitor);
  options.parameters = spec_.to_parameters();
  options.selection = job_selection(kTuplesType, spec_.tuples_job());
  options.buckets.emplace(buckets.begin(), buckets.end());
  run(
      std::move(options),
      [this](const TaskReport& report) {
        ++job_.counts.reduce_tasks_done;
        // A bucket that its distributor does not know has an empty report. Its tuples are lost, which on_finished
        // detects.
        reduced_documents_ += report.documents;
        job_.counts.results += report.results;
        if (!spec_.into.type.empty()) job_.counts.documents_put += report.results;
        job_.counts.spilled_bytes += report.spilled_bytes;
        job_.busy_us += report.busy_us;
        job_.processor_us += report.processor_us;
        throttle_.bucket_done(report.sent_bytes, report.results, snapshot_->distribution().redundancy(),
                              environment_.clock.now());
        if (const Status within = check_limits(); !within) fail(within);
      },
      {},
      [this](const Status& status) {
        if (!status) {
          fail(status);
        } else if (reduced_documents_ != job_.counts.tuple_documents) {
          fail(Status(StatusCode::Corruption, "reduce read " + std::to_string(reduced_documents_) +
                                                  " tuple documents, map put " +
                                                  std::to_string(job_.counts.tuple_documents)));
        } else {
          reduced();
        }
      });
}

/// Writes the outcome to the record before the first tuple document is removed. A new owner then continues removing and
/// does not miss tuples.
void JobRunner::finish_store(rpc::JobPhase outcome) {
  job_.phase = rpc::JobPhase::CleanUp;
  job_.outcome = outcome;
  job_.paused = false;
  commit([this] { clean_up(); });
}

/// Removes the tuple documents of all runs and passes.
void JobRunner::clean_up() {
  job_.phase = rpc::JobPhase::CleanUp;
  const std::vector<BucketId> buckets = output_buckets();
  auto options = session_options(kRemoveVisitor);
  options.selection = fmt::format("{0}.job == \"{1}\" or {0}.job = \"{1}/*\"", kTuplesType, job_.job_id);
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

// --- Ends

void JobRunner::fail(const Status& status) {
  if (outcome_ != rpc::JobPhase::Done || begins_anew_ || job_.phase == rpc::JobPhase::CleanUp) return;
  begins_anew_ = may_begin_anew(status);
  if (!begins_anew_) {
    outcome_ = rpc::JobPhase::Failed;
    job_.error = status;
  }
  stop();
}

/// True if a restart may help because the distribution bits have changed. Tasks are named after buckets, which more
/// bits split: a bucket that had not been read by then no longer exists as a whole.
bool JobRunner::may_begin_anew(const Status& status) const {
  return is_transient(status.code()) && environment_.snapshot.get()->distribution_bits() != job_.bits &&
         job_.run - job_.pass_run < kBeginAnewMax;
}

void JobRunner::stop() {
  if (puts_documents()) note_late_writes();
  between_ = true;
  reduction_.request_stop();
  end_mapping();
  if (pumps_) return;
  // Deferred: the session is about to be replaced and must not be on the stack.
  if (session_ == nullptr) {
    environment_.executor.post(if_alive([this] { stopped(); }));
  } else {
    session_->cancel(if_alive([this] { stopped(); }));
  }
}

void JobRunner::stopped() {
  job_.paused = job_.paused && begins_anew_;
  if (begins_anew_ && outcome_ == rpc::JobPhase::Done) {
    begin_anew();
  } else if (job_.output_buckets == 0) {
    end();  // nothing was put
  } else {
    finish_store(outcome_);
  }
}

/// Restarts the pass. Clean-up removes the documents of earlier runs with the others.
void JobRunner::begin_anew() {
  log::info("job", "{} begins anew", job_.job_id);
  begins_anew_ = false;
  ++job_.run;
  spec_.run = job_.run;
  reset_counts();
  begin();
}

void JobRunner::end() {
  between_ = true;
  job_.counts.tasks_repeated = state().counts.tasks_repeated;
  job_.processor_us = processor_us();
  job_.phase = outcome_;
  job_.paused = false;
  callbacks_.on_finished();
}

}  // namespace fjord::mapreduce
