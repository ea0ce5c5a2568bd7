#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "http/reply.h"
#include "http/transport/answer_body.h"
#include "http/transport/http_server.h"

namespace fjord::gateway {

class Exchange;

/// The connection that sends the answers of exchanges.
class ExchangeHost {
 public:
  virtual ~ExchangeHost() = default;
  /// Called when the answer of the exchange has begun, grown or ended. Threading: any thread.
  virtual void answer_changed(std::shared_ptr<Exchange> exchange) = 0;
  /// Runs the task on the strand of the connection after a time. Threading: any thread.
  virtual void later(std::chrono::milliseconds after, std::function<void()> task) = 0;
};

/// One request and its answer.
///
/// Threading: the calls of AnswerSink from any thread, all others from the strand of the connection.
/// Lifetime: the reply of the handler and the session of the connection share it.
class Exchange final : public AnswerSink, public std::enable_shared_from_this<Exchange> {
 public:
  /// `stream` is the number of the stream in HTTP/2.
  Exchange(HttpServer& server, std::weak_ptr<ExchangeHost> host, HttpRequest request, int stream = 0);
  ~Exchange() override;

  HttpRequest& request() { return request_; }
  const HttpRequest& request() const { return request_; }
  int stream() const { return stream_; }
  HttpClock::time_point begun() const { return begun_; }
  void set_begun(HttpClock::time_point begun) { begun_ = begun; }
  /// The bytes of the request's body.
  HeldBytes& held() { return held_; }

  void answer(HttpAnswer answer) override;
  void begin(HttpAnswer head) override;
  void write(std::string piece, std::function<void(bool is_open)> then) override;
  void end() override;
  void cut() override;
  bool is_open() const override { return !is_away_; }
  void on_stop(std::function<void()> stop) override;
  bool take_stream() override;

  /// Answers 429 a little later: some clients repeat a refused request at once, and this keeps both sides from a busy
  /// loop.
  void refuse_busy(const std::string& message);

  /// Unpacks the body if needed, and passes the request to its handler.
  void run();

  /// Returns true once status and headers are known; head() may be asked then.
  bool is_answered() const;
  const HttpAnswer& head() const { return head_; }
  /// Returns true if the length of the body to be sent is known; length() returns it.
  bool has_length() const { return has_length_; }
  std::size_t length() const { return length_; }
  bool is_compressed() const { return is_compressed_; }

  enum class Body { More, Waiting, Over, Cut };
  /// Appends at most `bytes_max` bytes of the body. Returns what comes after these bytes.
  Body take(std::string& to, std::size_t bytes_max);
  Body body_state() const;
  std::size_t bytes_taken() const { return bytes_taken_; }

  /// Called when the process ends: tells the handler to end its answer.
  void stop();
  /// Called when the client has gone away: nothing is sent any more.
  void leave();
  /// Called when the answer was sent, or never will be. Writes the access log, once.
  void finish(std::string_view protocol);

 private:
  /// Makes the answer's head. The mutex is held.
  void begin_locked(HttpAnswer& head, bool is_whole) FJORD_REQUIRES(mutex_);
  Body state_locked() const FJORD_REQUIRES(mutex_);
  void changed();
  bool unpack();
  void handle();
  /// Stops counting this request among those in progress.
  void release_locked() FJORD_REQUIRES(mutex_);

  HttpServer& server_;
  const std::weak_ptr<ExchangeHost> host_;
  HttpRequest request_;
  const int stream_;
  HttpClock::time_point begun_ = HttpClock::now();
  RequestInProgress progress_;
  HeldBytes held_;
  std::atomic<bool> is_away_{false};
  bool is_finished_ = false;
  std::size_t bytes_taken_ = 0;

  mutable std::mutex mutex_;
  HeldBytes answer_bytes_;
  HttpAnswer head_;  ///< Does not change once is_answered_.
  bool has_length_ = false;
  bool is_compressed_ = false;
  std::size_t length_ = 0;
  AnswerBody body_ FJORD_GUARDED_BY(mutex_);
  bool is_answered_ FJORD_GUARDED_BY(mutex_) = false;
  bool is_whole_ FJORD_GUARDED_BY(mutex_) = false;  ///< The handler has given the whole body.
  bool is_cut_ FJORD_GUARDED_BY(mutex_) = false;
  bool is_stopped_ FJORD_GUARDED_BY(mutex_) = false;
  std::function<void(bool)> then_ FJORD_GUARDED_BY(mutex_);
  std::function<void()> stop_ FJORD_GUARDED_BY(mutex_);
  bool is_admitted_ FJORD_GUARDED_BY(mutex_) = false;
  std::unique_ptr<StreamShares::Share> stream_share_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord::gateway
