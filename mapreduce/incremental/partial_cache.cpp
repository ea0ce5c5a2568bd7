#include "partial_cache.h"

#include <algorithm>
#include <utility>

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kQueriesMax = 64;

bool overlap(const std::vector<BucketId>& a, const std::vector<BucketId>& b) {
  return std::any_of(a.begin(), a.end(), [&](BucketId one) { return std::find(b.begin(), b.end(), one) != b.end(); });
}

}  // namespace

PartialCache::PartialCache(Tunable& limit, MetricRegistry& registry)
    : limit_(limit),
      bytes_metric_(registry.gauge("fjord_job_partials_bytes",
                                   "Memory of partial results that incremental jobs keep for their next run.")) {}

PartialCache::Query* PartialCache::find(std::uint64_t number) {
  for (auto& [text, query] : queries_) {
    if (query.number == number) return &query;
  }
  return nullptr;
}

void PartialCache::account(Query& query, std::size_t added, std::size_t removed) {
  query.bytes = query.bytes + added - removed;
  bytes_ = bytes_ + added - removed;
  bytes_metric_.set(static_cast<double>(bytes_));
}

void PartialCache::forget(Query& query) {
  account(query, 0, static_cast<std::size_t>(query.bytes));
  query.buckets.clear();
  query.units.clear();
}

std::uint64_t PartialCache::query(const std::string& text, const std::shared_ptr<const DocumentTypeRepo>& types) {
  const std::lock_guard lock(mutex_);
  if (!queries_.contains(text) && queries_.size() >= kQueriesMax) {
    const auto oldest = std::min_element(queries_.begin(), queries_.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    forget(oldest->second);
    queries_.erase(oldest);
  }
  Query& query = queries_[text];
  query.used = ++uses_;
  if (query.number == 0 || query.types != types) {
    forget(query);
    query.number = ++numbers_;  // With the new number, put() refuses partials that were made with the former types.
    query.types = types;
  }
  return query.number;
}

std::shared_ptr<BucketPartial> PartialCache::take(std::uint64_t number, BucketId bucket) {
  const std::lock_guard lock(mutex_);
  Query* const query = find(number);
  if (query == nullptr) return nullptr;
  auto node = query->buckets.extract(bucket);
  if (node.empty()) return nullptr;
  account(*query, 0, node.mapped()->bytes());
  return std::move(node.mapped());
}

std::size_t PartialCache::limit() const {
  const auto bytes = static_cast<std::size_t>(limit_.value());
  return bytes - bytes / kColumnsPart;
}

bool PartialCache::make_room(const Query& query, std::size_t bytes) {
  while (bytes_ + bytes > limit()) {
    Query* oldest = nullptr;
    for (auto& [text, other] : queries_) {
      const bool could = &other != &query && other.bytes != 0;
      if (could && (oldest == nullptr || other.used < oldest->used)) oldest = &other;
    }
    if (oldest == nullptr) return false;
    forget(*oldest);
  }
  return true;
}

bool PartialCache::put(std::uint64_t number, BucketId bucket, const std::shared_ptr<BucketPartial>& partial) {
  const std::lock_guard lock(mutex_);
  Query* const query = find(number);
  if (query == nullptr) return true;  // the query was dropped: no job will ask for the partial
  const std::size_t bytes = partial->bytes();
  // Partials with documents may take half of the limit. The rest is for those without documents, which are much
  // smaller.
  const bool is_too_much = partial->has_documents() && query->bytes + bytes > limit() / 2;
  if (is_too_much || !make_room(*query, bytes)) return false;
  if (auto& place = query->buckets[bucket]; place == nullptr) {
    place = partial;
    account(*query, bytes, 0);
  }
  return true;
}

std::shared_ptr<const UnitPartial> PartialCache::take_unit(std::uint64_t number, const std::vector<BucketId>& buckets) {
  const std::lock_guard lock(mutex_);
  Query* const query = find(number);
  if (query == nullptr) return nullptr;
  auto node = query->units.extract(buckets);
  if (node.empty()) return nullptr;
  account(*query, 0, node.mapped()->bytes());
  return std::move(node.mapped());
}

bool PartialCache::put_unit(std::uint64_t number, const std::vector<BucketId>& buckets,
                            std::shared_ptr<const UnitPartial> unit) {
  const std::lock_guard lock(mutex_);
  Query* const query = find(number);
  if (query == nullptr) return true;
  for (auto it = query->units.begin(); it != query->units.end();) {
    if (!overlap(it->first, buckets)) {
      ++it;
      continue;
    }
    account(*query, 0, it->second->bytes());
    it = query->units.erase(it);
  }
  const std::size_t bytes = unit->bytes();
  if (!make_room(*query, bytes)) return false;
  query->units[buckets] = std::move(unit);
  account(*query, bytes, 0);
  return true;
}

std::uint64_t PartialCache::new_serial() {
  const std::lock_guard lock(mutex_);
  return ++serials_;
}

std::size_t PartialCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace fjord::mapreduce
