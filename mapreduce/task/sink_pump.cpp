#include "sink_pump.h"

#include <utility>

namespace fjord::mapreduce {

void SinkPump::fill() {
  while (!exhausted_ && !fills_later_ && outstanding_ < limits_.operations && outstanding_bytes_ <= limits_.bytes) {
    SinkOperation operation;
    const Result<bool> more = next_(operation);
    if (!more) error_ = more.error();
    exhausted_ = !more || !*more;
    if (exhausted_) break;
    if (operation.id.empty() || (turn_is_over_ && turn_is_over_())) fill_later();
    if (operation.id.empty()) return;
    const std::size_t bytes = operation.document ? operation.document->size() : 0;
    ++outstanding_;
    outstanding_bytes_ += bytes;
    auto done = [weak = weak_from_this(), id = operation.id, bytes](const Status& status) {
      if (const auto self = weak.lock()) self->on_done(id, bytes, status);
    };
    if (operation.document) {
      sink_.put(std::move(operation.id), std::move(*operation.document), mailbox_, std::move(done));
    } else {
      sink_.remove(std::move(operation.id), mailbox_, std::move(done));
    }
  }
  if (exhausted_ && outstanding_ == 0 && done_) {
    const auto done = std::exchange(done_, nullptr);
    done(error_);
  }
}

void SinkPump::fill_later() {
  fills_later_ = true;
  mailbox_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->fills_later_ = false;
    self->fill();
  });
}

void SinkPump::on_done(const std::string& id, std::size_t bytes, const Status& status) {
  --outstanding_;
  outstanding_bytes_ -= bytes;
  if (!status && error_) {
    // The client has already retried for its whole timeout. A transient code would make the visitor wait for the
    // bucket, but this is a failure of the task.
    const StatusCode code = is_transient(status.code()) ? StatusCode::Timeout : status.code();
    error_ = Status(code, status.message(), status.details()).with_context("writing " + id);
    exhausted_ = true;
  }
  if (exhausted_ || (outstanding_ <= limits_.operations / 2 && outstanding_bytes_ <= limits_.bytes / 2)) fill();
}

}  // namespace fjord::mapreduce
