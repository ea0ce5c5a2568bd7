#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/bucket_text.h"
#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "output/json_text.h"
#include "output/time_text.h"

namespace fjord::cli {
namespace {

std::string newest_text(std::uint64_t timestamp_us) {
  if (timestamp_us == 0) return "-";
  return fmt::format("{}.{:06}", time_text(static_cast<std::int64_t>(timestamp_us)), timestamp_us % 1'000'000);
}

/// Returns version and checksum of the document in a replica; "-" and the error without one; "removed" as checksum for
/// a remove entry.
std::pair<std::string, std::string> document_of(const ReplicaInfo& replica) {
  if (replica.document_version_us) {
    return {std::to_string(*replica.document_version_us), fmt::format("{:016x}", replica.document_checksum)};
  }
  const StatusCode code = replica.document_status.code();
  if (code != StatusCode::NotFound) return {"-", std::string(to_string(code))};
  if (replica.removed_us == 0) return {"-", "none"};
  return {std::to_string(replica.removed_us), "removed"};
}

std::string as_text(const std::vector<BucketReplicas>& buckets, bool has_document) {
  std::string text;
  for (const BucketReplicas& bucket : buckets) {
    text += fmt::format("bucket {}: {} bits, {}, replica set {} of epoch {}, {}\n", bucket.bucket, bucket.bits,
                        bucket.distributor, fmt::join(node_numbers(bucket.replica_set), ","), bucket.epoch,
                        to_string(bucket.state));
    if (!bucket.reason.empty()) text += fmt::format("  {}\n", bucket.reason);
    text += fmt::format("{:<12} {:<22} {:>9} {:>9} {:>12} {:<16} {:<26}{}\n", "NODE", "STATE", "DOCUMENTS", "ENTRIES",
                        "BYTES", "CHECKSUM", "NEWEST", has_document ? " VERSION          CONTENT" : "");
    for (const ReplicaInfo& replica : bucket.replicas) {
      text += fmt::format("{:<12} {:<22} ", replica.node, replica.state);
      if (!replica.status) {
        text += replica.status.message() + "\n";
        continue;
      }
      text += fmt::format("{:>9} {:>9} {:>12} {:016x} {:<26}", replica.documents, replica.entries, replica.bytes,
                          replica.checksum, newest_text(replica.newest_us));
      if (has_document) {
        const auto [version, content] = document_of(replica);
        text += fmt::format(" {:<16} {}", version, content);
      }
      text += "\n";
    }
  }
  return text;
}

void add_document(JsonText& json, const ReplicaInfo& replica) {
  json.key("document").begin_object();
  json.key("status").text(to_string(replica.document_status.code()));
  if (replica.document_version_us) {
    json.key("version").number(*replica.document_version_us);
    json.key("checksum").text(fmt::format("{:016x}", replica.document_checksum));
  } else if (replica.removed_us != 0) {
    json.key("removed_at").number(replica.removed_us);
  }
  json.end_object();
}

void add_replica(JsonText& json, const ReplicaInfo& replica, bool has_document) {
  json.begin_object().key("node").text(replica.node);
  json.key("state").text(replica.state).key("damaged").boolean(replica.is_damaged);
  json.key("status").text(to_string(replica.status.code()));
  if (!replica.status) {
    json.key("why").text(replica.status.message()).end_object();
    return;
  }
  json.key("bucket").text(replica.bucket).key("epoch").text(replica.epoch);
  json.key("documents").number(replica.documents).key("entries").number(replica.entries);
  json.key("bytes").number(replica.bytes).key("checksum").text(fmt::format("{:016x}", replica.checksum));
  json.key("newest_us").number(replica.newest_us);
  if (has_document) add_document(json, replica);
  json.end_object();
}

std::string as_json(const std::vector<BucketReplicas>& buckets, const std::string& document) {
  std::string text;
  for (const BucketReplicas& bucket : buckets) {
    JsonText json;
    json.begin_object().key("bucket").text(bucket.bucket).key("bits").number(bucket.bits);
    if (!document.empty()) json.key("id").text(document);
    json.key("distributor").text(bucket.distributor);
    json.key("state_version").number(bucket.state_version).key("state").text(to_string(bucket.state));
    if (!bucket.reason.empty()) json.key("why").text(bucket.reason);
    json.key("epoch").text(bucket.epoch).key("replica_set").begin_array();
    for (const std::string& node : bucket.replica_set) json.text(node);
    json.end_array().key("replicas").begin_array();
    for (const ReplicaInfo& replica : bucket.replicas) add_replica(json, replica, !document.empty());
    text += json.end_array().end_object().str() + "\n";
  }
  return text;
}

}  // namespace

int run_bucket_show(const BucketArgs& args) {
  const bool is_document = args.id.find(':') != std::string::npos;
  const Status well_formed = is_document ? DocumentId::parse(args.id).status() : bucket_name(args.id).status();
  if (!well_formed) return report(well_formed);
  return with_admin(args.common, [&](Admin admin) {
    const auto buckets = is_document ? admin.bucket_of(args.id) : admin.bucket(args.id);
    if (!buckets) return report(buckets.error());
    const std::string document = is_document ? args.id : std::string();
    print(args.common.json() ? as_json(*buckets, document) : as_text(*buckets, is_document));
    return static_cast<int>(kOk);
  });
}

}  // namespace fjord::cli
