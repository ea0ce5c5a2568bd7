#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bucket_content.h"
#include "fjord/storage/spi/entry_filter.h"
#include "fjord/visitors/bucket_reader.h"
#include "partials.h"

namespace fjord::mapreduce {

/// Reads the documents of a bucket that changed since a partial was made. It reads the whole bucket if there is no
/// partial, if too much has changed, or if the change is not plausible: an entry is older than before, or gone without
/// a remove.
///
/// Threading: as BucketReader; the accessors may be called once next() has returned false.
class PartialReader final : public visitors::BucketReader {
 public:
  enum class Found {
    Same,     ///< Nothing changed; nothing was read.
    Changed,  ///< The changes were read.
    All,      ///< The whole bucket was read.
  };

  /// `known` is the partial of an earlier run; may be null.
  explicit PartialReader(std::shared_ptr<const BucketPartial> known);

  Result<bool> next(const visitors::BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max) override;
  void close() override;

  Found found() const { return found_; }
  /// Content of the bucket when reading began.
  const ContentVersion& content() const { return before_; }
  /// After Found::Changed: all changed documents, each with the version that the earlier run saw. next() does not
  /// return all of them.
  DocumentChanges& changes() { return changes_; }
  /// Found::All: all entries of the bucket, or an empty list if all of them were read as documents. nullopt if the
  /// bucket changed during reading, so that the entries that were not read are unknown.
  std::optional<std::vector<spi::EntryMeta>>& entries() { return entries_; }

 private:
  enum class Step { Begin, Changes, Everything, Over };

  Status begin(const visitors::BucketOnNode& bucket);
  Result<bool> find_changes(const visitors::BucketOnNode& bucket, const ContentVersion& now);
  Result<bool> find_newer(const visitors::BucketOnNode& bucket, const ContentVersion& now);
  Status read_change(const visitors::BucketOnNode& bucket, DocumentChange& change, DocBlockBuilder& block);
  Status finish_everything(const visitors::BucketOnNode& bucket);

  std::shared_ptr<const BucketPartial> known_;
  Step step_ = Step::Begin;
  Found found_ = Found::All;
  ContentVersion before_;
  DocumentChanges changes_;
  std::vector<GlobalId> to_read_;
  std::size_t at_ = 0;
  std::optional<spi::EntryFilter> filter_;
  WholeBucket everything_;
  std::optional<std::vector<spi::EntryMeta>> entries_;
};

}  // namespace fjord::mapreduce
