#pragma once

#include <memory>
#include <string>

#include "entry_writer.h"
#include "fjord/library/subscription.h"
#include "streams.h"

namespace fjord::gateway {

/// An open subscription: a Subscription of the client library whose documents are written as JSON.
/// Threading: one thread at a time.
class SubscriptionSource {
 public:
  using Reply = api::NextChangesReply;

  /// Waits for the schemas. Errors: those of Subscription::status(); InvalidArgument.
  static Result<std::unique_ptr<SubscriptionSource>> open(Client& client, const api::OpenSubscription& request,
                                                          std::size_t buffer_bytes);

  void take(const ChunkLimits& limits, Reply& reply);
  static bool has_news(const Reply& reply) {
    return !reply.changes.empty() || reply.state != api::SubscriptionState::FOLLOWING || is_end(reply);
  }
  static bool is_end(const Reply& reply) {
    return reply.state == api::SubscriptionState::RESYNC || reply.__isset.status;
  }
  static Reply nothing();
  Pending<Status> ready() { return subscription_.ready(); }
  static void set_name(api::OpenSubscriptionReply& reply, std::string name) { reply.subscription = std::move(name); }

 private:
  SubscriptionSource(Client& client, Subscription subscription, const std::vector<std::string>& fields)
      : subscription_(std::move(subscription)), writer_(client, subscription_.types(), fields) {}

  /// Adds the changes that have arrived. Errors: those of EntryWriter::write().
  Status take_changes(const ChunkLimits& limits, Reply& reply);

  Subscription subscription_;
  EntryWriter writer_;
  bool is_caught_up_ = false;  ///< True if the client knows that it has caught up, and nothing has changed since.
  Status failure_;             ///< Error of a document that could not be written.
};

}  // namespace fjord::gateway
