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

/// A mapped part of this size and more is asked for as a whole before it is touched: page by page it would wait for
/// each of them.
inline constexpr std::uint64_t kLargePartBytes = 32 << 10;

/// Whether small documents come from the medium at the moment. To ask that of each would cost as much as reading one
/// that is in memory, so some are asked as long as they all are.
class ColdReads {
 public:
  /// True if the next one is to be asked, by note().
  bool is_sample() {
    if (left_ != 0) --left_;
    ++stands_for_;
    return left_ == 0;
  }
  /// For so many reads the one that is asked now speaks, itself included.
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
  unsigned resident_ = 0;  ///< That many in a row were in memory.
  unsigned stands_for_ = 0;
};

/// Time between two moments, of an engine that may have no clock.
class Stopwatch {
 public:
  explicit Stopwatch(const Clock* clock) : clock_(clock) {
    if (clock_ != nullptr) begin_ = clock_->now();
  }
  /// Since it was made; 0 without a clock.
  std::uint64_t us() const {
    return clock_ == nullptr ? 0 : static_cast<std::uint64_t>((clock_->now() - begin_).count());
  }

 private:
  const Clock* const clock_;
  MonotonicTime begin_;
};

/// What the parts of one engine share.
struct EngineContext {
  EngineContext(Env& environment, const SlotfileOptions& slotfile_options)
      : env(environment), options(slotfile_options), files(environment, slotfile_options.open_files_max) {}
  ~EngineContext() {
    for (const auto& chore : chores_) chore->join();
  }

  std::string path(const std::string& name) const { return options.directory + "/" + name; }

  /// Has the system begin with writing to the device. The call itself may wait for the device.
  void start_writeback(std::shared_ptr<RandomAccessFile> file) {
    do_later([file = std::move(file)] { file->start_writeback(); });
  }
  /// Removing a large file takes the system some time. What cannot be removed now is removed at the next start.
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
  std::uint64_t index_serial = 0;  ///< Of the index that was made last.
  /// Another one whenever anything that was in an index may have changed, moved or gone.
  std::uint64_t changes = 0;
  ColdReads cold_reads;
  /// Buffers that are used again for each run, part and copy.
  std::string scratch;
  std::string part_buffers[2];  ///< Of what was read last: header and body.
  ReadWindow metadata_window;
  ChunkPool chunks;  ///< Of the held runs.
  /// Of ReadWindow, for the next iterator: fresh pages from the system cost as much as reading into them.
  std::vector<std::unique_ptr<char[]>> window_buffers;

 private:
  /// On the executor of the background. All is done when the engine is closed.
  void do_later(std::function<void()> what) {
    while (!chores_.empty() && chores_.front()->is_done()) chores_.pop_front();
    chores_.push_back(BackgroundJob::start(options.background, [what = std::move(what)] {
      what();
      return Status::ok();
    }));
  }

  std::deque<std::shared_ptr<BackgroundJob>> chores_;
};

}  // namespace fjord::slotfile
