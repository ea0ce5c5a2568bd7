#include "maintenance/garbage_collector.h"

#include <algorithm>

#include "fjord/common/log.h"
#include "fjord/document/garbage_rules.h"

namespace fjord::distributor {
namespace {

constexpr Duration kTick = seconds(1);
// Time from the start of the process to the first pass, if the interval is longer than this.
constexpr Duration kFirstPass = seconds(60);
constexpr std::size_t kBatch = 64;
constexpr std::uint32_t kIdsAtOnce = 4096;

}  // namespace

GarbageCollector::GarbageCollector(Context& context, const BucketMaintainer& maintainer, TunableRegistry& tunables,
                                   Execute execute)
    : context_(context),
      maintainer_(maintainer),
      interval_ms_(tunables.declare("maintenance.gc_interval",
                                    std::chrono::duration_cast<milliseconds>(context.options.gc_interval).count())),
      execute_(std::move(execute)),
      searched_(context.metrics.counter("fjord_distributor_garbage_searches_total", "Buckets searched for garbage")),
      scanned_(context.metrics.counter("fjord_distributor_garbage_scanned_total",
                                       "Documents looked at in search of garbage")),
      collected_(context.metrics.counter("fjord_distributor_garbage_collected_total",
                                         "Documents removed because their type does not keep them")),
      failures_(context.metrics.counter("fjord_distributor_garbage_failures_total",
                                        "Searches and removals of garbage that failed, to be done next time")) {
  const Duration interval = milliseconds(interval_ms_.value());
  pass_began_ = context_.clock.now() - interval + std::min(interval, kFirstPass);
  context_.executor.post_after(kTick, [this] { tick(); });
}

void GarbageCollector::tick() {
  const Duration interval = milliseconds(interval_ms_.value());
  context_.executor.post_after(std::min(kTick, interval), [this] { tick(); });
  if (working_ || !may_work()) return;
  if (!passing_ && context_.clock.now() - pass_began_ < interval) return;
  if (!passing_) {
    passing_ = true;
    pass_began_ = context_.clock.now();
    next_key_ = 0;
  }
  next_bucket();
}

bool GarbageCollector::may_work() const {
  if (context_.snapshot == nullptr || !context_.ready || maintainer_.is_busy_or_paused()) return false;
  const auto& types = context_.snapshot->types()->types();
  return std::any_of(types.begin(), types.end(), [](const auto& type) { return !type->keep_while().empty(); });
}

void GarbageCollector::next_bucket() {
  working_ = false;
  if (!may_work()) return;  // The pass continues at the next tick of the timer.
  for (const BucketEntry* entry = context_.buckets.find_from(next_key_); entry != nullptr;
       entry = context_.buckets.find_from(next_key_)) {
    next_key_ = entry->bucket.sort_key() + 1;
    if (!entry->is_settled()) continue;
    search(*entry);
    return;
  }
  passing_ = false;
}

void GarbageCollector::search(const BucketEntry& entry) {
  working_ = true;
  rpc::FindGarbage request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  request.bucket = entry.bucket;
  request.max_ids = kIdsAtOnce;
  rpc::call(context_.transport, context_.storage_address(entry.primary()), request, context_.options.merge_timeout,
            context_.executor, [this, ticket = entry.ticket()](Result<rpc::FindGarbageReply> reply) {
              searched_.add();
              if (reply && reply->status && reply->types.size() == reply->ids.size()) {
                on_found(ticket, std::move(*reply));
              } else {
                failures_.add();
                next_bucket();
              }
            });
}

void GarbageCollector::on_found(const BucketTicket& bucket, rpc::FindGarbageReply reply) {
  scanned_.add(reply.scanned);
  auto found = std::make_shared<Found>();
  found->bucket = bucket;
  found->more = reply.more;
  for (std::size_t i = 0; i < reply.ids.size(); ++i) {
    const DocumentType* type = context_.snapshot->types()->find(reply.types[i]);
    // The schema has changed since the storage node searched the bucket.
    if (type == nullptr || type->keep_while().empty()) continue;
    rpc::Operation removal;
    removal.kind = rpc::OperationKind::Remove;
    removal.id = std::move(reply.ids[i]);
    removal.condition = GarbageRules::condition(*type);
    removal.priority = rpc::Priority::Background;
    found->removals.push_back(std::move(removal));
  }
  remove_some(found);
}

void GarbageCollector::remove_some(const std::shared_ptr<Found>& found) {
  if (found->begun == found->removals.size()) {
    const BucketEntry* entry = context_.buckets.find(found->bucket);
    // Searches the bucket again only if documents were removed: otherwise the search would find the same documents.
    const bool again = found->more && found->collected > 0 && entry != nullptr && entry->is_settled() && may_work();
    if (again) {
      search(*entry);
    } else {
      next_bucket();
    }
    return;
  }
  if (!may_work()) {  // Merges have precedence, so the search ends here.
    context_.executor.post_after(kTick, [this, found] { remove_some(found); });
    return;
  }
  const std::size_t end = std::min(found->begun + kBatch, found->removals.size());
  rpc::Execute batch;
  for (; found->begun < end; ++found->begun) batch.operations.push_back(std::move(found->removals[found->begun]));
  execute_(std::move(batch), [this, found, began = context_.clock.now()](rpc::Reply reply) {
    const Duration took = context_.clock.now() - began;
    // Posts the next step, because the engine calls this function in the middle of its work.
    context_.executor.post(
        [this, found, took, reply = std::get<rpc::ExecuteReply>(std::move(reply))] { on_removed(found, reply, took); });
  });
}

void GarbageCollector::on_removed(const std::shared_ptr<Found>& found, const rpc::ExecuteReply& reply, Duration took) {
  for (const rpc::OperationResult& result : reply.results) {
    if (result.status && result.existed) {
      collected_.add();
      ++found->collected;
    } else if (!result.status && result.status.code() != StatusCode::TestAndSetFailed) {
      failures_.add();
    }
  }
  if (!reply.status) failures_.add();
  context_.executor.post_after(took, [this, found] { remove_some(found); });
}

}  // namespace fjord::distributor
