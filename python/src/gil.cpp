#include "gil.h"

#include <unistd.h>

namespace fjord::python {

namespace {

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

}  // namespace

Unlocked::Unlocked() : is_ending_(is_finalizing()), state_(PyEval_SaveThread()) {}

Unlocked::~Unlocked() {
  // The interpreter would end the thread in a way that C++ takes for an unknown exception, and that ends the process.
  while (!is_ending_ && is_finalizing()) pause();
  PyEval_RestoreThread(state_);
}

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void Event::set() {
  const std::lock_guard lock(mutex_);
  is_set_ = true;
  changed_.notify_all();
}

bool Event::is_set() {
  const std::lock_guard lock(mutex_);
  return is_set_;
}

bool Event::wait(std::chrono::milliseconds duration) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, duration, [this] { return is_set_; });
}

void Mailbox::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) tasks_.push_back(std::move(task));
}

bool Mailbox::call(std::function<void()> task) {
  const auto has_run = std::make_shared<bool>(false);
  std::unique_lock lock(mutex_);
  if (is_closed_) return false;
  tasks_.push_back([this, task = std::move(task), has_run] {
    task();
    const std::lock_guard again(mutex_);
    *has_run = true;
    changed_.notify_all();
  });
  changed_.wait(lock, [&] { return *has_run || is_closed_; });
  return *has_run;
}

void Mailbox::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  tasks_.clear();
  changed_.notify_all();
}

void Mailbox::run() {
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const auto& task : tasks) task();
}

}  // namespace fjord::python
