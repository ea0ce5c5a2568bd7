#include "current_pass.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

namespace fjord::mapreduce {
namespace {

constexpr unsigned kRestartsMax = 5;

std::string of_job(const std::string& job) { return fmt::format("{}.job == \"{}\"", kTuplesType, job); }

std::string of_target(const rpc::RowTarget& target) {
  return fmt::format("{} and id.type == \"{}\" and id.namespace == \"{}\" and id.specific = \"{}/*\"", target.type,
                     target.type, target.name_space, target.name);
}

}  // namespace

Status CurrentPass::plan() {
  snapshot_ = environment_.snapshot.get();
  FJORD_TRY_ASSIGN(auto plan, plan_pass(job_.spec, job_.job_id, job_.passes_done.size(), environment_.applications,
                                        snapshot_->types()));
  FJORD_TRY(environment_.applications.check_version(plan.pass.application, version()));
  plan_.application.reset();  // must be destroyed before its types
  plan_ = std::move(plan);
  choose_shuffle();
  return Status::ok();
}

void CurrentPass::choose_shuffle() {
  if (job_.shuffle != rpc::Shuffle::Auto) return;  // an earlier owner has chosen
  job_.shuffle = job_.spec.shuffle;
  if (job_.shuffle == rpc::Shuffle::Auto) {
    const bool is_incremental = job_.spec.incremental && job_.passes_done.empty();
    const bool is_direct = application().is_aggregation() || is_incremental;
    job_.shuffle = is_direct ? rpc::Shuffle::Direct : rpc::Shuffle::Store;
  }
}

bool CurrentPass::may_restart(const Status& error) const {
  return is_transient(error.code()) && environment_.snapshot.get()->distribution_bits() != job_.bits &&
         job_.run - job_.pass_run < kRestartsMax;
}

void CurrentPass::reset_counts() {
  job_.phase = rpc::JobPhase::Map;
  const std::uint64_t repeated = job_.counts.tasks_repeated;
  job_.counts = {};
  job_.counts.tasks_repeated = repeated;
  job_.dead_letters.resize(std::min<std::size_t>(job_.dead_letters.size(), job_.dead_letters_before()));
}

void CurrentPass::end(const PassCounts& counts) {
  PassResult done{counts, job_.dead_letters.size() - job_.dead_letters_before(), job_.shuffle};
  job_.passes_done.push_back(std::move(done));
  reset_counts();
  ++job_.run;
  job_.pass_run = job_.run;
  job_.bits = 0;
  job_.shuffle = rpc::Shuffle::Auto;
}

PassShape CurrentPass::shape() const {
  PassShape shape;
  shape.is_direct = job_.shuffle == rpc::Shuffle::Direct;
  shape.has_output = job_.output_buckets != 0;
  if (!is_planned()) return shape;
  shape.puts_rows = puts_rows();
  shape.is_limited = is_limited();
  shape.puts_documents = puts_documents();
  shape.is_last = is_last();
  return shape;
}

const std::string& CurrentPass::version() const {
  const std::size_t pass = job_.passes_done.size();
  const auto& versions = job_.application_versions;
  return pass < versions.size() ? versions[pass] : job_.application_version;
}

TaskSpec CurrentPass::task() const {
  TaskSpec task;
  task.job = job_.job_id;
  task.application = plan_.pass.application;
  task.document_type = plan_.pass.document_type;
  task.parameters = plan_.pass.parameters;
  task.version = version();
  task.output_namespace = job_.spec.output_namespace.empty() ? "results" : job_.spec.output_namespace;
  task.output_base = job_.output_base;
  task.output_buckets = job_.output_buckets;
  task.run = job_.run;
  task.counts_processors = settings_.cpu_max != 0;
  task.once = !job_.passes_done.empty();
  task.reads_rows = plan_.reads_rows;
  if (plan_.reads_rows) {
    task.columns = plan_.columns_before;
    task.row_selection = plan_.pass.selection;
  }
  return task;
}

TaskSpec CurrentPass::map_task() const {
  TaskSpec task = this->task();
  task.dead_letters_max = static_cast<std::uint32_t>(settings_.dead_letters_max);
  if (job_.shuffle != rpc::Shuffle::Direct) return task;
  task.direct = true;
  task.output_buckets = 1;
  if (job_.spec.incremental && job_.passes_done.empty()) task.incremental = input_selection();
  return task;
}

TaskSpec CurrentPass::reduce_task() const {
  TaskSpec task = this->task();
  task.expected_documents = job_.expected_documents;
  task.puts_rows = puts_rows();
  task.puts_all = is_limited();
  task.puts_results = plan_.is_last && !is_limited();
  task.into = is_limited() ? rpc::RowTarget() : target();
  return task;
}

TaskSpec CurrentPass::put_task() const {
  TaskSpec task = this->task();
  task.puts_rows = puts_rows();
  task.puts_results = plan_.is_last && job_.shuffle == rpc::Shuffle::Store;
  task.into = target();
  return task;
}

std::vector<BucketId> CurrentPass::output_buckets() const {
  return mapreduce::output_buckets(job_.output_base, job_.output_buckets,
                                   environment_.snapshot.get()->distribution_bits());
}

std::string CurrentPass::input_selection() const {
  if (plan_.reads_rows) {
    TaskSpec before = task();
    before.run = job_.pass_run - 1;
    return of_job(before.rows_job(false));
  }
  std::string selection = plan_.reads.type.empty() ? plan_.pass.document_type : of_target(plan_.reads);
  if (!plan_.pass.selection.empty()) selection += " and (" + plan_.pass.selection + ")";
  return selection;
}

std::string CurrentPass::tuples_selection() const { return of_job(task().tuples_job()); }
std::string CurrentPass::rows_selection(bool is_whole) const { return of_job(task().rows_job(is_whole)); }
std::string CurrentPass::target_selection() const { return of_target(target()); }
std::string CurrentPass::clean_up_selection() const {
  return fmt::format("{0}.job == \"{1}\" or {0}.job = \"{1}/*\"", kTuplesType, job_.job_id);
}

std::string CurrentPass::results_selection() const { return fmt::format("{}.job == \"{}\"", kResultType, job_.job_id); }

Status CurrentPass::check_input() const {
  const std::uint64_t failed = job_.dead_letters.size() - job_.dead_letters_before();
  if (failed > 0 && failed == job_.counts.documents_read) {
    return Status(StatusCode::InvalidArgument, fmt::format("map() failed on each of the {} documents, at last with: {}",
                                                           failed, job_.dead_letters.back().error));
  }
  const bool counts_all = plan_.reads_rows || plan_.pass.selection.empty();
  if (job_.passes_done.empty() || !counts_all) return Status::ok();
  const std::uint64_t put = job_.passes_done.back().counts.results;
  if (job_.counts.documents_read == put) return Status::ok();
  return Status(StatusCode::Corruption, fmt::format("pass {} read {} documents, the pass before put {}",
                                                    job_.passes_done.size() + 1, job_.counts.documents_read, put));
}

}  // namespace fjord::mapreduce
