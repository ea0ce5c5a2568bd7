#include "clean_up_phase.h"

#include <utility>

#include "fjord/common/log.h"
#include "job_tasks.h"

namespace fjord::mapreduce {

void CleanUpPhase::start() {
  if (!loads_rows_) return remove();
  parts_.callbacks.load_rows([this, alive = std::weak_ptr<int>(alive_)](Result<JobRows> rows) {
    if (alive.expired()) return;
    parts_.rows.are_there = rows.has_value();
    if (rows) parts_.rows.rows = std::move(*rows);
    remove();
  });
}

void CleanUpPhase::remove() {
  auto options = parts_.tasks.options(kRemoveVisitor);
  options.selection = parts_.pass.clean_up_selection();
  options.ids_only = true;
  options.buckets = parts_.pass.output_buckets();
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_finished = [this](const Status& status) {
    if (!status) {
      log::warning("job", "{}: intermediate documents were left behind: {}", parts_.job.job_id, status.to_string());
    }
    parts_.host.ended();
  };
  parts_.tasks.start(std::move(options), std::move(callbacks));
}

}  // namespace fjord::mapreduce
