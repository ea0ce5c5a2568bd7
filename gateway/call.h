#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "call_frame.h"
#include "client_types.h"
#include "fjord/common/clock.h"
#include "fjord/common/status.h"
#include "fjord/common/tunable.h"
#include "fjord/rpc/frame_service.h"

namespace fjord::gateway {

namespace api = fjord::api::client;
using WireStatus = fjord::api::Status;

/// Number of calls without an answer. Threading: any thread.
using CallCount = std::atomic<std::int64_t>;

/// Returns the answer to a value of `timeout_ms`: 30 s by default, at most 10 minutes.
inline Duration timeout_of(std::int64_t timeout_ms) {
  if (timeout_ms <= 0) return seconds(30);
  return milliseconds(std::min<std::int64_t>(timeout_ms, 600'000));
}

/// Returns the error of a call that exceeds the limit of a setting.
inline Status over_limit(StatusCode code, const std::string& message, const Tunable& setting) {
  const std::string& name = setting.declaration().name;
  return {code, message + " (" + name + ")", {.limit = std::to_string(setting.value()), .setting = name}};
}

/// `node` is the process that answers; the answer names it if the status names no other node.
inline WireStatus wire_status(const Status& status, const std::string& node) {
  WireStatus wire;
  wire.code = static_cast<std::int32_t>(status.code());
  wire.message = status.message();
  wire.__set_node(status.node().empty() ? node : status.node());
  wire.__set_limit(status.limit());
  wire.__set_setting(status.setting());
  return wire;
}

/// The part of a call that does not depend on the type of its answer.
class CallState {
 public:
  CallState(CallHeader header, rpc::FrameService::Answer answer, std::string node, std::shared_ptr<CallCount> count)
      : header_(std::move(header)), answer_(std::move(answer)), node_(std::move(node)), count_(std::move(count)) {
    ++*count_;
  }
  CallState(const CallState&) = delete;
  CallState& operator=(const CallState&) = delete;
  ~CallState() {
    if (!is_answered()) send(write_failure(header_, "the process ended before the call"));
  }

  bool is_answered() const { return is_answered_; }
  const CallHeader& header() const { return header_; }
  const std::string& node() const { return node_; }
  /// Sends the frame if the call has no answer yet.
  void send(std::string frame) {
    if (is_answered_.exchange(true)) return;
    --*count_;
    answer_(std::move(frame));
  }

 private:
  const CallHeader header_;
  const rpc::FrameService::Answer answer_;
  const std::string node_;
  const std::shared_ptr<CallCount> count_;
  std::atomic<bool> is_answered_{false};
};

/// One call, to be answered once; further answers have no effect. Copies are the same call. If all copies are destroyed
/// without an answer, the client gets a Thrift exception. Threading: any thread.
template <typename ReplyType>
class Call {
 public:
  using Reply = ReplyType;
  explicit Call(std::shared_ptr<CallState> state) : state_(std::move(state)) {}

  /// Answers; a reply without a status gets OK.
  void answer(Reply reply) const {
    if (state_->is_answered()) return;
    if (!reply.__isset.status) reply.__set_status(status_of(Status::ok()));
    state_->send(write_reply(state_->header(), reply));
  }
  /// Answers with a status alone.
  void end(const Status& status) const {
    Reply reply;
    reply.__set_status(status_of(status));
    answer(std::move(reply));
  }
  bool is_answered() const { return state_->is_answered(); }
  const std::string& node() const { return state_->node(); }
  WireStatus status_of(const Status& status) const { return wire_status(status, state_->node()); }

 private:
  std::shared_ptr<CallState> state_;
};

}  // namespace fjord::gateway
