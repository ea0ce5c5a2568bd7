#include "workers.h"

#include <string>
#include <utility>

namespace fjord::gateway {
namespace {

constexpr std::size_t kThreadsMax = 4;

}  // namespace

Workers::~Workers() {
  for (auto& thread : threads_) end_executor(thread);
}

void Workers::run(Task task) {
  if (free_.empty() && threads_.size() < kThreadsMax) {
    free_.push_back(threads_.size());
    threads_.push_back(scheduler_.make_interactive_executor("gateway-" + std::to_string(threads_.size())));
  }
  if (free_.empty()) {
    waiting_.push_back(std::move(task));
    return;
  }
  const std::size_t worker = free_.back();
  free_.pop_back();
  start(worker, std::move(task));
}

void Workers::start(std::size_t worker, Task task) {
  threads_[worker]->post([this, worker, task = std::move(task)]() mutable {
    task();
    task = {};  // Destroys what the task holds here, and not on the executor of the inbox.
    inbox_->post([this, worker] { on_done(worker); });
  });
}

void Workers::on_done(std::size_t worker) {
  if (waiting_.empty()) {
    free_.push_back(worker);
    return;
  }
  Task next = std::move(waiting_.front());
  waiting_.pop_front();
  start(worker, std::move(next));
}

}  // namespace fjord::gateway
