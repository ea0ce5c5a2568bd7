#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace fjord {

/// Pure computation whose result does not depend on order.
/// Threading: for_each may be called from any thread and returns when all of it is done.
class BulkExecutor {
 public:
  virtual ~BulkExecutor() = default;
  /// Calls `body(i)` once for each i in [0, count), possibly on several threads at once.
  virtual void for_each(std::size_t count, const std::function<void(std::size_t)>& body) = 0;
};

/// On oneTBB's threads.
std::unique_ptr<BulkExecutor> make_tbb_bulk_executor();
/// On the calling thread, in rising order.
std::unique_ptr<BulkExecutor> make_inline_bulk_executor();

}  // namespace fjord
