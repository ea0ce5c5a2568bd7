#include "bucket_readers.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "fjord/common/hash.h"
#include "unreported_buckets.h"

namespace fjord::distributor {
namespace {

Status still_collecting() { return {StatusCode::NotReady, "the distributor is collecting bucket information"}; }

Status being_created() { return {StatusCode::NotReady, "its missing parts are being created"}; }

std::vector<std::uint16_t> readable_nodes(const BucketEntry& entry) {
  std::vector<std::uint16_t> readable = entry.intact();
  if (readable.empty()) readable = entry.set.nodes;
  return readable;
}

}  // namespace

std::uint64_t stable_us(const BucketEntry& entry, const std::map<std::uint64_t, std::uint64_t>& oldest) {
  std::uint64_t stable = entry.last_timestamp_us;
  const std::uint64_t first = entry.bucket.position();
  const std::uint64_t last = first + (entry.bucket.span() - 1);
  for (auto at = oldest.lower_bound(first); at != oldest.end() && at->first <= last; ++at) {
    stable = std::min(stable, at->second - 1);
  }
  return stable;
}

void BucketReaders::answer(const rpc::GetBucketNodes& request, rpc::Responder respond) {
  rpc::GetBucketNodesReply reply = bucket_nodes(request);
  const bool is_trusted = std::all_of(reply.buckets.begin(), reply.buckets.end(), [&](const rpc::BucketNode& one) {
    return !one.status || context_.may_trust_one(one.bucket);
  });
  if (is_trusted) {
    respond(std::move(reply));
    return;
  }
  std::set<std::uint16_t> members;
  for (const rpc::BucketNode& one : reply.buckets) {
    if (!one.status) continue;
    for (BucketId part : context_.buckets.overlapping(one.bucket)) {
      const std::vector<std::uint16_t>& nodes = context_.buckets.find(part)->set.nodes;
      members.insert(nodes.begin(), nodes.end());
    }
  }
  confirm_state(members, [reply = std::move(reply), respond = std::move(respond)](bool confirmed) mutable {
    if (!confirmed) {
      reply.buckets.clear();
      reply.status = Status(StatusCode::NotReady,
                            "the fleet controller has not been heard, and not all replicas confirm "
                            "that the cluster state is still in force");
    }
    respond(std::move(reply));
  });
}

void BucketReaders::confirm_state(const std::set<std::uint16_t>& nodes, UniqueFunction<void(bool)> done) {
  struct Answers {
    std::size_t left;
    UniqueFunction<void(bool)> done;
    bool confirmed = true;
  };
  auto answers = std::make_shared<Answers>(Answers{nodes.size(), std::move(done)});
  for (std::uint16_t node : nodes) {
    rpc::GetBucketInfo question;
    question.state_version = context_.snapshot->state_version();
    question.distributor = context_.options.index;
    rpc::call(context_.transport, context_.storage_address(node), std::move(question), context_.options.storage_timeout,
              context_.executor, [answers](Result<rpc::GetBucketInfoReply> reply) {
                answers->confirmed = answers->confirmed && reply && reply->status;
                if (--answers->left == 0) answers->done(answers->confirmed);
              });
  }
}

rpc::GetBucketNodesReply BucketReaders::bucket_nodes(const rpc::GetBucketNodes& request) {
  rpc::GetBucketNodesReply reply;
  if (context_.snapshot == nullptr) {
    reply.status = context_.no_state();
    return reply;
  }
  if (context_.snapshot->is_of_another_cluster(request.cluster_id)) {
    reply.status = context_.other_cluster();
    reply.newer_info = context_.snapshot->info_newer_than(0, 0);
    return reply;
  }
  reply.newer_info = context_.snapshot->info_newer_than(request.state_version, 0);
  if (!operations_.reads_go_on()) {
    reply.status = Status(StatusCode::Unavailable, context_.closed_text());
    return reply;
  }
  const bool all = request.all || request.for_changes;
  if (all && request.state_version != context_.snapshot->state_version()) {
    reply.status = Status(StatusCode::WrongDistribution, "the cluster state changed");
    return reply;
  }
  if (all && !context_.ready) {
    reply.status = still_collecting();
    return reply;
  }
  if (all) {
    // The visit fails for these parts of the space, and goes on with all others.
    for (const BucketId bucket : unreported_buckets(context_)) {
      const bool is_known_in_part = request.all && !context_.buckets.overlapping(bucket).empty();
      if (!is_known_in_part) reply.buckets.push_back({bucket, unreported(context_)});
    }
  }
  if (request.for_changes) {
    const auto oldest = operations_.oldest_under_way();
    for (auto& [key, entry] : context_.buckets) reply.buckets.push_back(node_for_changes(entry, oldest));
  } else if (request.all) {
    const unsigned bits = context_.snapshot->distribution_bits();
    for (auto& [key, entry] : context_.buckets) {
      const BucketId whole = entry.bucket.with_used_bits(bits);
      if (reply.buckets.empty() || reply.buckets.back().bucket != whole)
        reply.buckets.push_back(node_of(whole, request));
    }
  } else {
    for (BucketId bucket : request.buckets) reply.buckets.push_back(node_of(bucket, request));
  }
  return reply;
}

rpc::BucketNode BucketReaders::node_of(BucketId bucket, const rpc::GetBucketNodes& request) {
  if (context_.snapshot->distributor_of(bucket) != context_.options.index) {
    return {bucket, Status(StatusCode::WrongDistribution, "another distributor owns the bucket")};
  }
  const std::vector<BucketId> parts = context_.buckets.overlapping(bucket);
  if (!context_.ready && parts.empty()) return {bucket, still_collecting()};
  if (!context_.ready) return node_of(bucket, parts, request);
  const bool is_mine =
      bucket.used_bits() >= context_.snapshot->distribution_bits();  // With fewer bits a bucket has several owners.
  const bool has_gap = is_mine ? context_.buckets.has_gap(bucket) : parts.empty();
  if (has_gap && context_.unreported_buckets_may_exist()) return {bucket, unreported(context_)};
  if (parts.empty()) return {bucket, Status(StatusCode::NotFound, "there is no such bucket")};
  if (!has_gap) return node_of(bucket, parts, request);
  return {bucket, maintainer_.create_missing(bucket) ? being_created() : too_few_for_new(context_)};
}

rpc::BucketNode BucketReaders::node_of(BucketId bucket, const std::vector<BucketId>& parts,
                                       const rpc::GetBucketNodes& request) {
  std::vector<std::uint16_t> readable;
  bool even_damaged = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const BucketEntry& entry = *context_.buckets.find(parts[i]);
    if (const std::string* why = entry.unavailable_because()) return {bucket, Status(StatusCode::Unavailable, *why)};
    if (!entry.has_set_in_force() || entry.dirty) return {bucket, entry.not_in_sync()};
    const std::vector<std::uint16_t> nodes = readable_nodes(entry);
    even_damaged = even_damaged || entry.intact().empty();
    if (i == 0) {
      readable = nodes;
    } else {
      std::erase_if(readable, [&](auto node) { return std::find(nodes.begin(), nodes.end(), node) == nodes.end(); });
    }
  }
  if (readable.empty()) return {bucket, context_.buckets.find(parts.front())->not_in_sync()};
  std::vector<std::uint16_t> others;
  std::copy_if(readable.begin(), readable.end(), std::back_inserter(others), [&](auto node) {
    return std::find(request.avoid.begin(), request.avoid.end(), node) == request.avoid.end();
  });
  if (!others.empty()) readable = std::move(others);
  readable = latencies_.without_slow(std::move(readable), context_.clock.now());
  rpc::BucketNode found{.bucket = bucket, .status = Status::ok(), .even_damaged = even_damaged};
  if (!request.all) {
    found.node = readable[context_.random.below(readable.size())];
    return found;
  }
  // Chooses the same node each time all buckets are listed, so that the next visitor finds the state that an earlier
  // one has left on this node (docs/design/0011-incremental-refresh.md).
  found.node = *std::min_element(readable.begin(), readable.end(), [&](std::uint16_t a, std::uint16_t b) {
    return mix64(bucket.raw(), a) < mix64(bucket.raw(), b);
  });
  return found;
}

rpc::BucketNode BucketReaders::node_for_changes(const BucketEntry& entry,
                                                const std::map<std::uint64_t, std::uint64_t>& oldest) {
  if (const std::string* why = entry.unavailable_because()) {
    return {.bucket = entry.bucket, .status = Status(StatusCode::Unavailable, *why)};
  }
  if (!entry.serves() || entry.may_differ() || !entry.damaged.empty()) {
    return {.bucket = entry.bucket, .status = entry.not_in_sync()};
  }
  const std::vector<std::uint16_t> nodes = latencies_.without_slow(readable_nodes(entry), context_.clock.now());
  rpc::BucketNode found{.bucket = entry.bucket, .status = Status::ok()};
  found.node = nodes[context_.random.below(nodes.size())];
  found.epoch = entry.set.epoch;
  found.stable_us = stable_us(entry, oldest);
  return found;
}

}  // namespace fjord::distributor
