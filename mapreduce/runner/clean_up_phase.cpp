#include "clean_up_phase.h"

#include <utility>

#include "fjord/common/log.h"
#include "job_tasks.h"

namespace fjord::mapreduce {
namespace {

visitors::VisitorSessionOptions removal_of(const JobParts& parts, std::string selection) {
  auto options = parts.tasks.options(kRemoveVisitor);
  options.selection = std::move(selection);
  options.ids_only = true;
  options.buckets = parts.pass.output_buckets();
  return options;
}

}  // namespace

void CleanUpPhase::start() {
  if (!loads_rows_) return remove();
  parts_.callbacks.load_rows(while_alive(guard_.of(*this), [](CleanUpPhase& self, Result<JobRows> rows) {
    self.parts_.rows.are_there = rows.has_value();
    if (rows) self.parts_.rows.rows = std::move(*rows);
    self.remove();
  }));
}

void CleanUpPhase::remove() {
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_finished = [this](const Status& status) {
    if (!status) {
      log::warning("job", "{}: intermediate documents were left behind: {}", parts_.job.job_id, status.to_string());
    }
    parts_.host.ended();
  };
  parts_.tasks.start(removal_of(parts_, parts_.pass.clean_up_selection()), std::move(callbacks));
}

void MoveOutputPhase::start() {
  auto options =
      removal_of(parts_, are_tuples_removed_ ? parts_.pass.results_selection() : parts_.pass.clean_up_selection());
  if (are_tuples_removed_) options.parameters = {{"type", kResultType}};
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_finished = [this](const Status& status) {
    if (!status) return parts_.host.failed(status);
    const bool is_done = std::exchange(are_tuples_removed_, true);
    is_done ? parts_.host.ended() : parts_.host.continue_later();
  };
  parts_.tasks.start(std::move(options), std::move(callbacks));
}

}  // namespace fjord::mapreduce
