#pragma once

#include <functional>
#include <memory>

namespace fjord::cli {

/// SIGINT and SIGTERM for a command that has something to finish: the first one calls a function, another one ends the
/// process at once. While no function is set, the first one does that, too.
///
/// Threading: made and used on the main thread, before any other thread is made; the function is called on a thread of
/// this object.
class EndSignal {
 public:
  EndSignal();
  ~EndSignal();
  EndSignal(const EndSignal&) = delete;
  EndSignal& operator=(const EndSignal&) = delete;

  /// Replaces the function; null: none. When it has returned, the one before is not called any more.
  void call(std::function<void()> on_signal);
  /// The name of the signal that has come; null: none has.
  const char* name() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fjord::cli
