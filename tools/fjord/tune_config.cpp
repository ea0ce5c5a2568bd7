#include "tune_config.h"

#include <algorithm>
#include <fmt/format.h>

#include "ask_cluster.h"
#include "tune_change.h"

namespace fjord::cli {
namespace {

/// The version that a change has made, though its answer was lost.
Result<std::uint64_t> find_made(Connection& connection, Duration timeout, const std::string& who, const Status& lost) {
  FJORD_TRY_ASSIGN(const rpc::GetConfigReply config, ask_cluster(connection, rpc::GetConfig{}, timeout));
  const auto made = std::find_if(config.versions.begin(), config.versions.end(),
                                 [&](const rpc::ConfigChange& version) { return version.who == who; });
  if (made == config.versions.end()) return lost;
  return made->version;
}

}  // namespace

Result<std::uint64_t> change_if_unchanged(Connection& connection, Duration timeout, rpc::ChangeConfig request,
                                          const std::string& id, std::uint64_t seen) {
  FJORD_TRY_ASSIGN(const rpc::GetConfigReply before, ask_cluster(connection, rpc::GetConfig{}, timeout));
  if (before.config_version != seen) {
    return Status(StatusCode::Busy, "somebody else has changed the configuration meanwhile");
  }
  const std::string who = request.who;
  const auto reply = ask_cluster(connection, std::move(request), timeout);
  if (!reply && reply.error().code() == StatusCode::Timeout) return find_made(connection, timeout, who, reply.error());
  if (!reply) return reply.error();
  if (reply->config_version <= seen + 1) return reply->config_version;
  FJORD_TRY_ASSIGN(const rpc::GetConfigReply after, ask_cluster(connection, rpc::GetConfig{}, timeout));
  rpc::ChangeConfig give_back = give_back_request(after.versions, seen, reply->config_version);
  if (give_back.set.empty() && give_back.unset.empty()) return reply->config_version;
  give_back.who = fmt::format("revert of {} {}: somebody else has set it at the same moment", id, who_am_i());
  FJORD_TRY(ask_cluster(connection, std::move(give_back), timeout).status());
  return Status(StatusCode::Busy, "somebody else has set it at the same moment; their value stays");
}

}  // namespace fjord::cli
