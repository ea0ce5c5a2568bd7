#include "completions.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "gil.h"

namespace fjord::python {

CompletionQueue::CompletionQueue() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (fd_ >= 0) return;
  PyErr_SetFromErrno(PyExc_OSError);
  throw nb::python_error();
}

CompletionQueue::~CompletionQueue() { close(fd_); }

void CompletionQueue::push(Completion completion) {
  const std::lock_guard lock(mutex_);
  completions_.push_back(std::move(completion));
  if (completions_.size() > 1) return;  // The loop was woken by the first of them.
  const std::uint64_t one = 1;
  while (write(fd_, &one, sizeof(one)) < 0 && errno == EINTR) continue;
}

std::vector<CompletionQueue::Completion> CompletionQueue::take() {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  while (read(fd_, &count, sizeof(count)) < 0 && errno == EINTR) continue;
  return std::exchange(completions_, {});
}

Completions::Completions(nb::object loop) : create_future_(loop.attr("create_future")) {}

std::pair<std::uint64_t, nb::object> Completions::new_future() {
  nb::object future = create_future_();
  futures_.emplace(++last_token_, future);
  return {last_token_, std::move(future)};
}

namespace {

void finish_future(const nb::object& future, CompletionQueue::Completion& completion) {
  if (nb::cast<bool>(future.attr("done")())) return;  // was cancelled
  try {
    const nb::object result = completion.make();
    future.attr("set_result")(result);
  } catch (nb::python_error& error) {
    future.attr("set_exception")(error.value());
  }
}

}  // namespace

void Completions::drain() {
  for (auto& completion : queue_->take()) {
    const auto at = futures_.find(completion.token);
    if (at == futures_.end()) continue;
    const nb::object future = std::move(at->second);
    futures_.erase(at);
    run_python([&] { finish_future(future, completion); });
  }
}

}  // namespace fjord::python
