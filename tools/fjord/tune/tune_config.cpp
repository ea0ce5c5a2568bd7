#include "tune/tune_config.h"

#include <algorithm>

#include "commands/ask_cluster.h"

namespace fjord::cli {
namespace {

/// Returns the version that a change has made, if its answer was lost.
Result<std::uint64_t> find_made(Connection& connection, Duration timeout, const std::string& who, const Status& lost) {
  FJORD_TRY_ASSIGN(const rpc::GetConfigReply config, ask_cluster(connection, rpc::GetConfig{}, timeout));
  const auto made = std::find_if(config.versions.begin(), config.versions.end(),
                                 [&](const rpc::ConfigChange& version) { return version.who == who; });
  if (made == config.versions.end()) return lost;
  return made->version;
}

}  // namespace

Result<std::uint64_t> change_if_unchanged(Connection& connection, Duration timeout, rpc::ChangeConfig request,
                                          std::uint64_t seen) {
  request.if_version = true;
  request.version = seen;
  const std::string who = request.who;
  const auto reply = ask_cluster(connection, std::move(request), timeout);
  if (reply) return reply->config_version;
  if (reply.error().code() == StatusCode::Timeout) return find_made(connection, timeout, who, reply.error());
  if (reply.error().code() == StatusCode::TestAndSetFailed)
    return Status(StatusCode::Busy, "somebody else has changed the configuration meanwhile");
  return reply.error();
}

}  // namespace fjord::cli
