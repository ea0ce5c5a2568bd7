#pragma once

#include <coroutine>
#include <exception>

namespace fjord {

/// Result of a coroutine that starts at once and is never awaited. An exception that leaves it ends the process.
struct Detached {
  struct promise_type {
    Detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

}  // namespace fjord
