#include "fjord/common/bulk_executor.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

namespace fjord {

namespace {

class TbbBulkExecutor final : public BulkExecutor {
 public:
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body) override {
    // Isolation keeps a thread that waits here from running tasks of an outer loop meanwhile.
    tbb::this_task_arena::isolate([&] { tbb::parallel_for(std::size_t{0}, count, body); });
  }
};

class InlineBulkExecutor final : public BulkExecutor {
 public:
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body) override {
    for (std::size_t i = 0; i < count; ++i) body(i);
  }
};

}  // namespace

std::unique_ptr<BulkExecutor> make_tbb_bulk_executor() { return std::make_unique<TbbBulkExecutor>(); }
std::unique_ptr<BulkExecutor> make_inline_bulk_executor() { return std::make_unique<InlineBulkExecutor>(); }

}  // namespace fjord
