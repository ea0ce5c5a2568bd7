#include "commands/end_signal.h"

#include <csignal>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "fjord/common/thread_annotations.h"

namespace fjord::cli {

struct EndSignal::State {
  std::mutex mutex;
  std::function<void()> on_signal FJORD_GUARDED_BY(mutex);
  int signal FJORD_GUARDED_BY(mutex) = 0;

  void take(int number) {
    const std::lock_guard lock(mutex);
    constexpr int kExitOfSignal = 128;  // A shell reports a process that signal n ended as status 128 + n.
    if (signal != 0 || on_signal == nullptr) ::_exit(kExitOfSignal + number);
    signal = number;
    on_signal();
  }
};

EndSignal::EndSignal() : state_(std::make_shared<State>()) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([state = state_, signals] {
    for (;;) {
      int signal = 0;
      if (sigwait(&signals, &signal) == 0) state->take(signal);
    }
  }).detach();
}

EndSignal::~EndSignal() { work_is_done(); }

void EndSignal::call(std::function<void()> on_signal) {
  const std::lock_guard lock(state_->mutex);
  state_->on_signal = std::move(on_signal);
}

const char* EndSignal::name() const {
  const std::lock_guard lock(state_->mutex);
  return state_->signal == 0 ? nullptr : state_->signal == SIGINT ? "SIGINT" : "SIGTERM";
}

}  // namespace fjord::cli
