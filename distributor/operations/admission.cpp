#include "admission.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord::distributor {
namespace {

// Percentage of the budget that operations of each class may use.
constexpr std::array<std::size_t, Admission::kClasses> kShares = {100, 90, 50};
constexpr std::array<const char*, Admission::kClasses> kClassNames = {"high", "normal", "background"};
constexpr std::array<const char*, Admission::kRefusals> kRefusalNames = {"full", "too_late", "expired", "slow_node"};

/// Shortest period over which rate and latency are measured.
constexpr Duration kPeriod = milliseconds(100);
constexpr std::int64_t kHintMinMs = 10;
constexpr std::int64_t kHintMaxMs = 2000;
/// Retry hint before a rate was measured.
constexpr std::int64_t kHintUnknownMs = 100;

/// Returns the weighted mean: two thirds of the known value, one third of the new one; the new one if none is known.
std::int64_t blend(std::int64_t known, std::int64_t fresh) { return known == 0 ? fresh : (2 * known + fresh) / 3; }

}  // namespace

Admission::Admission(TunableRegistry& tunables, MetricRegistry& metrics, Limits limits)
    : operations_max_(
          tunables.declare("distributor.pending_operations_max", static_cast<std::int64_t>(limits.operations_max))),
      bytes_max_(tunables.declare("distributor.pending_bytes_max", static_cast<std::int64_t>(limits.bytes_max))),
      hints_(metrics.histogram("fjord_distributor_retry_hint_seconds",
                               "When clients that were refused with BUSY were told to come again")),
      bytes_gauge_(metrics.gauge("fjord_distributor_pending_bytes", "Bytes of operations under way")) {
  for (std::size_t c = 0; c < kClasses; ++c) {
    for (std::size_t r = 0; r < kRefusalNames.size(); ++r) {
      refused_[c][r] = &metrics.counter("fjord_distributor_refused_total",
                                        "Operations that were refused with BUSY before any work on them",
                                        {{"class", kClassNames[c]}, {"reason", kRefusalNames[r]}});
    }
  }
}

Admission::Class Admission::class_of(const rpc::Operation& operation) {
  switch (operation.priority) {
    case rpc::Priority::High:
      return Class::High;
    case rpc::Priority::Background:
      return Class::Background;
    default:
      return Class::Normal;
  }
}

std::size_t Admission::share(Class its, const Tunable& whole) const {
  const auto max = static_cast<std::size_t>(whole.value());
  return std::max<std::size_t>(
      1, max / 100 * kShares[static_cast<std::size_t>(its)] + max % 100 * kShares[static_cast<std::size_t>(its)] / 100);
}

bool Admission::fits(Class its, std::size_t operations, std::size_t bytes) const {
  return operations <= share(its, operations_max_) && bytes <= share(its, bytes_max_);
}

std::optional<Admission::Refusal> Admission::admit(Class its, std::size_t operations, std::size_t bytes,
                                                   Duration timeout) {
  // The amounts before this call decide. If two calls run concurrently, the second one sees what the first one has
  // taken.
  const std::size_t operations_before = operations_.fetch_add(operations, std::memory_order_relaxed);
  const std::size_t bytes_before = bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const bool is_alone = operations_before == 0;
  std::optional<Refusal> refusal;
  if (!is_alone && !fits(its, operations_before + operations, bytes_before + bytes)) refusal = Refusal::Full;
  // The measured time may be due to one slow operation on an idle distributor. Only with a quarter of the budget in use
  // there is a queue.
  const bool is_loaded = operations_before > share(its, operations_max_) / 4;
  if (!refusal && is_loaded && timeout.count() < latency_us_.load(std::memory_order_relaxed)) {
    refusal = Refusal::TooLate;
  }
  if (refusal) {
    operations_.fetch_sub(operations, std::memory_order_relaxed);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  return refusal;
}

void Admission::ended(MonotonicTime now, Duration took, bool served) {
  operations_.fetch_sub(1, std::memory_order_relaxed);
  ++period_ended_;
  if (served) {
    ++period_served_;
    period_latency_us_ += took.count();
  }
  const Duration elapsed = now - period_start_;
  if (elapsed < kPeriod) return;
  const std::int64_t rate = period_ended_ * 1'000'000 / elapsed.count();
  ended_per_second_.store(std::max<std::int64_t>(1, blend(ended_per_second_.load(std::memory_order_relaxed), rate)),
                          std::memory_order_relaxed);
  if (period_served_ > 0) {
    latency_us_.store(blend(latency_us_.load(std::memory_order_relaxed), period_latency_us_ / period_served_),
                      std::memory_order_relaxed);
  }
  period_start_ = now;
  period_ended_ = 0;
  period_served_ = 0;
  period_latency_us_ = 0;
}

void Admission::released(std::size_t bytes) {
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  bytes_gauge_.set(static_cast<double>(this->bytes()));
}

std::uint32_t Admission::retry_after_ms() const {
  const std::int64_t rate = ended_per_second_.load(std::memory_order_relaxed);
  if (rate == 0) return kHintUnknownMs;
  const auto half = static_cast<std::int64_t>(operations() / 2);
  return static_cast<std::uint32_t>(std::clamp(half * 1000 / rate, kHintMinMs, kHintMaxMs));
}

Status Admission::describe(Class its) const {
  const std::size_t operations_limit = share(its, operations_max_);
  const std::size_t bytes_limit = share(its, bytes_max_);
  const bool by_bytes = static_cast<double>(bytes()) / static_cast<double>(bytes_limit) >
                        static_cast<double>(operations()) / static_cast<double>(operations_limit);
  return Status(
      StatusCode::Busy,
      fmt::format(
          "{} operations of {} bytes are under way, of {} and {} for priority {} (distributor.pending_operations_max, "
          "distributor.pending_bytes_max)",
          operations(), bytes(), operations_limit, bytes_limit, kClassNames[static_cast<std::size_t>(its)]),
      {.limit = std::to_string(by_bytes ? bytes_limit : operations_limit),
       .setting = by_bytes ? "distributor.pending_bytes_max" : "distributor.pending_operations_max"});
}

std::uint32_t Admission::count_refusal(Class its, Refusal why, std::size_t operations) {
  refused_[static_cast<std::size_t>(its)][static_cast<std::size_t>(why)]->add(operations);
  const std::uint32_t hint = retry_after_ms();
  hints_.observe_many(milliseconds(hint), operations);
  return hint;
}

}  // namespace fjord::distributor
