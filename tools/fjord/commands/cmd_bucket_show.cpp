#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/ask_cluster.h"
#include "commands/bucket_names.h"
#include "commands/commands.h"
#include "fjord/document/document_id.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

using Role = rpc::ReplicaRole;
using Trouble = rpc::BucketTroubleKind;

/// Returns the state of a replica: "member", "catching up, damaged", "member, no answer".
std::string state_of(const rpc::BucketReplica& replica, const rpc::BucketView& view) {
  std::string state = "unknown";
  switch (replica.role) {
    case Role::Member:
      state = view.replica_set.nodes.front() == replica.node ? "primary" : "member";
      break;
    case Role::CatchingUp:
      state = "catching up";
      break;
    case Role::Obsolete:
      state = "obsolete";
      break;
    case Role::Unlisted:
      state = "unlisted";
      break;
    case Role::Unknown:
      break;
  }
  if (replica.damaged) state += ", damaged";
  if (!replica.status) state += replica.status.code() == StatusCode::NotFound ? ", not there" : ", no answer";
  if (replica.status && replica.bucket != view.bucket) state += ", as " + bucket_name(replica.bucket);
  return state;
}

std::string_view text_of(Trouble trouble) {
  switch (trouble) {
    case Trouble::OutOfSync:
      return "out of sync";
    case Trouble::Damaged:
      return "damaged";
    case Trouble::Lost:
      return "lost";
    case Trouble::Unavailable:
      return "unavailable";
    case Trouble::Unknown:
      break;
  }
  return "in sync";
}

std::string epoch_text(std::uint64_t epoch) {
  const ReplicaSet set{epoch, {}};
  return fmt::format("{}.{}", set.state_version(), epoch & ((std::uint64_t{1} << ReplicaSet::kStepBits) - 1));
}

std::string newest_text(std::uint64_t timestamp_us) {
  if (timestamp_us == 0) return "-";
  return fmt::format("{}.{:06}", time_text(static_cast<std::int64_t>(timestamp_us)), timestamp_us % 1'000'000);
}

/// Returns version and checksum of the document in a replica; "-" and the error without one; "removed" as checksum for
/// a remove entry.
std::pair<std::string, std::string> document_of(const rpc::BucketReplica& replica) {
  if (replica.document) return {std::to_string(replica.timestamp_us), fmt::format("{:016x}", replica.checksum)};
  if (replica.document.code() != StatusCode::NotFound) return {"-", std::string(to_string(replica.document.code()))};
  if (replica.timestamp_us == 0) return {"-", "none"};
  return {std::to_string(replica.timestamp_us), "removed"};
}

std::string as_text(const rpc::ShowBucketReply& reply, const std::string& document) {
  std::string text;
  for (const rpc::BucketView& view : reply.buckets) {
    text +=
        fmt::format("bucket {}: {} bits, distributor.{}, replica set {} of epoch {}, {}\n", bucket_name(view.bucket),
                    view.bucket.used_bits(), reply.distributor, fmt::join(view.replica_set.nodes, ","),
                    epoch_text(view.replica_set.epoch), text_of(view.trouble));
    if (!view.reason.empty()) text += fmt::format("  {}\n", view.reason);
    text += fmt::format("{:<12} {:<22} {:>9} {:>9} {:>12} {:<16} {:<26}{}\n", "NODE", "STATE", "DOCUMENTS", "ENTRIES",
                        "BYTES", "CHECKSUM", "NEWEST", document.empty() ? "" : " VERSION          CONTENT");
    for (const rpc::BucketReplica& replica : view.replicas) {
      text += fmt::format("{:<12} {:<22} ", fmt::format("storage.{}", replica.node), state_of(replica, view));
      if (!replica.status) {
        text += replica.status.message() + "\n";
        continue;
      }
      text += fmt::format("{:>9} {:>9} {:>12} {:016x} {:<26}", replica.info.documents, replica.info.entries,
                          replica.info.bytes, replica.info.checksum, newest_text(replica.info.max_timestamp_us));
      if (!document.empty()) {
        const auto [version, content] = document_of(replica);
        text += fmt::format(" {:<16} {}", version, content);
      }
      text += "\n";
    }
  }
  return text;
}

void add_document(JsonText& json, const rpc::BucketReplica& replica) {
  json.key("document").begin_object();
  json.key("status").text(to_string(replica.document.code()));
  if (replica.document) {
    json.key("version").number(replica.timestamp_us).key("checksum").text(fmt::format("{:016x}", replica.checksum));
  } else if (replica.timestamp_us != 0) {
    json.key("removed_at").number(replica.timestamp_us);
  }
  json.end_object();
}

void add_replica(JsonText& json, const rpc::BucketReplica& replica, const rpc::BucketView& view, bool has_document) {
  json.begin_object().key("node").text(fmt::format("storage.{}", replica.node));
  json.key("state").text(state_of(replica, view)).key("damaged").boolean(replica.damaged);
  json.key("status").text(to_string(replica.status.code()));
  if (!replica.status) {
    json.key("why").text(replica.status.message()).end_object();
    return;
  }
  json.key("bucket").text(bucket_name(replica.bucket)).key("epoch").text(epoch_text(replica.replica_set.epoch));
  json.key("documents").number(replica.info.documents).key("entries").number(replica.info.entries);
  json.key("bytes").number(replica.info.bytes).key("checksum").text(fmt::format("{:016x}", replica.info.checksum));
  json.key("newest_us").number(replica.info.max_timestamp_us);
  if (has_document) add_document(json, replica);
  json.end_object();
}

std::string as_json(const rpc::ShowBucketReply& reply, const std::string& document) {
  std::string text;
  for (const rpc::BucketView& view : reply.buckets) {
    JsonText json;
    json.begin_object().key("bucket").text(bucket_name(view.bucket)).key("bits").number(view.bucket.used_bits());
    if (!document.empty()) json.key("id").text(document);
    json.key("distributor").text(fmt::format("distributor.{}", reply.distributor));
    json.key("state_version").number(reply.state_version).key("state").text(text_of(view.trouble));
    if (!view.reason.empty()) json.key("why").text(view.reason);
    json.key("epoch").text(epoch_text(view.replica_set.epoch)).key("replica_set").begin_array();
    for (const std::uint16_t node : view.replica_set.nodes) json.text(fmt::format("storage.{}", node));
    json.end_array().key("replicas").begin_array();
    for (const rpc::BucketReplica& replica : view.replicas) add_replica(json, replica, view, !document.empty());
    text += json.end_array().end_object().str() + "\n";
  }
  return text;
}

}  // namespace

int run_bucket_show(const BucketArgs& args) {
  rpc::ShowBucket request;
  if (args.id.find(':') != std::string::npos) {
    if (const auto id = DocumentId::parse(args.id); !id) return report(id.error());
    request.id = args.id;
  } else {
    const Result<BucketId> bucket = bucket_named(args.id);
    if (!bucket) return report(bucket.error());
    request.bucket = *bucket;
  }
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  const Result<rpc::ShowBucketReply> reply = show_bucket(**connection, request, args.common.timeout());
  if (!reply) return report(reply.error());
  print(args.common.json() ? as_json(*reply, request.id) : as_text(*reply, request.id));
  return kOk;
}

}  // namespace fjord::cli
