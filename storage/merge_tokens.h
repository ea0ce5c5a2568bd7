#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "fjord/document/docblock.h"
#include "merge_context.h"

namespace fjord::storage {

/// The tokens that a merge makes invalid: it finds them and cancels them.
///
/// A token is valid only as long as the document's version is the one it was written with or a successor of that. If
/// two replicas have different versions and this one decides (MergeBucket::decides), the losing replica's tokens that
/// the winning replica does not know are cancelled: the winner's writes were made without knowledge of them.
class MergeTokens {
 public:
  explicit MergeTokens(MergeContext& merge) : merge_(merge) {}

  /// Finds the tokens that become invalid when `missing`, all of the window, comes from the source.
  void find_lost(const std::vector<MissingEntry>& missing);
  void clear_lost() { lost_tokens_.clear(); }
  /// True for the token of a write that has to be cancelled when it is taken. `is_closed`: the entry is from the time
  /// of which the receiver has complete knowledge and the source does not.
  bool loses(const EntryView& entry, bool is_closed) const;
  /// Remembers an entry that is taken, if a later source may show that it is a token that does not count.
  void note(const EntryView& entry);
  /// Adds the writes that cancel the tokens that came with our version of `document`, which another version is about to
  /// replace. The writes refer to `ids`.
  void cancel_lost(const GlobalId& document, std::deque<std::string>& ids, std::vector<spi::Write>& writes);
  /// Cancels tokens from a damaged source if the documents written with them did not come: those writes are lost.
  Status cancel_orphans();

 private:
  /// A token from a damaged source, which may not have given the document written with it.
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
