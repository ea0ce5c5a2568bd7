#pragma once

#include "phase.h"
#include "task/task.h"

namespace fjord::mapreduce {

/// Reduce through the store: one task per output bucket reads tuple documents and puts results, pages of rows or
/// documents. It always runs from its beginning: outputs are overwritten with the same bytes.
class ReducePhase final : public Phase {
 public:
  explicit ReducePhase(JobParts parts) : parts_(std::move(parts)) {}

  void start() override;

 private:
  Status on_task(const TaskReport& report);
  void on_ended();
  void reduce_nothing();

  JobParts parts_;
  std::uint64_t documents_ = 0;  ///< Tuple documents read.
};

}  // namespace fjord::mapreduce
