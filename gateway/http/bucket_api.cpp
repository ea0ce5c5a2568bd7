// Handlers of /cluster/v1: buckets and the replicas of a document.

#include <fmt/format.h>

#include "fjord/library/admin.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

constexpr std::uint64_t kBucketsMax = 10'000;

std::string checksum_text(std::uint64_t checksum) { return fmt::format("{:016x}", checksum); }

void write_document(const ReplicaInfo& replica, JsonText& json) {
  json.key("document").begin_object().key("version_unix_us");
  if (replica.document_version_us) {
    json.value(*replica.document_version_us);
  } else {
    json.null();
  }
  json.member("checksum", checksum_text(replica.document_checksum)).member("removed_unix_us", replica.removed_us);
  const bool is_answer = replica.document_status || replica.document_status.code() == StatusCode::NotFound;
  if (!is_answer) write_error("error", replica.document_status, json);
  json.end_object();
}

void write_bucket(const BucketReplicas& bucket, bool with_document, JsonText& json) {
  json.begin_object().member("bucket", bucket.bucket).member("bits", bucket.bits);
  json.member("distributor", bucket.distributor).member("state_version", bucket.state_version);
  json.member("state", to_string(bucket.state)).member("reason", bucket.reason).member("epoch", bucket.epoch);
  json.member("replica_set", bucket.replica_set).key("replicas").begin_array();
  for (const ReplicaInfo& replica : bucket.replicas) {
    json.begin_object().member("node", replica.node).member("state", replica.state);
    json.member("is_member", replica.is_member).member("is_damaged", replica.is_damaged);
    if (!replica.status) write_error("error", replica.status, json);
    json.member("bucket", replica.bucket).member("epoch", replica.epoch).member("documents", replica.documents);
    json.member("entries", replica.entries).member("bytes", replica.bytes);
    json.member("checksum", checksum_text(replica.checksum)).member("newest_unix_us", replica.newest_us);
    if (with_document && replica.status) write_document(replica, json);
    json.end_object();
  }
  json.end_array().end_object();
}

Status write_buckets(const Result<std::vector<BucketReplicas>>& buckets, bool with_document, JsonText& json) {
  FJORD_TRY(buckets.status());
  json.begin_object().key("buckets").begin_array();
  for (const BucketReplicas& bucket : *buckets) write_bucket(bucket, with_document, json);
  json.end_array().end_object();
  return Status::ok();
}

Status list_unhealthy(Client& client, const ApiCall& call, JsonText& json) {
  FJORD_TRY_ASSIGN(const std::uint64_t max, call.count("max", 100, 1, kBucketsMax));
  FJORD_TRY_ASSIGN(const bool is_lost, call.query.flag("lost", false));
  FJORD_TRY_ASSIGN(UnhealthyBuckets found,
                   is_lost ? client.admin().lost_buckets() : client.admin().unhealthy_buckets(max));
  if (found.buckets.size() > max) {
    found.buckets.resize(max);
    found.more = true;
  }
  json.begin_object().key("buckets").begin_array();
  for (const UnhealthyBucket& bucket : found.buckets) {
    json.begin_object().member("bucket", bucket.bucket).member("state", to_string(bucket.state));
    json.member("reason", bucket.reason).member("members", bucket.members).member("damaged", bucket.damaged);
    json.member("catching_up", bucket.catching_up).end_object();
  }
  json.end_array().member("silent", found.silent).member("more", found.more).end_object();
  return Status::ok();
}

}  // namespace

void add_bucket_routes(RouteTable& routes, Client& client) {
  routes.add_waiting("GET", "/cluster/v1/buckets", {"max", "lost"},
                     [&client](const ApiCall& call, JsonText& json) { return list_unhealthy(client, call, json); });
  routes.add_waiting("GET", "/cluster/v1/buckets/{bucket}", {}, [&client](const ApiCall& call, JsonText& json) {
    return write_buckets(client.admin().bucket(call.part("bucket")), false, json);
  });
  routes.add_waiting("GET", "/cluster/v1/replicas", {"id"}, [&client](const ApiCall& call, JsonText& json) -> Status {
    FJORD_TRY_ASSIGN(const std::string id, call.required("id"));
    return write_buckets(client.admin().bucket_of(id), true, json);
  });
}

}  // namespace fjord::gateway
