#include "maintenance/remove_retention.h"

#include <algorithm>

#include "fjord/cluster/feature.h"

namespace fjord::distributor {
namespace {

constexpr std::size_t kOrdersAtOnce = 16;
// Entries are kept longer by the retention time divided by this, so that a bucket does not get orders continuously.
constexpr std::uint64_t kGraceParts = 8;
// Minimum age, in microseconds, of a token that is dropped because its bucket has too many.
constexpr std::uint64_t kSurplusTokenAgeUs = 60'000'000;

std::uint64_t before(std::uint64_t now_us, std::uint64_t age_us) { return now_us > age_us ? now_us - age_us : 0; }

}  // namespace

RemoveRetention::RemoveRetention(Context& context, TunableRegistry& tunables, Hooks hooks)
    : context_(context),
      hooks_(std::move(hooks)),
      removes_ms_(tunables.declare("documents.remove_retention")),
      tokens_ms_(tunables.declare("documents.token_retention")),
      tokens_max_(tunables.declare("documents.bucket_tokens_max")),
      orders_(context.metrics.counter("fjord_distributor_forget_orders_total",
                                      "Times that the replicas of a bucket were told to drop old removed entries")),
      abandoned_(context.metrics.counter("fjord_distributor_forget_abandoned_total",
                                         "Times that this was put off because of a write that failed")),
      waiting_(context.metrics.gauge("fjord_distributor_buckets_to_forget",
                                     "Buckets with removed entries that are older than they have to be kept")) {}

void RemoveRetention::forget() {
  queue_.clear();
  surplus_tokens_us_.clear();
  under_way_ = 0;
}

std::uint64_t RemoveRetention::now_us() const {
  const auto wall_us = static_cast<std::uint64_t>(context_.clock.wall_now().us);
  return context_.time_ceiling_us == 0 ? wall_us : std::min(wall_us, context_.time_ceiling_us);
}

void RemoveRetention::ask(rpc::GetBucketInfo& question) const {
  const auto with_grace = [&](const Tunable& retention) -> std::uint64_t {
    if (retention.value() == 0) return 0;  // With the setting 0, nothing is ever dropped.
    const auto age_us = static_cast<std::uint64_t>(retention.value()) * 1000;
    return before(now_us(), age_us + age_us / kGraceParts);
  };
  question.removes_before_us = with_grace(removes_ms_);
  question.tokens_before_us = with_grace(tokens_ms_);
  const auto most = static_cast<std::uint64_t>(tokens_max_.value());
  question.tokens_max = most == 0 ? 0 : most + most / kGraceParts;
}

void RemoveRetention::go_on() {
  waiting_.set(static_cast<double>(surplus_tokens_us_.size() + under_way_));
  start_some();
}

void RemoveRetention::note(const BucketEntry& entry, const rpc::BucketReport& report) {
  if (!report.may_forget || !entry.is_settled()) return;
  std::uint64_t& surplus_us = surplus_tokens_us_[entry.bucket.raw()];
  surplus_us = std::max(surplus_us, report.surplus_tokens_us);
  const auto same = [&](const BucketTicket& ticket) {
    return ticket.bucket == entry.bucket && ticket.serial == entry.serial;
  };
  if (std::none_of(queue_.begin(), queue_.end(), same)) queue_.push_back(entry.ticket());
}

/// Returns true if all nodes can drop entries. A node that cannot would never become equal to the others.
bool RemoveRetention::all_nodes_can() const { return context_.snapshot->state().announces(feature::kForget); }

void RemoveRetention::start_some() {
  if (queue_.empty() || !all_nodes_can()) return;
  for (; under_way_ < kOrdersAtOnce && !queue_.empty(); queue_.pop_front()) {
    BucketEntry* entry = context_.buckets.find(queue_.front());
    const auto queued = surplus_tokens_us_.extract(queue_.front().bucket.raw());
    // The bucket is skipped: storage nodes will report it again.
    if (entry == nullptr || queued.empty() || !entry->is_settled()) continue;
    ++under_way_;
    entry->apply(event::ForgetStarted{queued.mapped()});
    if (entry->writes_under_way == 0) give_order(*entry);
  }
}

void RemoveRetention::drained(BucketEntry& entry) {
  if (entry.may_differ() || entry.wants_merge() ||
      entry.merges_or_waits()) {  // The last writes to the bucket did not reach all replicas.
    abandon(entry);
  } else {
    give_order(entry);
  }
}

void RemoveRetention::abandon(BucketEntry& entry) {
  abandoned_.add();
  --under_way_;
  entry.apply(event::Resumed{});
  hooks_.bucket_ready(entry.bucket);
}

/// Installs a replica set with the times up to which entries are dropped. All members are equal, no write is in flight,
/// and no later write will get a timestamp below these times.
void RemoveRetention::give_order(BucketEntry& entry) {
  const std::uint64_t newest_surplus_us = std::get<activity::Forgetting>(entry.activity).surplus_tokens_us;
  const std::uint64_t stable_us = hooks_.stable_us(entry) + 1;
  const std::uint64_t now = now_us();
  const auto due = [now](const Tunable& retention) -> std::uint64_t {
    return retention.value() == 0 ? 0 : before(now, static_cast<std::uint64_t>(retention.value()) * 1000);
  };
  ForgetTimes times;
  times.removes_us = std::min(due(removes_ms_), stable_us);
  // New tokens are kept, however many there are, because clients that repeat an operation need them.
  const auto tokens_age_us = static_cast<std::uint64_t>(tokens_ms_.value()) * 1000;
  const std::uint64_t surplus_age_us =
      tokens_age_us == 0 ? kSurplusTokenAgeUs : std::min(tokens_age_us, kSurplusTokenAgeUs);
  const std::uint64_t surplus_us = std::min(newest_surplus_us, before(now, surplus_age_us));
  times.tokens_us = std::min(std::max(due(tokens_ms_), surplus_us), stable_us);
  entry.set.epoch = context_.next_epoch(entry.set.epoch);
  orders_.add();
  Installation work;
  work.forget = times;
  hooks_.install(entry, std::move(work));
}

void RemoveRetention::order_done() {
  --under_way_;
  start_some();
}

}  // namespace fjord::distributor
