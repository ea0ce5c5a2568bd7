#include "maintenance/replica_census.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fjord/common/log.h"

namespace fjord::distributor {
namespace {

/// Largest number of buckets in one look: small enough that a storage node answers in some milliseconds.
constexpr std::size_t kBucketsMax = 1000;

}  // namespace

void ReplicaCensus::forget() {
  ++round_;
  questions_ = 0;
  missing_.clear();
}

void ReplicaCensus::look() {
  if (!context_.ready || questions_ > 0) return;
  std::map<std::uint16_t, Asked> asked;
  for (std::size_t i = 0; i < kBucketsMax; ++i) {
    const BucketEntry* entry = context_.buckets.find_from(cursor_);
    cursor_ = entry == nullptr ? 0 : entry->bucket.sort_key() + 1;
    if (entry == nullptr) break;
    if (!entry->serves() || entry->set.epoch == 0) continue;
    for (const std::uint16_t node : entry->set.nodes) {
      if (context_.snapshot->storage_serves(node)) asked[node].push_back(entry->ticket());
    }
  }
  questions_ = asked.size();
  for (auto& [node, tickets] : asked) ask(node, std::move(tickets));
}

void ReplicaCensus::ask(std::uint16_t node, Asked asked) {
  rpc::GetBucketInfo request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  for (const BucketTicket& ticket : asked) request.buckets.push_back(ticket.bucket);
  rpc::call(context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
            context_.executor,
            [this, node, asked = std::move(asked), round = round_,
             generation = context_.generation](Result<rpc::GetBucketInfoReply> reply) {
              if (generation != context_.generation || round != round_) return;
              if (reply && reply->status) on_reports(node, asked, *reply);
              if (--questions_ > 0 || missing_.empty()) return;
              report_missing();
            });
}

void ReplicaCensus::report_missing() {
  std::vector<BucketId> missing;
  for (const BucketId bucket : std::exchange(missing_, {})) {
    // Work that has begun meanwhile ends first; the next look finds the bucket again.
    const BucketEntry* entry = context_.buckets.find(bucket);
    if (entry != nullptr && entry->serves()) missing.push_back(bucket);
  }
  if (missing.empty()) return;
  questions_ = 1;  // No further look before forget(): the buckets are being collected.
  on_missing_(missing);
}

void ReplicaCensus::on_reports(std::uint16_t node, const Asked& asked, const rpc::GetBucketInfoReply& reply) {
  std::set<std::uint64_t> there;
  for (const rpc::BucketReport& report : reply.reports) there.insert(report.bucket.raw());
  std::size_t gone = 0;
  for (const BucketTicket& ticket : asked) {
    // An entry that was reset, reshaped or given other members meanwhile says nothing about the answer.
    const BucketEntry* entry = context_.buckets.find(ticket);
    if (entry == nullptr || !entry->serves() || !entry->set.contains(node) || there.contains(ticket.bucket.raw())) {
      continue;
    }
    missing_.insert(ticket.bucket);
    ++gone;
  }
  if (gone == 0) return;
  log::error("distributor", "{} has no replica of {} buckets that it should have; they are collected again",
             NodeId::storage(node).to_string(), gone);
}

}  // namespace fjord::distributor
