#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fjord/document/timestamp.h"
#include "fjord/storage/spi/persistence_provider.h"
#include "fjord/visitors/bucket_reader.h"
#include "incremental/bucket_content.h"
#include "incremental/partials.h"

/// The content of a bucket that columns stand for, and what can be said of it after a change
/// (docs/design/0024-columns.md).
namespace fjord::mapreduce {

/// Entries of a bucket, by rising gid.
using Entries = std::vector<spi::EntryMeta>;

/// The content of the bucket that columns were made of.
struct ColumnContent {
  ContentVersion version;
  Timestamp newest;  ///< No entry is newer.
  /// The entries that the columns have no values of: documents that do not match, and removed ones. Null: not known.
  std::shared_ptr<const Entries> others = {};
};

/// Returns the present content of a bucket, without `others`. Errors: NotFound.
Result<ColumnContent> content_of(const visitors::BucketOnNode& bucket);

/// Returns all entries of the bucket without those of the given documents. Errors: NotFound.
Result<Entries> others_of(const visitors::BucketOnNode& bucket, std::vector<GlobalId> given);

/// Returns `now` with its `others`, if it is certain that the same documents match as in `former`: only other entries
/// have come or were replaced, and none of the new ones matches. Returns nothing if something else has changed, if that
/// is not known, or if too much has changed for a look at each entry. `now` is the present content. Errors: those of
/// the provider.
Result<std::optional<ColumnContent>> with_same_documents(const visitors::BucketOnNode& bucket,
                                                         const ColumnContent& former, const ColumnContent& now);

}  // namespace fjord::mapreduce
