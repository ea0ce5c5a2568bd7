#include "job_table.h"

#include <algorithm>

namespace fjord::mapreduce {

LocalJob* JobTable::find(const std::string& id) {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : &it->second;
}

LocalJob* JobTable::find(const std::string& id, std::uint64_t number) {
  LocalJob* job = find(id);
  return job == nullptr || job->number != number ? nullptr : job;
}

LocalJob& JobTable::add(JobState state) {
  LocalJob& job = jobs_[state.job_id];
  job.number = next_number_++;
  job.state = std::move(state);
  job.state.epoch = std::max<std::uint64_t>(1, job.state.epoch);
  return job;
}

JobTable::Jobs::node_type JobTable::extract(const std::string& id) {
  auto node = jobs_.extract(id);
  if (node.empty()) return node;
  std::erase(ended_, id);
  forget_rows(node.mapped());
  return node;
}

std::size_t JobTable::running() const {
  return static_cast<std::size_t>(std::count_if(jobs_.begin(), jobs_.end(), [](const auto& one) {
    return one.second.runner != nullptr && !one.second.runner->is_paused();
  }));
}

void JobTable::keep_rows(LocalJob& job, JobRows rows) {
  job.rows = std::move(rows);
  job.has_rows = true;
  job.row_bytes = job.rows.bytes();
  rows_bytes_ += job.row_bytes;
  for (const std::string& id : ended_) {
    if (rows_bytes_ <= options_.results_kept_bytes) break;
    forget_rows(jobs_.at(id));
  }
}

void JobTable::forget_rows(LocalJob& job) {
  rows_bytes_ -= std::exchange(job.row_bytes, 0);
  job.rows = {};
  job.has_rows = false;
}

void JobTable::forget_oldest() {
  if (ended_.size() <= options_.finished_kept) return;
  extract(std::string(ended_.front()));
}

}  // namespace fjord::mapreduce
