#include "http/load_sampler.h"

#include <algorithm>
#include <pthread.h>
#include <utility>

#include "fjord/common/fatal_signals.h"
#include "fjord/monitoring/metric_scraper.h"

namespace fjord::gateway {
namespace {

/// Two readings at the usual pace, and the time that a silent node takes.
constexpr Duration kRecent = seconds(6);
constexpr Duration kPointsAge = std::chrono::minutes(10);

}  // namespace

LoadSampler::LoadSampler(std::vector<MetricsAddress> addresses, std::shared_ptr<const Clock> clock, Duration pace)
    : addresses_(std::move(addresses)), clock_(std::move(clock)), pace_(pace) {
  if (addresses_.empty()) return;
  thread_ = std::thread([this] {
    const SignalStack signal_stack;
    run();
  });
  ::pthread_setname_np(thread_.native_handle(), "http-load");
}

void LoadSampler::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Load LoadSampler::latest() {
  const std::lock_guard lock(mutex_);
  Load load{.latest = latest_, .points = {points_.begin(), points_.end()}, .growth = {}};
  for (const auto& [node, trend] : space_) {
    load.growth[node] = trend.per_second();
    load.growth_span = std::max(load.growth_span, trend.span());
  }
  return load;
}

std::map<std::string, SeenProcess> LoadSampler::processes(Duration patience) {
  std::unique_lock lock(mutex_);
  if (patience > Duration(0) && !addresses_.empty() && !is_recent()) {
    is_awaited_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, patience, [this] { return is_over_ || is_recent(); });
  }
  std::map<std::string, SeenProcess> seen;
  for (std::size_t i = 0; last_ && i < addresses_.size(); ++i) {
    const Result<MetricPage>& page = last_->pages[i];
    seen[addresses_[i].node] = {.answers = page.has_value(),
                                .leads = page && page->sum("fjord_fleetcontroller_leads").value_or(0) > 0};
  }
  return seen;
}

bool LoadSampler::is_recent() const { return last_ && clock_->now() - last_->at < kRecent; }

void LoadSampler::run() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    lock.unlock();
    LoadReading reading{.at = clock_->now(), .unix_us = clock_->wall_now().us, .pages = {}};
    std::vector<std::string> hosts;
    for (const MetricsAddress& one : addresses_) hosts.push_back(one.address);
    reading.pages = scrape(hosts);
    lock.lock();
    take(std::move(reading));
    changed_.wait_for(lock, pace_, [this] { return is_over_ || is_awaited_; });
    is_awaited_ = false;
  }
}

void LoadSampler::take(LoadReading reading) {
  if (last_) {
    latest_ = load_between(addresses_, *last_, reading);
    points_.push_back(latest_->total);
    const std::int64_t oldest = reading.unix_us - Duration(kPointsAge).count();
    while (points_.front().unix_us < oldest) points_.pop_front();
    for (const NodeLoadFigures& node : latest_->nodes) {
      if (node.used_bytes) space_[node.node].add(reading.at, *node.used_bytes);
    }
  }
  last_ = std::move(reading);
  changed_.notify_all();
}

}  // namespace fjord::gateway
