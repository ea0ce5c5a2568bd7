#include "subscriptions.h"

#include <algorithm>
#include <utility>

namespace fjord::gateway {
namespace {

/// A client must not make the storage nodes work all the time.
constexpr Duration kPollIntervalMin = milliseconds(50);

}  // namespace

Result<std::unique_ptr<SubscriptionSource>> SubscriptionSource::open(Client& client,
                                                                     const api::OpenSubscription& request,
                                                                     std::size_t buffer_bytes) {
  if (request.poll_interval_ms < 0 || request.poll_interval_ms > 600'000) {
    return Status(StatusCode::InvalidArgument,
                  "poll_interval_ms is " + std::to_string(request.poll_interval_ms) + ": expected 0 to 600000");
  }
  SubscribeOptions options;
  options.selection = request.selection;
  options.type = request.type;
  options.fields = request.fields;
  options.resume = request.resume;
  options.from_now = request.from_now;
  if (request.poll_interval_ms > 0) {
    options.poll_interval = std::max<Duration>(milliseconds(request.poll_interval_ms), kPollIntervalMin);
  }
  options.buffer_bytes = buffer_bytes;
  options.decode = false;
  Subscription subscription = client.subscribe(std::move(options));
  FJORD_TRY(subscription.status());
  return std::unique_ptr<SubscriptionSource>(new SubscriptionSource(client, std::move(subscription), request.fields));
}

api::NextChangesReply SubscriptionSource::nothing() {
  Reply reply;
  reply.state = api::SubscriptionState::FOLLOWING;
  return reply;
}

Status SubscriptionSource::take_changes(const ChunkLimits& limits, Reply& reply) {
  std::size_t bytes = 0;
  while (reply.changes.size() < limits.entries && bytes < limits.bytes) {
    const Change* change = subscription_.try_next();
    if (change == nullptr) break;
    if (change->kind == Change::Kind::Resync) {
      reply.state = api::SubscriptionState::RESYNC;
      reply.horizon_us = static_cast<std::int64_t>(change->version.us);
      break;
    }
    if (change->kind == Change::Kind::CaughtUp) {
      // The feed catches up again and again while nothing changes; the client gets that news once.
      if (std::exchange(is_caught_up_, true)) continue;
      reply.state = api::SubscriptionState::CAUGHT_UP;
      break;
    }
    is_caught_up_ = false;
    api::DocumentChange& given = reply.changes.emplace_back();
    FJORD_TRY(writer_.write(*change->entry, given.id, given.json));
    given.timestamp_us = static_cast<std::int64_t>(change->version.us);
    given.removed = change->kind == Change::Kind::Remove;
    bytes += given.id.size() + given.json.size();
  }
  return Status::ok();
}

void SubscriptionSource::take(const ChunkLimits& limits, Reply& reply) {
  reply = nothing();
  if (failure_) {
    failure_ = take_changes(limits, reply);
    if (!failure_) reply.changes.clear();
  }
  // The error is sent after the changes before it.
  const Status& status = failure_ ? subscription_.status() : failure_;
  if (!status && reply.changes.empty()) {
    reply.__set_status(wire_status(status, {}));
  }
  reply.cursor = subscription_.cursor();
}

}  // namespace fjord::gateway
