#pragma once

#include <memory>
#include <utility>

#include "fjord/common/status.h"
#include "fjord/library/pending.h"

namespace fjord {

/// Sets the state when called. Sets it to Cancelled if destroyed without a call.
template <typename T>
class PendingWriter {
 public:
  explicit PendingWriter(std::shared_ptr<detail::PendingState<T>> state) : state_(std::move(state)) {}
  PendingWriter(PendingWriter&&) noexcept = default;
  PendingWriter& operator=(PendingWriter&&) = delete;
  ~PendingWriter() {
    if (state_ == nullptr) return;
    T dropped{};
    dropped.status = Status(StatusCode::Cancelled, "the client was closed");
    state_->set(std::move(dropped));
  }
  void operator()(T value) { std::exchange(state_, nullptr)->set(std::move(value)); }

 private:
  std::shared_ptr<detail::PendingState<T>> state_;
};

template <typename T>
Pending<T> failed(const Status& status) {
  auto state = std::make_shared<detail::PendingState<T>>(nullptr);
  T value{};
  value.status = status;
  state->set(std::move(value));
  return Pending<T>(std::move(state));
}

}  // namespace fjord
