#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "background_job.h"
#include "file_cache.h"
#include "fjord/common/env.h"
#include "fjord/common/log.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "part_buffer.h"
#include "read_window.h"

namespace fjord::slotfile {

/// Mapped parts of at least this size are requested from the system as a whole before they are read. Otherwise the read
/// would wait for each page separately.
inline constexpr std::uint64_t kLargePartBytes = 32 << 10;

/// Estimates whether small documents currently come from the medium or from memory. Checking each read would cost as
/// much as the read of a document in memory. So only a sample is checked as long as all checked reads come from memory.
class ColdReads {
 public:
  /// Returns true if the next read is to be checked and its result passed to note().
  bool is_sample() {
    if (left_ != 0) --left_;
    ++stands_for_;
    return left_ == 0;
  }
  /// Returns the number of reads for which the current sample stands, including itself.
  unsigned weight() const { return stands_for_; }
  void note(bool resident) {
    stands_for_ = 0;
    resident_ = resident ? resident_ + 1 : 0;
    left_ = resident_ > kInARow ? kBetweenSamples : 0;
  }

 private:
  static constexpr unsigned kBetweenSamples = 32;
  static constexpr unsigned kInARow = 16;
  unsigned left_ = 0;
  unsigned resident_ = 0;  ///< Number of successive samples that were in memory.
  unsigned stands_for_ = 0;
};

/// Measures the time since its construction. The engine may have no clock; the time is 0 then.
class Stopwatch {
 public:
  explicit Stopwatch(const Clock* clock) : clock_(clock) {
    if (clock_ != nullptr) begin_ = clock_->now();
  }
  /// Returns the microseconds since construction; 0 without a clock.
  std::uint64_t us() const {
    return clock_ == nullptr ? 0 : static_cast<std::uint64_t>((clock_->now() - begin_).count());
  }

 private:
  const Clock* const clock_;
  MonotonicTime begin_;
};

/// State shared by the parts of one engine.
struct EngineContext {
  EngineContext(Env& environment, const SlotfileOptions& slotfile_options)
      : env(environment), options(slotfile_options), files(environment, slotfile_options.open_files_max) {}
  ~EngineContext() {
    for (const auto& chore : chores_) chore->join();
  }

  std::string path(const std::string& name) const { return options.directory + "/" + name; }

  /// Starts the writing of cached data to the device in the background, because the call itself may wait for the
  /// device.
  void start_writeback(std::shared_ptr<RandomAccessFile> file) {
    do_later([file = std::move(file)] { file->start_writeback(); });
  }
  /// Removes a file in the background, because removing a large file takes time. If this fails, the next start removes
  /// it.
  void remove_file(const std::string& file_path) {
    do_later([this, file_path] {
      const Status status = env.remove_file(file_path);
      if (!status && status.code() != StatusCode::NotFound) log::warning("slotfile", "{}", status.to_string());
    });
  }

  Env& env;
  SlotfileOptions options;
  FileCache files;
  SlotfileStats stats;
  MonotonicTime now;               ///< Time of the last maintain().
  std::uint64_t index_serial = 0;  ///< Serial number of the index that was made last.
  /// Rises whenever a part of any index may have been changed, moved or removed.
  std::uint64_t changes = 0;
  /// True if a slot became suspect, or a bucket may be renewed, since the last search for slots to renew found none.
  bool may_renew = false;
  ColdReads cold_reads;
  /// Buffer that is reused for each run, part and copy.
  std::string scratch;
  std::string part_buffers[2];  ///< The header and the body that were read last.
  ReadWindow metadata_window;
  ChunkPool chunks;  ///< Memory for held runs.
  /// ReadWindow buffers for the next iterator. Reusing them pays, because fresh pages from the system cost as much as
  /// reading into them.
  std::vector<std::unique_ptr<char[]>> window_buffers;

 private:
  /// Runs `what` on the background executor. The destructor waits for all such work.
  void do_later(std::function<void()> what) {
    while (!chores_.empty() && chores_.front()->is_done()) chores_.pop_front();
    chores_.push_back(BackgroundJob::start(options.background, [what = std::move(what)] {
      what();
      return Status::ok();
    }));
  }

  std::deque<std::shared_ptr<BackgroundJob>> chores_;
};

/// Returns the error of a call that names a bucket which the store does not have.
inline Status no_bucket(BucketId bucket) { return {StatusCode::NotFound, bucket.to_string() + " is not here"}; }

}  // namespace fjord::slotfile
