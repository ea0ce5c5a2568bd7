#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace fjord {

/// Runs pure computations whose result does not depend on order.
/// Threading: for_each can be called from any thread and returns when all calls are done.
class BulkExecutor {
 public:
  virtual ~BulkExecutor() = default;
  /// Calls `body(i)` once for each i in [0, count), possibly on several threads at once.
  virtual void for_each(std::size_t count, const std::function<void(std::size_t)>& body) = 0;
};

/// Makes an executor that uses oneTBB's threads.
std::unique_ptr<BulkExecutor> make_tbb_bulk_executor();
/// Makes an executor that runs on the calling thread, in ascending order.
std::unique_ptr<BulkExecutor> make_inline_bulk_executor();

}  // namespace fjord
