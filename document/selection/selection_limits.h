#pragma once

#include <cstdint>
#include <vector>

#include "fjord/document/bucket_id.h"

namespace fjord::selection {

/// A set of type ids, or all types.
class TypeSet {
 public:
  static TypeSet all() { return {}; }
  static TypeSet of(std::vector<std::uint32_t> ids);
  static TypeSet unite(const std::vector<TypeSet>& sets);

  bool is_all() const { return is_all_; }
  const std::vector<std::uint32_t>& ids() const { return ids_; }  ///< Ascending; empty if all.
  TypeSet intersect(const TypeSet& other) const;

 private:
  bool is_all_ = true;
  std::vector<std::uint32_t> ids_;
};

/// The documents of some buckets, with any number of bits, or all documents.
class BucketSet {
 public:
  static BucketSet all() { return {}; }
  static BucketSet of(std::vector<BucketId> buckets);
  static BucketSet unite(const std::vector<BucketSet>& sets);

  bool is_all() const { return is_all_; }
  /// In the order of the bucket tree; no bucket contains another.
  const std::vector<BucketId>& buckets() const { return buckets_; }
  BucketSet intersect(const BucketSet& other) const;
  /// True if a document can be both in `bucket` and in the set.
  bool overlaps(BucketId bucket) const;

 private:
  bool contains(BucketId bucket) const;

  bool is_all_ = true;
  std::vector<BucketId> buckets_;
};

/// Supersets of the documents that make a condition true, and of those that make it false.
template <typename Set>
struct Limits {
  Set when_true;
  Set when_false;

  /// The limits of `and` and `or` over conditions with these limits.
  static Limits of_and(const std::vector<Limits>& parts);
  static Limits of_or(const std::vector<Limits>& parts);
};

template <typename Set>
Limits<Set> Limits<Set>::of_and(const std::vector<Limits>& parts) {
  Limits all;
  std::vector<Set> when_false;
  for (const Limits& part : parts) {
    all.when_true = all.when_true.intersect(part.when_true);
    when_false.push_back(part.when_false);
  }
  all.when_false = Set::unite(when_false);
  return all;
}

template <typename Set>
Limits<Set> Limits<Set>::of_or(const std::vector<Limits>& parts) {
  std::vector<Limits> negated;
  for (const Limits& part : parts) negated.push_back({part.when_false, part.when_true});
  const Limits both = of_and(negated);
  return {both.when_false, both.when_true};
}

}  // namespace fjord::selection
