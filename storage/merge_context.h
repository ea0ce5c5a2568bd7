#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/rpc/messages.h"
#include "fjord/storage/spi/entry_window.h"
#include "stripe_parts.h"

namespace fjord::storage {

/// An entry that is newer on the source than on this replica. Ordered by its fields, so that a document and the tokens
/// of its operations are neighbours.
struct MissingEntry {
  std::uint64_t group = 0;
  std::uint64_t timestamp_us = 0;
  GlobalId gid;

  friend auto operator<=>(const MissingEntry&, const MissingEntry&) = default;
};

/// The metadata of one window of both replicas.
struct MergeWindow {
  spi::GroupRange range;                ///< Groups of the source that are still to be compared.
  std::uint64_t end = spi::kLastGroup;  ///< The last group of the window.
  std::vector<spi::EntryMeta> own;      ///< Entries of this replica in the window, by (group, gid).
  std::vector<spi::EntryMeta> theirs;   ///< Entries of the source in the window, by (group, gid).

  /// Returns this replica's entry of `gid` as of the beginning of the window; null if there is none.
  const spi::EntryMeta* own_of(const GlobalId& gid) const;
  const spi::EntryMeta* theirs_of(const GlobalId& gid) const;
  /// Adds the source's page, and shortens the window to the groups in it. Errors: Corruption if the page does not match
  /// the request.
  Status take_page(const rpc::ListEntriesReply& page);
};

/// The state that the parts of a merge share. Confined to the stripe's executor.
struct MergeContext {
  StripeContext& stripe;
  StripeParts& parts;
  const rpc::MergeBucket request;
  rpc::MergeBucketReply reply = {};
  std::size_t source = 0;  ///< The source from which entries are fetched, as an index of `request.sources`.
  MergeWindow window = {};
  /// Times up to which this replica had dropped entries when the merge from this source began.
  spi::Forgotten own_forgotten = {};

  bool is_non_member() const;
  /// Records that the source has reported damage.
  void note_damaged_source();
  bool is_source_damaged() const;
  /// Writes to the engine. Errors: those of the engine; NotReady if remove entries were dropped here since the merge
  /// began.
  Status apply(std::vector<spi::Write>& writes, std::vector<spi::WriteResult>& results);
};

}  // namespace fjord::storage
