#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "context.h"
#include "fjord/library/detail/job_calls.h"

namespace fjord::gateway {

/// Results of ended jobs, which clients read in pages. It reads the results of one job at a time, and keeps those used
/// last for the next page. Threading: the executor of the context.
class ResultStore {
 public:
  using Rows = std::vector<mapreduce::KeyedResult>;
  /// Puts results in order. Runs on a worker.
  using Arrange = std::function<Status(Rows&)>;
  /// Errors: those of read_results(), of which TooLarge means more than the setting allows; those of Arrange.
  using Done = std::function<void(Result<std::shared_ptr<const Rows>>)>;

  ResultStore(Context& context, const Tunable& bytes_max) : context_(context), bytes_max_(bytes_max) {}

  /// Gets the results of a job that is done. `key` identifies the results and the way in which they are arranged.
  void get(const std::string& key, rpc::JobStatus job, Arrange arrange, Done done);
  /// Forgets results that no client has asked for lately.
  void end_idle();
  const Tunable& bytes_max() const { return bytes_max_; }

 private:
  struct Kept {
    std::string key;
    std::shared_ptr<const Rows> rows;
    std::int64_t bytes = 0;
    MonotonicTime used;
  };
  struct Read {
    std::string key;
    rpc::JobStatus job;
    Arrange arrange;
    Done done;
  };

  bool give_kept(const std::string& key, const Done& done);
  void read_next();
  void on_read(const Read& read, Result<Rows> rows);

  Context& context_;
  const Tunable& bytes_max_;
  std::deque<Kept> kept_;  ///< Last used results first.
  std::deque<Read> waiting_;
  bool is_reading_ = false;
};

}  // namespace fjord::gateway
