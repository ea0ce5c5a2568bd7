#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "fjord/document/docblock.h"
#include "merge_context.h"

namespace fjord::storage {

/// Finds the tokens that a merge makes invalid, and cancels them.
///
/// A token is valid only while the document has the version that was written with the token, or a successor of that
/// version. If two replicas have different versions and this merge decides (MergeBucket::decides), the losing replica's
/// tokens that the winning replica lacks are cancelled: the winner's writes were made without knowledge of them.
class MergeTokens {
 public:
  explicit MergeTokens(MergeContext& merge) : merge_(merge) {}

  /// Finds the tokens that become invalid when the entries in `missing`, all those of the window, come from the source.
  void find_lost(const std::vector<MissingEntry>& missing);
  void clear_lost() { lost_tokens_.clear(); }
  /// Returns true for the token of a write if the token has to be cancelled when it is taken. `is_closed`: for the
  /// entry's time, the receiver has the complete history and the source does not.
  bool loses(const EntryView& entry, bool is_closed) const;
  /// Remembers an entry that is taken if a later source may show that it is an invalid token.
  void note(const EntryView& entry);
  /// Adds writes that cancel the tokens of this replica's version of `document`, which another version is about to
  /// replace. The writes refer to `ids`.
  void cancel_lost(const GlobalId& document, std::deque<std::string>& ids, std::vector<spi::Write>& writes);
  /// Cancels tokens from a damaged source whose documents did not come with them: the source has lost those writes.
  Status cancel_orphans();

 private:
  /// A token from a damaged source, which may have lost the document that was written with the token.
  struct Orphan {
    GlobalId document;
    GlobalId token;
    Timestamp timestamp;
  };

  void find_lost_to_member(const std::vector<MissingEntry>& missing);
  void find_lost_adopted(const std::vector<MissingEntry>& missing);
  void note_adopted(const EntryView& entry);
  void note_orphan(const EntryView& entry);

  MergeContext& merge_;
  std::unordered_multimap<GlobalId, GlobalId> lost_tokens_;  // Tokens to cancel, by document.
  // Tokens that this merge took from non-member replicas, by document. They are few, because their writes were never
  // acknowledged.
  std::unordered_multimap<GlobalId, GlobalId> adopted_tokens_;
  std::vector<Orphan> orphans_;
};

}  // namespace fjord::storage
