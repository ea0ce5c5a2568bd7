#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "http/transport/exchange.h"

namespace fjord::gateway {

/// The functions of a connection that its session calls.
class SessionHost : public ExchangeHost {
 public:
  /// Returns the connection, to which its exchanges report.
  virtual std::weak_ptr<ExchangeHost> weak_host() = 0;
  /// Returns what HttpRequest::client is for the requests of the connection.
  virtual std::string client() const { return {}; }
};

/// The protocol of a connection, without sockets: bytes come in, bytes go out. Exchanges make the answers.
///
/// Threading: the strand of the connection. Lifetime: server and host outlive it.
class Session {
 public:
  virtual ~Session() = default;

  /// Called with bytes of the client.
  virtual void receive(std::string_view bytes) = 0;
  /// Called when the client sends nothing more. Whole answers are still sent; other requests are told to stop.
  virtual void receive_end() = 0;
  /// Appends bytes for the client, about `bytes_max`; nothing if there are none.
  virtual void produce(std::string& out, std::size_t bytes_max) = 0;
  /// Called when all produced bytes were given to the socket.
  virtual void flushed() = 0;
  virtual void answer_changed(Exchange& exchange) = 0;

  /// Returns false while the session takes no more bytes of the client.
  virtual bool wants_input() const = 0;
  /// Returns true if the connection is to end once all produced bytes are sent.
  virtual bool is_over() const = 0;
  /// Returns the time at which on_time() is to be called.
  virtual HttpClock::time_point deadline() const = 0;
  virtual void on_time(HttpClock::time_point now) = 0;

  /// Called when the process ends: no more requests are taken, and those in progress should end.
  virtual void drain() = 0;
  /// Called when the connection is lost.
  virtual void abandon() = 0;
};

}  // namespace fjord::gateway
