#include "sink_pump.h"

#include <utility>

namespace fjord::mapreduce {

void SinkPump::fill() {
  while (!exhausted_ && !fills_later_ && outstanding_ < outstanding_max_) {
    SinkOperation operation;
    const Result<bool> more = next_(operation);
    if (!more) error_ = more.error();
    exhausted_ = !more || !*more;
    if (exhausted_) break;
    if (operation.id.empty() || (turn_is_over_ && turn_is_over_())) fill_later();
    if (operation.id.empty()) return;
    ++outstanding_;
    std::string id = operation.id;
    auto done = [weak = weak_from_this(), id = std::move(id)](const Status& status) {
      if (const auto self = weak.lock()) self->on_done(id, status);
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

void SinkPump::on_done(const std::string& id, const Status& status) {
  --outstanding_;
  if (!status && error_) {
    // The client has already retried for its whole timeout. A transient code would make the visitor wait for the
    // bucket, but this is a failure of the task.
    const StatusCode code = is_transient(status.code()) ? StatusCode::Timeout : status.code();
    error_ = Status(code, status.message(), status.details()).with_context("writing " + id);
    exhausted_ = true;
  }
  fill();
}

}  // namespace fjord::mapreduce
