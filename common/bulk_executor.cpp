#include "fjord/common/bulk_executor.h"

#include <atomic>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <thread>

namespace fjord {

namespace {

#if defined(__SANITIZE_THREAD__)

/// The thread sanitizer does not see how threads of oneTBB wait for each other: Debian's library is built without it.
/// So a build with the sanitizer, which is for tests only, uses threads whose joins it sees. It then reports races of
/// bodies.
class TbbBulkExecutor final : public BulkExecutor {
 public:
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body) override {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      while (true) {
        const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) return;
        body(i);
      }
    };
    const std::jthread other(work);
    work();
  }
};

#else

class TbbBulkExecutor final : public BulkExecutor {
 public:
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body) override {
    // Isolation keeps a thread that waits here from running tasks of an outer loop meanwhile.
    tbb::this_task_arena::isolate([&] { tbb::parallel_for(std::size_t{0}, count, body); });
  }
};

#endif

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
