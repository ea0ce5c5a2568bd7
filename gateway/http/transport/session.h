#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "http/transport/exchange.h"

namespace fjord::gateway {

/// What a session asks of its connection.
class SessionHost : public ExchangeHost {
 public:
  /// Returns what exchanges of this connection report to.
  virtual std::weak_ptr<ExchangeHost> weak_host() = 0;
};

/// A protocol of a connection, without sockets: bytes come in, bytes go out. The answers are those of exchanges.
///
/// Threading: the strand of the connection. Lifetime: server and host outlive it.
class Session {
 public:
  virtual ~Session() = default;

  /// Bytes of the client.
  virtual void receive(std::string_view bytes) = 0;
  /// The client sends nothing more. Whole answers are still sent, and requests with one are told to stop.
  virtual void receive_end() = 0;
  /// Appends bytes for the client, about `bytes_max`; nothing if there are none.
  virtual void produce(std::string& out, std::size_t bytes_max) = 0;
  /// All that was produced is on its way.
  virtual void flushed() = 0;
  virtual void answer_changed(Exchange& exchange) = 0;

  /// Returns false while bytes of the client have to wait.
  virtual bool wants_input() const = 0;
  /// Returns true if the connection ends once all that was produced is on its way.
  virtual bool is_over() const = 0;
  /// Returns when on_time() has to be called.
  virtual HttpClock::time_point deadline() const = 0;
  virtual void on_time(HttpClock::time_point now) = 0;

  /// The process ends: no more requests are taken, and those in progress should end.
  virtual void drain() = 0;
  /// The connection is lost.
  virtual void abandon() = 0;
};

}  // namespace fjord::gateway
