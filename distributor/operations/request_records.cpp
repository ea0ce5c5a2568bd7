#include "request_records.h"

#include <algorithm>

#include "fjord/common/retry.h"

namespace fjord::distributor {
namespace {

// A client that has sent no message for this time cannot have duplicates of its operations in flight.
constexpr Duration kForgetClientAfter = seconds(600);
// Time in which a client may repeat a write in doubt. Clients repeat at once, or when an attempt has timed out.
constexpr Duration kRepeatWithin = seconds(10);

}  // namespace

void RequestRecords::advance(std::uint64_t client, std::uint64_t first_unsettled, MonotonicTime now) {
  if (client == 0) return;
  windows_.advance(client, first_unsettled, now);
  if (now - last_forget_ <= kForgetClientAfter) return;
  last_forget_ = now;
  windows_.forget_idle(now - kForgetClientAfter);
}

void RequestRecords::remember_refusal(std::uint64_t client, std::uint64_t sequence, std::uint32_t attempt) {
  if (client == 0 || sequence == 0 || windows_.is_settled_duplicate(client, sequence)) return;
  auto [record, added] = windows_.find_or_add(client, sequence);
  record->attempt = std::max(record->attempt, attempt);
  if (!added) return;  // The record has the outcome of an earlier attempt, which stays.
  record->state = Windows::State::Refused;
  record->status = Status(StatusCode::Busy, "a duplicate of an attempt that was refused");
}

std::pair<RequestRecords::Found, Status> RequestRecords::recognise_duplicate(const OpRef& ref, MonotonicTime now) {
  const std::uint64_t client = ref.batch->request.client_id;
  const std::uint64_t sequence = ref.request().sequence;
  if (client == 0 || sequence == 0) return {Found::New, {}};
  if (windows_.is_settled_duplicate(client, sequence)) {
    duplicates_.add();
    return {Found::Ends, {StatusCode::InvalidArgument, "a late duplicate of an operation that its client has settled"}};
  }
  auto [record, added] = windows_.find_or_add(client, sequence);
  const std::uint32_t attempt = ref.request().attempt;
  const bool newer_attempt = attempt > record->attempt;
  record->attempt = std::max(record->attempt, attempt);
  if (added) return {Found::New, {}};
  if (record->state == Windows::State::Refused && newer_attempt) {
    record->state = Windows::State::Pending;
    return {Found::New, {}};
  }
  duplicates_.add();
  Op& op = ref.op();
  switch (record->state) {
    case Windows::State::Pending:
      record->waiters.push_back(ref);
      op.possibly_applied = 1;  // The first message with this operation may have been applied.
      return {Found::Waits, {}};
    case Windows::State::InDoubt:
      if (!newer_attempt) return {Found::Ends, {StatusCode::Timeout, "a duplicate of an attempt that is in doubt"}};
      if (!may_repeat(ref, now)) {
        return {Found::Ends, {StatusCode::Timeout, "it is in doubt, and too late to settle that by a repetition"}};
      }
      // The client repeats the same write, which shows whether it was applied.
      record->state = Windows::State::Pending;
      op.timestamp_us = record->timestamp_us;
      op.result.existed = record->existed;
      op.possibly_applied = 1;
      return {Found::New, {}};
    case Windows::State::Refused:
    case Windows::State::Settled:
      break;
  }
  op.result.timestamp_us = record->timestamp_us;
  op.result.existed = record->existed;
  op.result.version_us = record->version_us;
  return {Found::Ends, record->status};
}

/// Returns false if storage nodes may have forgotten the write, so that a repetition could apply it twice. It then
/// stays in doubt.
bool RequestRecords::may_repeat(const OpRef& ref, MonotonicTime now) {
  if (ref.op().conditional != nullptr) return true;  // A conditional operation reads first and gets another timestamp.
  const auto doubt = doubts_.extract(ClientSequence{ref.batch->request.client_id, ref.request().sequence});
  return !doubt.empty() && now < doubt.mapped().until;
}

std::vector<OpRef> RequestRecords::settle(const OpRef& ref, const Status& status, MonotonicTime now) {
  const std::uint64_t client = ref.batch->request.client_id;
  const std::uint64_t sequence = ref.request().sequence;
  const Op& op = ref.op();
  if (client == 0 || sequence == 0 || op.attempt == 0) return {};
  Windows::RequestRecord* record = windows_.find(client, sequence);
  if (record == nullptr) return {};
  std::vector<OpRef> waiters = std::exchange(record->waiters, {});
  record->existed = op.result.existed;
  if (status.code() == StatusCode::Timeout) {
    record->state = Windows::State::InDoubt;
    record->timestamp_us = op.timestamp_us;
    if (op.timestamp_us != 0 && op.conditional == nullptr && !op.ownership_uncertain) {
      doubts_[{client, sequence}] = {op.gid, op.timestamp_us, now + kRepeatWithin};
    }
  } else {
    record->state = is_transient(status.code()) ? Windows::State::Refused : Windows::State::Settled;
    record->timestamp_us = op.result.timestamp_us;
    record->status = status;
    record->version_us = op.result.version_us;
  }
  std::erase_if(waiters, [](const OpRef& waiter) { return waiter.op().settled; });
  for (const OpRef& waiter : waiters) {
    waiter.op().result.timestamp_us = op.result.timestamp_us;
    waiter.op().result.existed = op.result.existed;
    waiter.op().result.version_us = op.result.version_us;
  }
  return waiters;
}

}  // namespace fjord::distributor
