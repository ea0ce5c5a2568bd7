#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "fjord/common/callback_guard.h"
#include "fjord/visitors/visitor_session.h"
#include "phase.h"
#include "task/task.h"

namespace fjord::mapreduce {

/// Map with the direct shuffle: tasks send tuples, which JobParts::groups counts.
class DirectMapPhase final : public Phase {
 public:
  explicit DirectMapPhase(JobParts parts);

  void start() override;
  void stop() override;

 private:
  void on_received(const Status& status);
  void on_ended();
  void add_lost();

  JobParts parts_;
  std::optional<visitors::SessionCursor> resume_;
  std::optional<std::vector<BucketId>> buckets_;  ///< The buckets to read in this round; absent: all.
  std::vector<BucketId> lost_;                    ///< Buckets that must be read again.
  /// Times of the job when the phase began.
  const std::uint64_t busy_before_us_;
  const std::uint64_t processor_before_us_;
};

/// Reduce with the direct shuffle, in the runner's process.
class DirectReducePhase final : public Phase {
 public:
  explicit DirectReducePhase(JobParts parts) : parts_(std::move(parts)) {}
  ~DirectReducePhase() override { reduction_.request_stop(); }

  void start() override;
  void stop() override { reduction_.request_stop(); }
  bool is_pausable() const override { return false; }

 private:
  void reduce_elsewhere();
  void on_reduced(Result<JobRows> rows);

  JobParts parts_;
  std::stop_source reduction_;  ///< Stops the reduction that runs on another thread.
  CallbackGuard guard_;
};

}  // namespace fjord::mapreduce
