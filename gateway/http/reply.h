#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "http/message.h"

namespace fjord::gateway {

/// The receiver of an answer, implemented by the transport. HttpReply describes the calls.
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
  virtual bool take_stream() { return true; }
};

/// The answer of one request, in one piece or in many, whatever the protocol of the connection. Copies are the same
/// answer.
///
/// Threading: any thread, but between begin() and end() one call at a time. Callbacks come on a thread of the transport
/// and must not wait.
/// Lifetime: if the last copy is destroyed without an answer, the client gets 500; within a streamed answer, the answer
/// is cut.
class HttpReply {
 public:
  explicit HttpReply(std::shared_ptr<AnswerSink> sink) : owner_(std::make_shared<Owner>(std::move(sink))) {}

  /// Answers with a whole body. Later answers are ignored. A reply can be given where an HttpDone is expected.
  void answer(HttpAnswer answer) const { owner_->sink->answer(std::move(answer)); }
  void operator()(HttpAnswer answer) const { owner_->sink->answer(std::move(answer)); }

  /// Begins a streamed answer. The body of `head` is its first piece and can be empty.
  void begin(HttpAnswer head) const { owner_->sink->begin(std::move(head)); }
  /// Sends a piece. `then` is called once: with true, on another thread, when the next piece may come; with false,
  /// maybe within this call, if the client has gone away. Wait for it before the next piece, because pieces are kept in
  /// memory until then.
  void write(std::string piece, std::function<void(bool is_open)> then) const {
    owner_->sink->write(std::move(piece), std::move(then));
  }
  /// Sends a piece and waits until the next piece may come. Returns false if the client has gone away. Call it only on
  /// a thread that may wait.
  bool write_and_wait(std::string piece) const;
  /// Ends a streamed answer whose body is whole.
  void end() const { owner_->sink->end(); }
  /// Ends a streamed answer so that the client sees that its body is not whole. Before begin(): answers 500.
  void cut() const { owner_->sink->cut(); }

  /// Takes one of the long answers that the client may have at the same time, until this one has ended. Returns false
  /// if it has all of them. Call it before the work on an answer that lasts as long as the client likes.
  bool take_stream() const { return owner_->sink->take_stream(); }

  /// Returns false once the client has gone away; then nothing is sent any more.
  bool is_open() const { return owner_->sink->is_open(); }
  /// Calls `stop` once when the client goes away or the process ends; immediately if that has happened already. The
  /// handler then ends its work, and its answer if is_open(), within a second or two. When the answer has ended, `stop`
  /// and all that it holds is destroyed.
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
