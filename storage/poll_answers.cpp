#include "poll_answers.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace fjord::storage {
namespace {

// Time for which a poll waits for the stripes.
constexpr Duration kWaitMax = std::chrono::milliseconds(100);
// Time after which a stripe that does not answer counts as hanging. Its tasks are short or come in turns, so a stripe
// that only has a lot to do answers much earlier.
constexpr Duration kHangsAfter = seconds(5);

/// Adds the buckets of one stripe.
void add_totals(rpc::PollReply& reply, const LocalBuckets::Totals& part) {
  reply.buckets += part.buckets;
  reply.documents += part.documents;
  reply.bytes += part.bytes;
  reply.buckets_damaged += part.damaged;
  if (part.min_bits != 0 && (reply.min_bucket_bits == 0 || part.min_bits < reply.min_bucket_bits))
    reply.min_bucket_bits = part.min_bits;
}

}  // namespace

PollAnswers::PollAnswers(std::string node, std::size_t stripes, Runtime& runtime, Hooks hooks)
    : node_(std::move(node)),
      clock_(runtime.clock),
      hooks_(std::move(hooks)),
      wait_(runtime.metrics.histogram("fjord_storage_poll_wait_seconds",
                                      "Time until a stripe reported for a poll of the fleet controller; it does one "
                                      "thing at a time")),
      stripes_(stripes),
      executor_(runtime.scheduler.make_executor("polls")) {}

void PollAnswers::add(rpc::Responder respond, bool wants_settings) {
  std::vector<std::size_t> to_ask;
  std::uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    if (is_closed_) return;
    number = ++last_poll_;
    polls_.push_back({number, std::move(respond), wants_settings});
    for (std::size_t s = 0; s < stripes_.size(); ++s) {
      if (std::exchange(stripes_[s].is_asked, true)) continue;
      stripes_[s].asked_at = clock_.now();
      to_ask.push_back(s);
    }
  }
  for (const std::size_t s : to_ask) hooks_.ask(s);
  executor_->post_after(kWaitMax, [this, number] { answer(number); });
}

void PollAnswers::close() {
  std::lock_guard lock(mutex_);
  is_closed_ = true;
  polls_.clear();
}

void PollAnswers::reported(std::size_t stripe, const LocalBuckets::Totals& totals, Condition condition) {
  std::uint64_t complete = 0;
  {
    std::lock_guard lock(mutex_);
    Stripe& one = stripes_[stripe];
    one.totals = totals;
    one.condition = std::move(condition);
    one.poll = last_poll_;
    one.is_asked = false;
    wait_.observe(clock_.now() - one.asked_at);
    complete = last_poll_;
    for (const Stripe& other : stripes_) complete = std::min(complete, other.poll);
  }
  answer(complete);
}

std::uint64_t PollAnswers::buckets() const {
  std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const Stripe& stripe : stripes_) sum += stripe.totals.buckets;
  return sum;
}

void PollAnswers::answer(std::uint64_t up_to) {
  std::vector<Poll> due;
  {
    std::lock_guard lock(mutex_);
    const bool all_reported =
        std::all_of(stripes_.begin(), stripes_.end(), [](const Stripe& stripe) { return stripe.poll != 0; });
    while (all_reported && !polls_.empty() && polls_.front().number <= up_to) {
      due.push_back(std::move(polls_.front()));
      polls_.pop_front();
    }
  }
  for (Poll& poll : due) poll.respond(reply(poll.wants_settings));
}

rpc::PollReply PollAnswers::reply(bool wants_settings) const {
  rpc::PollReply reply;
  {
    std::lock_guard lock(mutex_);
    for (std::size_t s = 0; s < stripes_.size(); ++s) {
      const Stripe& stripe = stripes_[s];
      add_totals(reply, stripe.totals);
      if (!stripe.condition.health) reply.status = stripe.condition.health;
      if (!stripe.condition.fault && reply.fault.empty()) reply.fault = stripe.condition.fault.to_string();
      const Duration asked_for = stripe.is_asked ? clock_.now() - stripe.asked_at : Duration(0);
      if (asked_for <= kHangsAfter) continue;
      reply.status = {StatusCode::Unavailable,
                      fmt::format("stripe {} of {} has been doing one thing for {} s", s, node_,
                                  std::chrono::duration_cast<seconds>(asked_for).count())};
    }
  }
  hooks_.fill_in(reply, wants_settings);
  return reply;
}

}  // namespace fjord::storage
