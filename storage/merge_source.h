#pragma once

#include <cstddef>

#include "damaged_buckets.h"
#include "fjord/document/docblock.h"
#include "fjord/rpc/messages.h"
#include "fjord/storage/spi/entry_window.h"
#include "stripe_context.h"

namespace fjord::storage {

/// Answers the merges of other nodes within the node's maintenance budget: says which entries a bucket has here, and
/// sends the entries. Confined to the stripe's executor.
class MergeSource {
 public:
  MergeSource(StripeContext& context, DamagedBuckets& damaged) : context_(context), damaged_(damaged) {}

  rpc::ListEntriesReply list_entries(const rpc::ListEntries& request);
  rpc::FetchEntriesReply fetch_entries(const rpc::FetchEntries& request);

 private:
  Result<spi::EntryWindow> list_by_gid(const rpc::ListEntries& request, std::size_t limit);
  /// Adds the tokens that go with the documents that have been written since they were listed. `done`: how many of the
  /// request's gids are in `block`. Errors: those of the engine.
  Status add_tokens_of_newer(const rpc::FetchEntries& request, std::size_t done, DocBlockBuilder& block);

  StripeContext& context_;
  DamagedBuckets& damaged_;
};

}  // namespace fjord::storage
