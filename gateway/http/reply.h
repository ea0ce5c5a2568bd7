#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "http/message.h"

namespace fjord::gateway {

/// Where an answer goes: implemented by the transport. See HttpReply for what the calls mean.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void answer(HttpAnswer answer) = 0;
  virtual void begin(HttpAnswer head) = 0;
  virtual void write(std::string piece, std::function<void(bool is_open)> then) = 0;
  virtual void end() = 0;
  virtual void cut() = 0;
  virtual bool is_open() const = 0;
  virtual void on_stop(std::function<void()> stop) = 0;
};

/// The answer of one request, in one piece or in many, whatever the protocol of the connection. Copies are the same
/// answer.
///
/// Threading: any thread, but between begin() and end() one call at a time. Callbacks come on a thread of the
/// transport and must not wait.
/// Lifetime: when the last copy goes without an answer, the client gets 500; within a streamed answer, it is cut.
class HttpReply {
 public:
  explicit HttpReply(std::shared_ptr<AnswerSink> sink) : owner_(std::make_shared<Owner>(std::move(sink))) {}

  /// Answers with a whole body. Later answers are ignored. A reply can be given where an HttpDone is expected.
  void answer(HttpAnswer answer) const { owner_->sink->answer(std::move(answer)); }
  void operator()(HttpAnswer answer) const { owner_->sink->answer(std::move(answer)); }

  /// Begins a streamed answer. The body of `head` is its first piece and can be empty.
  void begin(HttpAnswer head) const { owner_->sink->begin(std::move(head)); }
  /// Sends a piece. `then` is called once: with true when the next piece may come, and not within this call; with false
  /// if the client is away. Wait for it before the next piece: what was written before is kept in memory.
  void write(std::string piece, std::function<void(bool is_open)> then) const {
    owner_->sink->write(std::move(piece), std::move(then));
  }
  /// Sends a piece and waits until the next may come. Returns false if the client is away. Only on a thread that may
  /// wait.
  bool write_and_wait(std::string piece) const;
  /// The streamed body is whole.
  void end() const { owner_->sink->end(); }
  /// Ends a streamed answer so that the client sees that it is not whole; before begin(): answers 500.
  void cut() const { owner_->sink->cut(); }

  /// Returns false once the client is away: nothing is sent any more.
  bool is_open() const { return owner_->sink->is_open(); }
  /// Calls `stop` once when the client goes away or the process ends, at once if that has happened: the handler ends
  /// its work, and its answer if is_open(), within a second or two. Dropped, with all that it holds, when the answer
  /// has ended.
  void on_stop(std::function<void()> stop) const { owner_->sink->on_stop(std::move(stop)); }

 private:
  struct Owner {
    explicit Owner(std::shared_ptr<AnswerSink> given) : sink(std::move(given)) {}
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() { sink->cut(); }
    const std::shared_ptr<AnswerSink> sink;
  };
  std::shared_ptr<Owner> owner_;
};

/// Returns a token whose stop is requested when the client goes away or the process ends.
std::stop_token stop_of(const HttpReply& reply);

/// Answers a request. `request` is valid during the call. Called on a thread of the transport: must not wait.
using HttpHandler = std::function<void(const HttpRequest& request, HttpReply reply)>;

}  // namespace fjord::gateway
