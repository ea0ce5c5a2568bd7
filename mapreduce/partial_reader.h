#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fjord/storage/spi/entry_filter.h"
#include "fjord/visitors/bucket_reader.h"
#include "partials.h"

namespace fjord::mapreduce {

/// Reads of a bucket what changed since a partial was made, or all of it if there is none, too much changed, or the
/// bucket does not look as what it was would have become.
///
/// Threading: as BucketReader; the questions once next() has answered false.
class PartialReader final : public visitors::BucketReader {
 public:
  enum class Found {
    Same,     ///< Nothing changed and nothing was read.
    Changed,  ///< What changed was read.
    All,      ///< All of it was read.
  };

  /// `known`: what is known from before; may be null. `trust`: wrong on purpose, takes the bucket for unchanged.
  PartialReader(std::shared_ptr<const BucketPartial> known, bool trust);

  Result<bool> next(const visitors::BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max) override;
  void close() override;

  Found found() const { return found_; }
  /// What the bucket had when it was begun.
  const ContentVersion& content() const { return before_; }
  /// Changed: documents that are not as they were, those that were not given among them, as they were when they were
  /// looked at.
  DocumentChanges& changes() { return changes_; }
  /// All: the bucket's entries, or none of them if all were given; nothing if it changed while it was read, so that it
  /// is not known what was not given.
  std::optional<std::vector<spi::EntryMeta>>& entries() { return entries_; }

 private:
  enum class Step { Begin, Changes, Everything, Over };

  Status begin(const visitors::BucketOnNode& bucket);
  Result<bool> find_changes(const visitors::BucketOnNode& bucket, const ContentVersion& now);
  Result<bool> find_newer(const visitors::BucketOnNode& bucket, const ContentVersion& now);
  Status read_change(const visitors::BucketOnNode& bucket, DocumentChange& change, DocBlockBuilder& block);
  Result<bool> read_everything(const visitors::BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max);
  Status finish_everything(const visitors::BucketOnNode& bucket);

  std::shared_ptr<const BucketPartial> known_;
  bool trust_;
  Step step_ = Step::Begin;
  Found found_ = Found::All;
  ContentVersion before_;
  DocumentChanges changes_;
  std::vector<GlobalId> to_read_;
  std::size_t at_ = 0;
  std::optional<spi::EntryFilter> filter_;
  std::size_t part_ = 0;
  std::unique_ptr<spi::DocumentIterator> iterator_;
  std::uint64_t given_ = 0;
  std::optional<std::vector<spi::EntryMeta>> entries_;
};

}  // namespace fjord::mapreduce
