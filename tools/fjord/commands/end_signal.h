#pragma once

#include <functional>
#include <memory>

namespace fjord::cli {

/// Handles SIGINT and SIGTERM for a command with work to finish: the first signal calls a function, the second one ends
/// the process at once. Without a function the first signal ends the process, too. After work_is_done() and after the
/// destructor the first signal has no effect, as the command ends in a moment and its exit code is known.
///
/// Threading: created and used on the main thread; created before any other thread starts. The function runs on a
/// thread of this object.
class EndSignal {
 public:
  EndSignal();
  ~EndSignal();
  EndSignal(const EndSignal&) = delete;
  EndSignal& operator=(const EndSignal&) = delete;

  /// Replaces the function; null removes it. The previous function is not called after this call has returned.
  void call(std::function<void()> on_signal);
  /// Replaces the function by one that does nothing: from here on results are only saved and printed.
  void work_is_done() {
    call([] {});
  }
  /// Returns the name of the received signal; null without one.
  const char* name() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fjord::cli
