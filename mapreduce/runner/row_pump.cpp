#include "row_pump.h"

#include <utility>

#include "fjord/common/retry.h"

namespace fjord::mapreduce {
namespace {

constexpr unsigned kPumpTriesMax = 20;
constexpr Duration kPumpAgain = milliseconds(500);

}  // namespace

std::function<void()> RowPump::if_alive(std::function<void()> then) const {
  return while_alive(guard_.of(*this), [then = std::move(then)](const RowPump&) { then(); });
}

void RowPump::attempt(Next next, unsigned tries, std::function<void()> then) {
  is_running_ = host_.goes_on();
  if (!is_running_) {
    host_.pump_stopped();
    return;
  }
  pump_ = std::make_shared<SinkPump>(
      environment_.records.sink(), environment_.mailbox, environment_.options.writes,
      [this, next](SinkOperation& operation) mutable -> Result<bool> {
        if (!host_.goes_on()) return false;
        if (host_.puts_documents() && !callbacks_.is_owner())
          return Status(StatusCode::NotReady, "the job may have another owner by now");
        return next(operation);
      },
      [this, next, tries, then = std::move(then)](const Status& status) {
        // Deferred: the pump is about to be replaced and must not be on the stack.
        environment_.executor.post(
            if_alive([this, next, tries, then, status] { on_ended(next, tries, then, status); }));
      });
  pump_->start();
}

void RowPump::on_ended(const Next& next, unsigned tries, const std::function<void()>& then, const Status& status) {
  const bool goes_on = host_.goes_on();
  if (goes_on && may_succeed_later(status.code()) && tries < kPumpTriesMax) {
    if (host_.puts_documents()) host_.note_late_writes();
    environment_.executor.post_after(kPumpAgain,
                                     if_alive([this, next, tries, then] { attempt(next, tries + 1, then); }));
    return;
  }
  is_running_ = false;
  if (!goes_on) {
    host_.pump_stopped();
  } else if (!status) {
    host_.failed(status);
  } else {
    then();
  }
}

}  // namespace fjord::mapreduce
