#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fjord/storage/spi/persistence_provider.h"
#include "fjord/visitors/bucket_reader.h"
#include "incremental/bucket_content.h"

/// The content of a bucket that columns stand for, and what can be said of it after a change
/// (docs/design/0024-columns.md).
namespace fjord::mapreduce {

/// Entries of a bucket, by rising gid.
using Entries = std::vector<spi::EntryMeta>;

/// The content of the bucket that columns stand for.
struct ColumnContent : BucketContent {
  /// The entries that the columns have no values of: documents that do not match, and removed ones. Null: not known.
  std::shared_ptr<const Entries> others = {};
};

/// Returns all entries of the bucket without those of the given documents. Errors: NotFound.
Result<Entries> others_of(const visitors::BucketOnNode& bucket, std::vector<GlobalId> given);

/// Returns `now` with its `others`, if it is certain that the same documents match as in `former`: only other entries
/// have come or were replaced, and none of the new ones matches. Returns nothing if something else has changed, if that
/// is not known, or if too much has changed for a look at each entry. `now` is the present content. Errors: those of
/// the provider.
Result<std::optional<ColumnContent>> with_same_documents(const visitors::BucketOnNode& bucket,
                                                         const ColumnContent& former, const BucketContent& now);

}  // namespace fjord::mapreduce
