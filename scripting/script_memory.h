#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "fjord/common/result.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/common/tunable.h"

namespace fjord::scripting {

/// The memory that the scripts of this process may have together, and with it their number.
///
/// Threading: any thread. Lifetime: `limit` outlives it; shared by the scripts.
class ScriptMemory : public std::enable_shared_from_this<ScriptMemory> {
 public:
  /// The share of one script, which goes back when this object ends.
  class Share {
   public:
    Share(std::shared_ptr<ScriptMemory> of, std::uint64_t bytes) : of_(std::move(of)), bytes_(bytes) {}
    ~Share() { of_->give_back(bytes_); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    std::shared_ptr<ScriptMemory> of_;
    std::uint64_t bytes_;
  };

  /// `limit`: bytes; null: no limit.
  explicit ScriptMemory(const Tunable* limit) : limit_(limit) {}

  /// Errors: InvalidArgument if a script with this memory would not fit alone.
  Status check(std::int64_t memory_mb) const;
  /// Returns the share of a script. Errors: Busy if it does not fit beside those that run.
  Result<std::unique_ptr<Share>> take(std::int64_t memory_mb);

 private:
  void give_back(std::uint64_t bytes);

  const Tunable* const limit_;
  std::mutex mutex_;
  std::uint64_t taken_ FJORD_GUARDED_BY(mutex_) = 0;
};

}  // namespace fjord::scripting
