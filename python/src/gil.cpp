#include "gil.h"

#include <unistd.h>

namespace fjord::python {

void sleep_for_ever() {
  while (true) pause();
}

void check_signals() {
  if (run_python(PyErr_CheckSignals) != 0) throw nb::python_error();
  if (!StopRequest::take_for_this_thread()) return;
  const nb::object cancelled = run_python(
      []() -> nb::object { return nb::module_::import_("fjord.errors").attr("Cancelled")("the call was stopped"); });
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(cancelled.ptr())), cancelled.ptr());
  throw nb::python_error();
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
  for (const auto& task : tasks) run_python(std::cref(task));
}

}  // namespace fjord::python
