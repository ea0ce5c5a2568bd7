#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fjord/client/connect.h"
#include "fjord/client/feeder.h"
#include "progress.h"
#include "visit_run.h"

namespace fjord::cli {

struct BulkRunOptions {
  visitors::VisitorSessionOptions visit;  ///< Its selection is also the condition of each write.
  /// The write for a document that matched. Its condition and token are set here.
  std::function<rpc::Operation(const std::string& id)> make;
  std::string kind;  ///< Of the operation and all that it consists of, for the progress file.
  std::string progress_file;
  std::string resume_file;
  std::size_t in_flight = 0;  ///< 0: the feeder's default.
  Duration timeout{0};        ///< Of one write.
  std::uint64_t errors_shown = 20;
  Progress::When progress = Progress::When::Auto;
};

/// What became of the documents that matched.
struct BulkResult {
  std::uint64_t matched = 0;
  std::uint64_t applied = 0;
  std::uint64_t skipped =
      0;  ///< They had changed meanwhile, so that the selection did not hold any more, or were gone.
  std::uint64_t in_doubt = 0;
  std::map<StatusCode, std::uint64_t> failed;
  double seconds = 0;

  std::uint64_t failed_total() const;
  std::string to_json() const;
};

/// Writes to every document that a selection matches, while others write too.
///
/// Each write has the selection as its condition and the name of the run as its token. So it is done only to a document
/// that matches at that moment, and at most once in a run, however often the run is interrupted and resumed. A bucket
/// counts as done when all its writes have ended well.
///
/// Threading: as VisitRun.
class BulkRun {
 public:
  BulkRun(Connection& connection, BulkRunOptions options);
  ~BulkRun();

  /// Errors: of the visit, and of the progress file. What single documents met is in result().
  Status run();
  const BulkResult& result() const { return result_; }

 private:
  struct Pending {
    std::size_t writes = 0;
    bool visited = false;
    bool spoilt = false;  ///< A write of it did not end well.
  };

  Status load();
  Status save(bool at_once);
  Status take(BucketId bucket, const std::string& docblock);
  void pump();
  void on_result(std::uint64_t tag, const OperationOutcome& outcome);
  void settle(BucketId bucket);
  void note_failure(const std::string& id, const Status& status);

  Connection& connection_;
  BulkRunOptions options_;
  std::string run_name_;
  visitors::VisitToken token_;
  std::unique_ptr<VisitRun> visit_;
  std::unique_ptr<Feeder> feeder_;
  struct Write {
    std::string id;
    BucketId bucket;
  };
  std::deque<Write> waiting_;
  std::map<std::uint64_t, Write> under_way_;
  std::uint64_t next_tag_ = 1;
  std::map<BucketId, Pending> buckets_;
  bool paused_ = false;
  std::uint64_t errors_ = 0;
  MonotonicTime next_save_{};
  Progress progress_;
  BulkResult result_;
};

}  // namespace fjord::cli
