#include "fjord/library/detail/client_core.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord {

namespace {

/// Longest wait for the first answer. It is short, so that a wrong address does not look like a slow cluster.
constexpr Duration kReadyTimeout = seconds(5);

rpc::Priority wire_priority(ClientPriority priority) {
  switch (priority) {
    case ClientPriority::High:
      return rpc::Priority::High;
    case ClientPriority::Normal:
      return rpc::Priority::Normal;
    case ClientPriority::Background:
      return rpc::Priority::Background;
    case ClientPriority::Default:
      break;
  }
  return rpc::Priority::Default;
}

Status check(const RetryPolicy& retry) {
  if (retry.attempt_timeout <= Duration(0)) {
    return Status(StatusCode::InvalidArgument, "retry.attempt_timeout has to be above 0");
  }
  if (retry.backoff_min <= Duration(0) || retry.backoff_max < retry.backoff_min) {
    return Status(StatusCode::InvalidArgument, "retry.backoff_min has to be above 0, and not above retry.backoff_max");
  }
  return Status::ok();
}

void apply(const RetryPolicy& retry, ClientOptions& options) {
  options.attempt_timeout = retry.attempt_timeout;
  options.backoff_min = retry.backoff_min;
  options.backoff_max = retry.backoff_max;
  options.retry_budget_percent = retry.budget_percent;
  options.retry_budget_per_second = retry.budget_per_second;
  options.retry_budget_burst = retry.budget_burst;
}

}  // namespace

ClientCore::ClientCore(std::string_view addresses, const ClientSettings& settings) : settings_(settings) {
  auto parsed = parse_addresses(addresses);
  if (!parsed) {
    settings_error_ = parsed.error();
    return;
  }
  if (settings_error_ = check(settings.retry); !settings_error_) return;
  ConnectOptions options;
  apply(settings.retry, options.client);
  options.client.addresses = std::move(*parsed);
  options.client.default_timeout = settings.timeout;
  options.client.priority = wire_priority(settings.priority);
  if (settings.consistency == ReadConsistency::Linearizable) options.client.consistency = rpc::Consistency::Session;
  connection_ = std::make_unique<Connection>(std::move(options));
}

ClientCore::~ClientCore() {
  // No other thread uses the core any more, except for these.
  for (Apart& apart : apart_) apart.stop.request_stop();
  for (Apart& apart : apart_) apart.thread.join();
}

void ClientCore::run_apart(UniqueFunction<void(std::stop_source)> task) {
  const std::lock_guard lock(apart_mutex_);
  std::erase_if(apart_, [](Apart& apart) {
    if (apart.is_over) apart.thread.join();
    return !apart.thread.joinable();
  });
  Apart& apart = apart_.emplace_back();
  apart.thread = std::thread([&apart, task = std::move(task)]() mutable {
    task(apart.stop);
    apart.is_over = true;
  });
}

template <typename F>
Status ClientCore::wait_for(F start) {
  std::optional<Status> result;
  start([&](const Status& status) { result = status; });
  seams_->run_until([&] { return result.has_value(); });
  return *result;
}

Status ClientCore::wait_ready() {
  if (!settings_error_) return settings_error_;
  if (client().snapshot() != nullptr) return Status::ok();
  const Duration timeout = std::min(kReadyTimeout, settings_.timeout);
  if (!seams_) return SyncClient(client(), timeout).wait_ready();
  return wait_for([&](auto done) { client().wait_ready(timeout, std::move(done)); });
}

Status ClientCore::refresh() {
  FJORD_TRY(wait_ready());
  if (!seams_) return connection_->sync().refresh_schemas();
  return wait_for([&](auto done) { client().refresh_schemas(settings_.timeout, std::move(done)); });
}

std::shared_ptr<const DocumentTypeRepo> ClientCore::types() { return client().snapshot()->types(); }

Result<std::shared_ptr<const DocumentTypeRepo>> ClientCore::types_with(std::string_view type) {
  FJORD_TRY(wait_ready());
  if (types()->find(type) == nullptr) FJORD_TRY(refresh());
  auto all = types();
  if (all->find(type) != nullptr) return all;
  return Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"", type));
}

Status ClientCore::copy_snapshot(rpc::SnapshotHolder& into) {
  return into.update(client().snapshot()->info()).status();
}

void ClientCore::run(UniqueFunction<void()> task) {
  if (executor().is_current()) return task();
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  executor().post([&] {
    task();
    const std::lock_guard lock(mutex);
    is_done = true;
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  wait(lock, changed, [&] { return is_done; });
}

}  // namespace fjord
