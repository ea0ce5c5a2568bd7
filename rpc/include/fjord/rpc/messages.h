#pragma once

#include <cstddef>
#include <tuple>

#include "fjord/rpc/calls.h"

/// All messages between nodes and clients, as plain structs. Each call has one request and one reply. The build makes
/// the structs from api/fjord.thrift (rpc/generate), one header for each service: a file that needs one service
/// includes that header alone. The translation to bytes is in rpc/codec. A message with document operations is a batch,
/// and each operation has its own status. The parts of a document are opaque bytes here (document/FORMAT.md).
namespace fjord::rpc {

/// Returns the name of the call: "execute" for an Execute, for example.
const char* name_of(const Request& request);
/// Returns a reply of the type that belongs to `request`, with nothing but `status` in it.
Reply error_reply(const Request& request, Status status);
/// Returns the status of the call as a whole, which every reply has.
const Status& status_of(const Reply& reply);

/// The longest Operation::token that is accepted, in bytes.
inline constexpr std::size_t kTokenBytesMax = 64;
/// The size of one EntryKey, for limits in bytes.
inline constexpr std::size_t kEntryKeyBytes = 24;
/// The values of ExecuteStrict::features that this version of the distributor knows.
inline constexpr const char* kStrictFeatures[] = {"required_version", "node"};

/// Returns true for a write that depends on the stored document. It holds the document's lock exclusively.
inline bool reads_first(const Operation& operation) {
  if (operation.kind == OperationKind::Get) return false;
  return operation.kind == OperationKind::Update || !operation.condition.empty() || !operation.token.empty() ||
         operation.required_version.has_value();
}

/// Returns true if the operation must be sent in ExecuteStrict, because an older receiver of Execute would ignore one
/// of its fields and do harm.
inline bool is_strict(const Operation& operation) {
  return operation.required_version.has_value() || operation.node.has_value();
}

/// Returns true if `a` is a newer status of the same job than `b`.
inline bool is_newer(const JobStatus& a, const JobStatus& b) {
  const auto rank = [](const JobStatus& job) {
    return std::tuple(job.finished_unix_us != 0, job.epoch, job.live, job.revision);
  };
  return rank(a) > rank(b);
}

}  // namespace fjord::rpc
