#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cxxabi.h>
#include <functional>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <optional>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "fjord/library/pending.h"

namespace nb = nanobind;

namespace fjord::python {

// How this module waits. Only threads that Python called take the interpreter lock, never those of the client: a thread
// that wants the lock while the interpreter ends never continues, and the client could not be destroyed.

/// Sleeps until the process ends.
[[noreturn]] void sleep_for_ever();

/// Returns call(), which may run code of Python, and which needs the interpreter lock.
///
/// Code of Python gives the lock away now and then. Before Python 3.14, an interpreter that ends meanwhile unwinds the
/// stack of the thread that wants the lock back. The destructors on that stack would use Python without the lock, so
/// the thread sleeps here until the process ends.
template <typename F>
std::invoke_result_t<F&> run_python(F call) {
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    sleep_for_ever();
  }
}

/// Calls use(item) for each item of an iterator, which may be a generator.
template <typename F>
void for_each(const nb::object& iterator, F use) {
  while (iterator.is_valid()) {
    const nb::object item = run_python([&] { return nb::steal(PyIter_Next(iterator.ptr())); });
    if (!item.is_valid()) break;
    use(nb::handle(item));
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
}

/// Releases the interpreter lock as long as it lives. If the interpreter ends meanwhile, the thread sleeps until the
/// process ends.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    run_python([&] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* const state_;
};

/// A request of another thread to a thread that waits in this module, as a signal is one to the main thread: the wait
/// ends with fjord.Cancelled, once for each request. Threading: any thread.
class StopRequest {
 public:
  void stop() { is_requested_ = true; }
  /// Returns true if there is a request, and forgets it, so that the calls that clean up may wait.
  bool take() { return is_requested_.exchange(false); }

  /// Makes the request count for the calling thread as long as this lives.
  class Scope {
   public:
    explicit Scope(StopRequest& request) : before_(std::exchange(current_, &request)) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { current_ = before_; }

   private:
    StopRequest* const before_;
  };
  /// Returns true if there is a request to the calling thread, and forgets it.
  static bool take_for_this_thread() { return current_ != nullptr && current_->take(); }

 private:
  static inline thread_local StopRequest* current_ = nullptr;
  std::atomic<bool> is_requested_ = false;
};

/// Raises what a signal handler raised meanwhile, such as KeyboardInterrupt, and fjord.Cancelled after a StopRequest.
void check_signals();

/// Something that a thread waits for. Threading: any thread.
class Event {
 public:
  void set();
  bool is_set();
  /// Waits at most `duration`. Returns is_set().
  bool wait(std::chrono::milliseconds duration);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

/// Counts the threads that wait in this module. Threading: the interpreter lock.
class WaitingThread {
 public:
  WaitingThread() { ++count_; }
  WaitingThread(const WaitingThread&) = delete;
  WaitingThread& operator=(const WaitingThread&) = delete;
  ~WaitingThread() { --count_; }
  static int count() { return count_; }

 private:
  static inline int count_ = 0;
};

/// How long a wait lasts before it looks whether a signal came.
inline constexpr std::chrono::milliseconds kSignalInterval{50};

/// Waits for `event` without the interpreter lock. `check` is called every kSignalInterval with the lock; what it
/// throws ends the wait.
template <typename Check>
void wait_for_event(Event& event, Check check) {
  const WaitingThread counted;
  while (true) {
    bool is_set = false;
    {
      const Unlocked unlocked;
      is_set = event.wait(kSignalInterval);
    }
    if (is_set) return;
    check_signals();
    check();
  }
}

/// Waits for the result of an operation without the interpreter lock. Raises what signal handlers raise, and what
/// `check` throws, for example because the client was closed. The operation goes on then.
template <typename T, typename Check>
T wait_for(Pending<T> pending, Check check) {
  if (pending.is_ready()) return std::move(pending).wait();
  struct State {
    Event event;
    std::optional<T> value;
  };
  auto state = std::make_shared<State>();
  std::move(pending).then([state](T value) {
    state->value.emplace(std::move(value));
    state->event.set();
  });
  wait_for_event(state->event, check);
  return std::move(*state->value);
}

/// Tasks for the thread that waits in call_blocking(), which runs them with the interpreter lock: reports of progress.
/// Threading: post() any thread.
class Mailbox {
 public:
  void post(std::function<void()> task);
  /// Waits until the task has run. Returns false if it will not, because the waiting thread has given up.
  bool call(std::function<void()> task);
  /// Runs what was posted. Needs the interpreter lock; throws what the tasks throw.
  void run();
  /// Drops all tasks, also those that come later.
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> tasks_;
  bool is_closed_ = false;
};

/// How a call may be ended, and what it says meanwhile.
struct BlockingOptions {
  std::stop_source* stop = nullptr;
  std::shared_ptr<Mailbox> mailbox = nullptr;
};

/// How long a call that was stopped may take to end: writes in flight at nodes that do not answer would take longer.
inline constexpr std::chrono::seconds kStopTimeout{1};

/// Runs `call`, which may block and uses nothing of Python, on a thread of its own and waits for its result without the
/// interpreter lock. `check` is called as in wait_for_event(). After a signal, and if `check` or a task of the mailbox
/// throws, a stop is requested and the call is waited for, at most kStopTimeout, before the exception goes on. After
/// that, and without `stop`, the call is left alone and ends by itself; so it owns all that it uses.
template <typename F, typename Check>
auto call_blocking(F call, Check check, const BlockingOptions& options = {}) {
  using R = std::invoke_result_t<F>;
  struct State {
    explicit State(F f) : call(std::move(f)) {}
    F call;
    Event event;
    std::optional<R> result;
  };
  auto state = std::make_shared<State>(std::move(call));
  std::thread([state] {
    {
      F local = std::move(state->call);
      state->result.emplace(local());
    }
    state->event.set();
  }).detach();
  try {
    wait_for_event(state->event, [&] {
      check();
      if (options.mailbox != nullptr) options.mailbox->run();
    });
    if (options.mailbox != nullptr) options.mailbox->run();
  } catch (...) {
    if (options.mailbox != nullptr) options.mailbox->close();
    if (options.stop != nullptr) {
      options.stop->request_stop();
      const Unlocked unlocked;
      state->event.wait(kStopTimeout);
    }
    throw;
  }
  return std::move(*state->result);
}

}  // namespace fjord::python
