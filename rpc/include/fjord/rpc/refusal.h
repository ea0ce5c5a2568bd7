#pragma once

#include <string_view>

#include "fjord/common/status.h"

namespace fjord::rpc {

/// End of the message of a NotReady after a refused connection: the machine at the address has just reported that no
/// process listens there. Either the process has ended, or a firewall on the way answers for it. A transport uses this
/// message only for the attempt to connect itself, not for calls that fail because of an earlier attempt.
inline constexpr std::string_view kRefused = ": connection refused";

/// Returns true if a call ended with a refused connection.
inline bool is_refusal(const Status& status) {
  return status.code() == StatusCode::NotReady && std::string_view(status.message()).ends_with(kRefused);
}

/// Returns true if `code` says that a storage node refused a write because its disk is filling up. The node has not
/// stored the write, and also refuses later duplicates of the same message (Apply::number).
inline bool is_lack_of_space(StatusCode code) { return code == StatusCode::Busy || code == StatusCode::NoSpace; }

}  // namespace fjord::rpc
