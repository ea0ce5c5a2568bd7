#include "fjord/library/detail/admin_calls.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <unistd.h>

#include "fjord/document/document_id.h"

namespace fjord {

namespace {

constexpr auto kRetryPause = std::chrono::milliseconds(200);

}  // namespace

std::string who_am_i() {
  const char* user = std::getenv("USER");
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = 0;
  return (user != nullptr && *user != 0 ? std::string(user) : "uid " + std::to_string(::getuid())) + "@" + host.data();
}

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

Result<rpc::ShowBucketReply> show_bucket(Connection& connection, const rpc::ShowBucket& request, Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(timeout.count());
  for (;;) {
    const auto snapshot = connection.client().snapshot();
    Result<rpc::ShowBucketReply> reply = Status(StatusCode::Unavailable, "no distributor is up");
    BucketId bucket = request.bucket;
    if (!request.id.empty()) {
      FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse(request.id));
      bucket = snapshot->bucket_of(id.gid());
    }
    const auto owner = snapshot->distributor_of(bucket);
    const auto& addresses = snapshot->info().distributor_addresses;
    if (owner && *owner < addresses.size()) reply = ask_node(connection, addresses[*owner], request, timeout);
    if (reply || !is_transient(reply.error().code()) || std::chrono::steady_clock::now() > deadline) return reply;
    std::this_thread::sleep_for(kRetryPause);
    (void)connection.sync().refresh_schemas();
  }
}

}  // namespace fjord
