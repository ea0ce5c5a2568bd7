#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "fjord/document/document_id.h"
#include "fjord/document/selection.h"
#include "session_context.h"

namespace fjord::visitors {

/// The buckets of a visit that are not done, and the parts of the bucket tree that are done.
///
/// Threading: confined to the session's executor.
class VisitBuckets {
 public:
  /// A bucket that is not done.
  struct Bucket {
    unsigned attempts = 0;  ///< Number of times that a visitor has begun the bucket.
    unsigned errors = 0;    ///< Times that its visitor reported an error.
    Duration backoff{0};
    std::unordered_set<GlobalId> given;
    bool is_begun = false;        ///< The visit has delivered some of its documents.
    bool may_be_missing = false;  ///< No list named it, so it may never have held a document.
    /// The node that the bucket was taken from for keeping the visit waiting, or that has failed to read it.
    std::optional<std::uint16_t> avoid;
    bool even_damaged = false;  ///< No replica is intact: the remaining documents are read.
    /// Some documents belong to another slice, or were given before the visit was resumed.
    bool partly_wanted = false;
  };

  explicit VisitBuckets(SessionContext& context) : context_(context) {}

  /// Leaves out the buckets that the visit of this cursor has completed.
  void resume_from(const SessionCursor& cursor);
  /// From now on, buckets in which no document can match are not added.
  void set_selection(Selection selection) { selection_ = std::move(selection); }
  const std::optional<Selection>& selection() const { return selection_; }

  /// Adds a bucket. Returns false if it need not be read, or is there already.
  bool add(BucketId bucket, bool may_be_missing);
  /// Replaces a bucket by its parts with `bits` bits; returns the parts that have to be read.
  std::vector<BucketId> cut(BucketId bucket, unsigned bits);
  /// Reports a bucket as done.
  void complete(BucketId bucket, std::string result);
  /// Marks the whole slice as done.
  void complete_all() { done_.add(context_.options.slice); }
  /// Passes documents of a bucket on, without those that are not wanted or were given before.
  void give(BucketId bucket, std::string docblock);

  Bucket& at(BucketId bucket) { return buckets_.at(bucket); }
  bool contains(BucketId bucket) const { return buckets_.contains(bucket); }
  bool empty() const { return buckets_.empty(); }
  std::size_t size() const { return buckets_.size(); }
  SessionCursor cursor() const { return {context_.options.fingerprint(), done_}; }

 private:
  bool wants(const GlobalId& gid) const;
  std::string without_unwanted(Bucket& bucket, std::string docblock) const;

  SessionContext& context_;
  std::map<BucketId, Bucket> buckets_;
  PositionSet done_;
  PositionSet done_before_;  // Parts done by the visit that is resumed.
  std::optional<Selection> selection_;
};

}  // namespace fjord::visitors
