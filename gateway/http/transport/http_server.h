#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "fjord/common/metrics.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/gateway/http_gateway.h"
#include "http/reply.h"
#include "http/transport/access_log.h"
#include "http/transport/host_rules.h"
#include "http/transport/stream_shares.h"

namespace fjord::gateway {

using HttpClock = std::chrono::steady_clock;

/// Functions that the transport needs from the handlers of requests.
struct HttpHandlers {
  HttpHandler handle;
  /// Returns the group of a target for metrics; there are few groups.
  std::function<std::string_view(std::string_view target)> group_of;
};

/// A connection as the server knows it.
class ServedConnection {
 public:
  virtual ~ServedConnection() = default;
  /// Takes no more requests, and ends after those in progress. Threading: any thread.
  virtual void drain() = 0;
  /// Ends the connection at once. Call it when no thread runs the connection any more.
  virtual void abandon() = 0;
};

/// What all connections of a gateway share: limits, ids, metrics and the access log. Threading: any thread.
class HttpServer {
 public:
  HttpServer(HttpGatewayOptions options, HttpHandlers handlers, MetricRegistry& metrics);

  const HttpGatewayOptions& options() const { return options_; }

  const HttpHandlers& handlers() const { return handlers_; }
  const HostRules& host_rules() const { return host_rules_; }

  std::string new_request_id();
  /// Writes a line of the access log, and counts the request.
  void note(const EndedRequest& ended);
  /// Counts a connection, or a stream of one, that this server ended, by reason: "slow", "flood", "full", "malformed".
  void note_refusal(std::string_view reason);

  /// Counts one of the requests in progress. Returns false if there are too many.
  bool admit();
  void end_admitted() { requests_.fetch_sub(1); }
  /// Takes one of the long answers of a request's client; null if it has all of them.
  std::unique_ptr<StreamShares::Share> take_stream(const HttpRequest& request) {
    return stream_shares_.take(request.client, handlers_.group_of(request.target));
  }
  /// Runs a task that takes long, on a thread that serves no sockets.
  void run_aside(std::function<void()> task);

  void add(const std::shared_ptr<ServedConnection>& connection);
  void remove(ServedConnection& connection);
  std::size_t connections() const;

  bool is_ending() const { return is_ending_; }
  /// Lets connections end after their requests in progress were answered, within a time limit.
  void drain();
  /// Ends all connections. Call it after the threads of their sockets have ended.
  void end();

 private:
  friend class RequestInProgress;
  friend class HeldBytes;

  std::vector<std::shared_ptr<ServedConnection>> all_connections() const;
  Counter& requests_counter(std::string_view target, unsigned status);

  const HttpGatewayOptions options_;
  const HostRules host_rules_;
  const HttpHandlers handlers_;
  MetricRegistry& metrics_;
  Gauge& connections_open_;
  Histogram& request_seconds_;
  const std::uint64_t id_prefix_;
  std::atomic<std::uint64_t> next_id_{0};
  std::atomic<bool> is_ending_{false};
  std::atomic<std::size_t> requests_{0};
  std::atomic<std::size_t> held_bytes_{0};
  StreamShares stream_shares_;

  mutable std::mutex mutex_;
  std::map<ServedConnection*, std::shared_ptr<ServedConnection>> connections_ FJORD_GUARDED_BY(mutex_);
  std::map<std::pair<std::string_view, unsigned>, Counter*> counters_ FJORD_GUARDED_BY(mutex_);
  std::condition_variable no_progress_;  ///< Once is_ending_.
  std::atomic<int> in_progress_{0};
  std::unique_ptr<AccessLog> access_log_;  ///< Null: there is none.
  boost::asio::thread_pool aside_{1};
};

/// A request whose header has arrived and whose answer is not written. A stop waits for it.
class RequestInProgress {
 public:
  explicit RequestInProgress(HttpServer& server);
  ~RequestInProgress();
  RequestInProgress(const RequestInProgress&) = delete;
  RequestInProgress& operator=(const RequestInProgress&) = delete;

 private:
  HttpServer& server_;
};

/// A number of bytes of bodies and answers in memory. One bound limits the sum of all such numbers.
class HeldBytes {
 public:
  explicit HeldBytes(HttpServer& server) : server_(server) {}
  ~HeldBytes() { set(0); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  /// Returns false, and changes nothing, if the sum would exceed the bound.
  bool grow_to(std::size_t bytes);
  /// Sets this number of bytes, even if the sum of all numbers then exceeds the bound.
  void set(std::size_t bytes);

 private:
  HttpServer& server_;
  std::size_t bytes_ = 0;
};

/// Returns the value of the header Date.
const std::string& http_date();

}  // namespace fjord::gateway
