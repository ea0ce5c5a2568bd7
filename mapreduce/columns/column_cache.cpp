#include "columns/column_cache.h"

#include <algorithm>
#include <utility>

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kSetsMax = 64;

bool same_documents(const ColumnQuery& a, const ColumnQuery& b) {
  return a.types == b.types && a.document_type == b.document_type && a.selection == b.selection;
}

/// Returns the place of each value in `in`; nothing if one is missing.
std::optional<std::vector<std::size_t>> places_of(const std::vector<std::string>& values,
                                                  const std::vector<std::string>& in) {
  std::vector<std::size_t> places;
  for (const std::string& value : values) {
    const auto found = std::find(in.begin(), in.end(), value);
    if (found == in.end()) return std::nullopt;
    places.push_back(static_cast<std::size_t>(found - in.begin()));
  }
  return places;
}

}  // namespace

ColumnCache::ColumnCache(std::function<std::size_t()> limit, MetricRegistry& registry)
    : limit_(std::move(limit)),
      bytes_metric_(registry.gauge("fjord_job_columns_bytes",
                                   "Memory of values that aggregations took from documents and keep for later ones.")) {
}

void ColumnCache::account(Set& set, std::size_t added, std::size_t removed) {
  set.bytes = set.bytes + added - removed;
  bytes_ = bytes_ + added - removed;
  bytes_metric_.set(static_cast<double>(bytes_));
}

void ColumnCache::drop(std::list<Set>::iterator set) {
  account(*set, 0, set->bytes);
  sets_.erase(set);
}

bool ColumnCache::make_room(const Set& set, std::size_t bytes) {
  const std::size_t limit = limit_();
  while (bytes_ + bytes > limit) {
    // `set` was used last: if it is the oldest one, no other set is left to drop.
    const auto first = oldest();
    if (&*first == &set) return false;
    drop(first);
  }
  return true;
}

std::list<ColumnCache::Set>::iterator ColumnCache::oldest() {
  return std::min_element(sets_.begin(), sets_.end(), [](const Set& a, const Set& b) { return a.used < b.used; });
}

void ColumnCache::trim() {
  const std::size_t limit = limit_();
  while (bytes_ > limit) drop(oldest());
}

template <typename F>
std::optional<FoundColumns> ColumnCache::find_if(const ColumnQuery& query, BucketId bucket, F f) {
  trim();
  for (Set& set : sets_) {
    if (!same_documents(set.query, query)) continue;
    const auto found = set.buckets.find(bucket);
    if (found == set.buckets.end() || !f(found->second->content)) continue;
    auto places = places_of(query.values, set.query.values);
    if (!places) continue;
    set.used = ++uses_;
    return FoundColumns{found->second, std::move(*places)};
  }
  return std::nullopt;
}

std::optional<FoundColumns> ColumnCache::find(const ColumnQuery& query, BucketId bucket,
                                              const ContentVersion& version) {
  const std::lock_guard lock(mutex_);
  return find_if(query, bucket, [&](const ColumnContent& content) { return content.version == version; });
}

std::optional<FoundColumns> ColumnCache::find_former(const ColumnQuery& query, BucketId bucket) {
  const std::lock_guard lock(mutex_);
  return find_if(query, bucket, [](const ColumnContent&) { return true; });
}

void ColumnCache::replace(BucketId bucket, const BucketColumns& former, std::shared_ptr<const BucketColumns> columns) {
  const std::lock_guard lock(mutex_);
  for (Set& set : sets_) {
    const auto found = set.buckets.find(bucket);
    if (found == set.buckets.end() || found->second.get() != &former) continue;
    account(set, columns->bytes(), former.bytes());
    found->second = std::move(columns);
    trim();
    return;
  }
}

void ColumnCache::put(const ColumnQuery& query, BucketId bucket, std::shared_ptr<const BucketColumns> columns) {
  const std::lock_guard lock(mutex_);
  auto set = std::find_if(sets_.begin(), sets_.end(), [&](const Set& one) {
    return same_documents(one.query, query) && one.query.values == query.values;
  });
  if (set == sets_.end()) {
    // Columns of former schemas are of no use any more.
    for (auto one = sets_.begin(); one != sets_.end();) {
      const auto next = std::next(one);
      if (one->query.types != query.types) drop(one);
      one = next;
    }
    if (sets_.size() >= kSetsMax) drop(oldest());
    set = sets_.insert(sets_.end(), Set{.query = query, .buckets = {}});
  }
  set->used = ++uses_;
  if (const auto before = set->buckets.find(bucket); before != set->buckets.end()) {
    account(*set, 0, before->second->bytes());
    set->buckets.erase(before);
  }
  const std::size_t bytes = columns->bytes();
  if (!make_room(*set, bytes)) return;
  set->buckets.emplace(bucket, std::move(columns));
  account(*set, bytes, 0);
}

std::size_t ColumnCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace fjord::mapreduce
