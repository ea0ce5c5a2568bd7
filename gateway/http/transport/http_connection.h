#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "http/transport/session.h"
#include "http/transport/tls.h"

namespace fjord::gateway {

class Http1Session;

/// One connection: a socket, TLS if the port has it, and the session of the protocol that the client chose.
///
/// It has no buffer while it waits, so that idle connections are small.
/// Threading: the strand of its socket, except where a call says otherwise. Lifetime: the server keeps it until it
/// ends.
class HttpConnection final : public SessionHost,
                             public ServedConnection,
                             public std::enable_shared_from_this<HttpConnection> {
 public:
  /// `tls` is null for a cleartext port.
  HttpConnection(boost::asio::ip::tcp::socket socket, HttpServer& server, TlsContext* tls);
  ~HttpConnection() override;

  /// `is_refused`: there are too many connections. Threading: any thread.
  void begin(bool is_refused);
  void drain() override;
  void abandon() override;

  void answer_changed(std::shared_ptr<Exchange> exchange) override;
  void later(std::chrono::milliseconds after, std::function<void()> task) override;
  std::weak_ptr<ExchangeHost> weak_host() override { return weak_from_this(); }
  std::string client() const override { return client_; }

 private:
  /// Runs a step on the strand, then delivers answers, sends, and waits for what comes next.
  void run(const std::function<void()>& step);
  void settle();
  bool deliver_answers();
  /// Returns false if the socket takes no more bytes now.
  bool send();
  void receive();
  void take_bytes(std::string_view bytes);
  void take_plain(std::string_view bytes);
  void choose_session();
  Http1Session* open_http1();
  void on_end();
  void begin_linger();
  void wait_for_input();
  void wait_for_output();
  void set_timer();
  void on_timer();
  HttpClock::time_point deadline() const;
  void note_sent(std::size_t bytes);
  void close();

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  HttpServer& server_;
  const std::string client_;
  std::unique_ptr<TlsFilter> tls_;
  std::unique_ptr<Session> session_;
  std::string first_;  ///< Bytes that arrived before the protocol is known.
  std::string out_;
  std::size_t out_at_ = 0;
  HttpClock::time_point begun_ = HttpClock::now();
  HttpClock::time_point timer_at_ = HttpClock::time_point::max();
  HttpClock::time_point stuck_since_ = HttpClock::time_point::max();  ///< Since when the client takes too few bytes.
  std::size_t sent_since_stuck_ = 0;
  HttpClock::time_point linger_until_ = HttpClock::time_point::max();
  std::size_t linger_bytes_left_ = 0;
  bool is_waiting_for_input_ = false;
  bool is_waiting_for_output_ = false;
  bool is_lingering_ = false;
  bool has_ended_ = false;  ///< True if the client sends nothing more.
  bool is_closed_ = false;

  std::mutex mutex_;
  std::vector<std::shared_ptr<Exchange>> changed_ FJORD_GUARDED_BY(mutex_);
  bool is_scheduled_ FJORD_GUARDED_BY(mutex_) = false;  ///< True if the delivery of changed_ is posted or runs.
};

}  // namespace fjord::gateway
