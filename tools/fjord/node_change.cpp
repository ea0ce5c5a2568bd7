#include "node_change.h"

#include "ask_cluster.h"

namespace fjord::cli {

Result<rpc::ChangeNodesReply> change_nodes(Connection& connection, rpc::ChangeNodes request, Duration timeout) {
  constexpr int kAttemptsMax = 10;
  request.if_unchanged = !request.dry_run && request.action != rpc::NodeAction::Stop;
  for (int attempt = 1;; ++attempt) {
    if (request.if_unchanged) {
      FJORD_TRY_ASSIGN(const rpc::GetStatusReply seen, ask_cluster(connection, rpc::GetStatus{}, timeout));
      request.unchanged_since_us = seen.changed_unix_us;
    }
    auto reply = ask_cluster(connection, request, timeout);
    if (reply || reply.error().code() != StatusCode::TestAndSetFailed || attempt == kAttemptsMax) return reply;
  }
}

}  // namespace fjord::cli
