#pragma once

#include <memory>
#include <utility>

#include "fjord/common/callback_guard.h"
#include "phase.h"

namespace fjord::mapreduce {

/// Removes the tuple documents of all runs and passes. An error does not fail the job, which has ended otherwise.
class CleanUpPhase final : public Phase {
 public:
  /// `loads_rows`: this process has taken the job over; it first reads the results beside the record, so that it can
  /// return them.
  CleanUpPhase(JobParts parts, bool loads_rows) : parts_(std::move(parts)), loads_rows_(loads_rows) {}

  void start() override;
  bool is_pausable() const override { return false; }

 private:
  void remove();

  JobParts parts_;
  bool loads_rows_;
  CallbackGuard guard_;
};

/// Removes the tuple documents, pages and results of a job that will put them elsewhere. An error fails the job:
/// results that were not removed would exist twice.
class MoveOutputPhase final : public Phase {
 public:
  explicit MoveOutputPhase(JobParts parts) : parts_(std::move(parts)) {}

  void start() override;

 private:
  JobParts parts_;
  bool are_tuples_removed_ = false;
};

}  // namespace fjord::mapreduce
