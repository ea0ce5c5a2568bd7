#pragma once

#include <string_view>

#include "fjord/common/status.h"

namespace fjord::rpc {

/// How the message of a NotReady ends if the machine at the address has just said that nobody listens there. That is
/// more than silence: the process has ended, or somebody between answers in its name. A transport says it of fresh
/// attempts only, not of calls that it gave up because of an earlier one.
inline constexpr std::string_view kRefused = ": connection refused";

/// A call ended with such a refusal.
inline bool is_refusal(const Status& status) {
  return status.code() == StatusCode::NotReady && std::string_view(status.message()).ends_with(kRefused);
}

/// A storage node refused a write because its disk fills up, and will have nothing of it later: not by a copy of the
/// message either (Apply::number).
inline bool is_lack_of_space(StatusCode code) { return code == StatusCode::Busy || code == StatusCode::NoSpace; }

}  // namespace fjord::rpc
