#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fjord/rpc/transport.h"

namespace fjord::test {

/// A transport whose answers come from the test, each after `delay` on the caller's executor. A call without an answer
/// ends with Timeout at its deadline, as the seam promises.
/// Threading: one thread.
class ScriptedTransport final : public rpc::Transport {
 public:
  struct Sent {
    rpc::Address to;
    rpc::Request request;
    Duration timeout;
  };
  /// Returns the answer to a call; empty: no answer.
  using Script = std::function<std::optional<Result<rpc::Reply>>(const rpc::Address& to, rpc::Request& request)>;

  void set_script(Script script) { script_ = std::move(script); }
  void set_delay(Duration delay) { delay_ = delay; }
  /// Replaces the common delay by one for each call.
  void set_delay_of(std::function<Duration(const rpc::Address& to, const rpc::Request& request)> delay_of) {
    delay_of_ = std::move(delay_of);
  }
  const std::vector<Sent>& sent() const { return sent_; }

  /// Returns the requests of one kind, oldest first.
  template <typename R>
  std::vector<R> sent_of() const {
    std::vector<R> requests;
    for (const Sent& call : sent_) {
      if (const R* request = std::get_if<R>(&call.request)) requests.push_back(*request);
    }
    return requests;
  }

  void call(const rpc::Address& to, rpc::Request request, Duration timeout, Executor& executor,
            rpc::ReplyFunction done) override {
    sent_.push_back({to, request, timeout});
    std::optional<Result<rpc::Reply>> answer = script_(to, request);
    Duration delay = delay_of_ ? delay_of_(to, sent_.back().request) : delay_;
    if (!answer || delay > timeout) {
      answer = Result<rpc::Reply>(Status(StatusCode::Timeout, "no answer from " + to));
      delay = timeout;
    }
    executor.post_after(delay,
                        [done = std::move(done), answer = std::move(*answer)]() mutable { done(std::move(answer)); });
  }

 private:
  Script script_;
  Duration delay_ = milliseconds(1);
  std::function<Duration(const rpc::Address& to, const rpc::Request& request)> delay_of_;
  std::vector<Sent> sent_;
};

}  // namespace fjord::test
