#pragma once

#include "merge_context.h"

namespace fjord::storage {

/// The treatment of the source's entries that are older than the time up to which either replica has dropped remove
/// entries.
enum class HistoryChoice {
  Union,   ///< Takes all of them: both replicas have dropped the same, or neither is known to know more.
  Own,     ///< Takes only tokens: the receiver knows more.
  Source,  ///< Takes all of them, and removes older entries that the source does not have.
};

/// What a merge does about remove entries that replicas have dropped.
///
/// A replica that has dropped its remove entries before some time (spi::Forgotten) had complete knowledge of the
/// writes before it. Only therefore can it tell a removed document from one that it never had. If two replicas have
/// dropped entries up to different times, the one that dropped less is no source for older entries. If that is the
/// receiver, it becomes like its source: it removes older entries that only it has (docs/design/0013).
class MergeHistory {
 public:
  explicit MergeHistory(MergeContext& merge) : merge_(merge) {}

  /// Begins with another source.
  void begin_source() {
    choice_ = HistoryChoice::Union;
    is_first_page_ = true;
  }
  /// Compares what both replicas have dropped, when the source's page arrives; the first page decides. Errors: NotReady
  /// if the source has dropped more since its first page.
  Status compare(const rpc::ListEntriesReply& page);
  HistoryChoice choice() const { return choice_; }
  /// True if `timestamp` is in the time of which the receiver has complete knowledge and the source does not.
  bool is_closed(Timestamp timestamp) const {
    return choice_ == HistoryChoice::Own && timestamp < merge_.own_forgotten.removes;
  }
  /// True if an entry here is older than the time up to which the source has dropped, but newer than the source's
  /// version of that document. Such an entry was never acknowledged. The engine would keep it, because it is newer, so
  /// the replica has to be emptied and filled again.
  bool hides_what_source_has() const;
  /// Empties the replica, so that the merge can begin again with this source. Errors: Corruption if it is a member.
  Status empty_replica();
  /// Removes documents here that are older than what the source has dropped and that the source does not have.
  Status drop_unknown_to_source();
  /// Records, after the last window of a source, what this replica has now dropped.
  Status take_over();

 private:
  /// Decides from what both replicas have dropped, and adapts the receiver's Forgotten to it.
  Status choose(const rpc::ListEntriesReply& page);

  MergeContext& merge_;
  HistoryChoice choice_ = HistoryChoice::Union;
  bool is_first_page_ = true;        // True until the source's first page has arrived.
  spi::Forgotten source_forgotten_;  // The source's, when the merge from it began.
};

}  // namespace fjord::storage
