#include "http/transport/http_server.h"

#include <boost/asio/post.hpp>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "fjord/common/log_lines.h"
#include "fjord/common/random.h"

namespace fjord::gateway {
namespace {

/// A stop waits this long for answers in progress.
constexpr auto kDrainTime = std::chrono::seconds(5);
/// Bytes of the access log that may wait for the disk.
constexpr std::size_t kLinesWaitingMax = std::size_t{4} << 20;

}  // namespace

const std::string& http_date() {
  thread_local std::time_t known = 0;
  thread_local std::string text;
  const std::time_t now = std::time(nullptr);
  if (now != known) {
    known = now;
    text = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(now));
  }
  return text;
}

HttpServer::HttpServer(HttpGatewayOptions options, HttpHandlers handlers, MetricRegistry& metrics)
    : options_(std::move(options)),
      host_rules_(options_),
      handlers_(std::move(handlers)),
      metrics_(metrics),
      connections_open_(metrics.gauge("fjord_http_connections", "Open connections of HTTP clients.")),
      request_seconds_(metrics.histogram("fjord_http_request_seconds",
                                         "From the header of a request of an HTTP client to the end of its answer.")),
      id_prefix_(Random::from_system().next()),
      access_log_(options_.access_log
                      ? std::make_unique<AccessLog>(log::write_lines, kLinesWaitingMax, options_.logs_problems_only)
                      : nullptr) {}

std::string HttpServer::new_request_id() { return fmt::format("{:016x}-{}", id_prefix_, next_id_.fetch_add(1)); }

bool HttpServer::admit() {
  if (requests_.fetch_add(1) < options_.requests_max) return true;
  requests_.fetch_sub(1);
  return false;
}

void HttpServer::run_aside(std::function<void()> task) { boost::asio::post(aside_, std::move(task)); }

Counter& HttpServer::requests_counter(std::string_view target, unsigned status) {
  const std::string_view group = handlers_.group_of(target);
  const std::lock_guard lock(mutex_);
  Counter*& counter = counters_[{group, status}];
  if (counter == nullptr) {
    counter = &metrics_.counter("fjord_http_requests_total", "Requests of HTTP clients, by API and status.",
                                {{"api", std::string(group)}, {"code", std::to_string(status)}});
  }
  return *counter;
}

void HttpServer::note(const EndedRequest& ended) {
  requests_counter(ended.request.target, ended.status).add();
  request_seconds_.observe(std::chrono::duration_cast<Duration>(ended.took));
  if (access_log_ != nullptr) access_log_->add(ended);
}

void HttpServer::note_refusal(std::string_view reason) {
  metrics_
      .counter("fjord_http_refusals_total",
               "Connections and streams of HTTP clients that were ended: slow, flood, full, malformed.",
               {{"reason", std::string(reason)}})
      .add();
}

void HttpServer::add(const std::shared_ptr<ServedConnection>& connection) {
  const std::lock_guard lock(mutex_);
  connections_.emplace(connection.get(), connection);
  connections_open_.set(static_cast<double>(connections_.size()));
}

void HttpServer::remove(ServedConnection& connection) {
  std::shared_ptr<ServedConnection> removed;
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(&connection);
  if (found == connections_.end()) return;
  removed = std::move(found->second);
  connections_.erase(found);
  connections_open_.set(static_cast<double>(connections_.size()));
}

std::size_t HttpServer::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_.size();
}

std::vector<std::shared_ptr<ServedConnection>> HttpServer::all_connections() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ServedConnection>> all;
  all.reserve(connections_.size());
  for (const auto& [address, connection] : connections_) all.push_back(connection);
  return all;
}

void HttpServer::drain() {
  is_ending_ = true;
  for (const auto& connection : all_connections()) connection->drain();
  std::unique_lock lock(mutex_);
  no_progress_.wait_for(lock, kDrainTime, [this] { return in_progress_ == 0; });
}

void HttpServer::end() {
  aside_.join();
  for (const auto& connection : all_connections()) connection->abandon();
}

RequestInProgress::RequestInProgress(HttpServer& server) : server_(server) { server_.in_progress_.fetch_add(1); }

RequestInProgress::~RequestInProgress() {
  if (server_.in_progress_.fetch_sub(1) != 1 || !server_.is_ending_) return;
  const std::lock_guard lock(server_.mutex_);
  server_.no_progress_.notify_all();
}

bool HeldBytes::grow_to(std::size_t bytes) {
  if (bytes <= bytes_) return true;
  const std::size_t more = bytes - bytes_;
  if (server_.held_bytes_.fetch_add(more) + more > server_.options().waiting_bytes_max) {
    server_.held_bytes_.fetch_sub(more);
    return false;
  }
  bytes_ = bytes;
  return true;
}

void HeldBytes::set(std::size_t bytes) {
  if (bytes > bytes_) server_.held_bytes_.fetch_add(bytes - bytes_);
  if (bytes < bytes_) server_.held_bytes_.fetch_sub(bytes_ - bytes);
  bytes_ = bytes;
}

}  // namespace fjord::gateway
