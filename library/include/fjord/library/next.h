#pragma once

#include <coroutine>
#include <memory>
#include <utility>

#include "fjord/common/status.h"
#include "fjord/library/pending.h"

namespace fjord {

/// The next value of a visit or a subscription. Take it in one of two ways:
///
///     const Document* document = visit.next();           // waits
///     const Document* document = co_await visit.next();  // resumes the coroutine
///
/// Both return null at the end of the source. Nothing is taken from the source before that.
///
/// `Source` has try_next(), is_over() and ready(), and for this class the private member wait_next().
///
/// Threading: a coroutine continues on the client's own thread, or in ClientSettings::executor, or at once if a value
/// is there. It may destroy the source there. If the source is destroyed while the coroutine waits, the coroutine gets
/// null first, on the client's own thread. A coroutine that waits may be destroyed, too: where it would continue, or
/// after stop().
template <typename Source, typename T>
class [[nodiscard]] Next {
 public:
  explicit Next(Source& source) : source_(&source) {}
  Next(const Next&) = delete;
  Next& operator=(const Next&) = delete;
  ~Next() {
    if (wait_ != nullptr) wait_->next = nullptr;
  }

  /// Waits for the value.
  operator const T*() && { return source_->wait_next(); }  // NOLINT: a blocking call reads like a function

  bool await_ready() {
    value_ = source_->try_next();
    return value_ != nullptr || source_->is_over();
  }
  /// Returns false if the coroutine goes on at once.
  bool await_suspend(std::coroutine_handle<> waiting) {
    Pending<Status> ready = source_->ready();
    while (ready.is_ready()) {
      if (!std::move(ready).wait() || await_ready()) return false;
      ready = source_->ready();
    }
    wait_ = std::make_shared<Wait>(Wait{this, waiting});
    call_back(std::move(ready), wait_);
    return true;
  }
  const T* await_resume() const { return value_; }

 private:
  /// The state of a waiting coroutine, which this object and the callback share.
  struct Wait {
    Next* next;  ///< Null: the coroutine was destroyed.
    std::coroutine_handle<> waiting;
  };

  static void call_back(Pending<Status> ready, const std::shared_ptr<Wait>& wait) {
    std::move(ready).then([wait](const Status& status) {
      if (wait->next == nullptr) return;
      // With an error status the source no longer exists.
      if (status && !wait->next->await_ready()) return call_back(wait->next->source_->ready(), wait);
      wait->waiting.resume();
    });
  }

  Source* source_;
  const T* value_ = nullptr;
  std::shared_ptr<Wait> wait_;
};

}  // namespace fjord
