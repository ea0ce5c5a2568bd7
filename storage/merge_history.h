#pragma once

#include "merge_context.h"

namespace fjord::storage {

/// How a merge treats the source's old entries. An entry is old if it is older than a time up to which one of the two
/// replicas has dropped remove entries.
enum class HistoryChoice {
  /// Takes all old entries. Both replicas have dropped up to the same times, or neither is known to have the complete
  /// history.
  Union,
  /// Takes no old documents, only remove entries and tokens. The receiver has the complete history of that time, so a
  /// document that the receiver lacks was removed.
  Own,
  /// Takes all old entries, and removes old documents that the source lacks. The source has the complete history of
  /// that time, so a document that the source lacks was removed.
  Source,
};

/// Keeps a merge from bringing back documents whose remove entries were dropped.
///
/// A replica drops remove entries before some time (spi::Forgotten) only when it has all writes before that time. So a
/// document from before that time which the replica lacks was removed. If two replicas have dropped entries up to
/// different times, the one that dropped less may still have such a document. If that replica is the source, it gives
/// no old documents (HistoryChoice::Own). If it is the receiver, it removes the old documents that only it has
/// (HistoryChoice::Source). See docs/design/0013.
class MergeHistory {
 public:
  explicit MergeHistory(MergeContext& merge) : merge_(merge) {}

  /// Begins the comparison with another source.
  void begin_source() {
    choice_ = HistoryChoice::Union;
    is_first_page_ = true;
  }
  /// Compares what both replicas have dropped when a page of the source arrives; the first page decides. Errors:
  /// NotReady if the source has dropped more since its first page.
  Status compare(const rpc::ListEntriesReply& page);
  HistoryChoice choice() const { return choice_; }
  /// Returns true if the receiver has all writes of the time of `timestamp`, and the source perhaps not. A document of
  /// that time that only the source has was then removed.
  bool is_closed(Timestamp timestamp) const {
    return choice_ == HistoryChoice::Own && timestamp < merge_.own_forgotten.removes;
  }
  /// Returns true if an entry here is older than the time up to which the source has dropped, but newer than the
  /// source's version of that document. Such an entry was never acknowledged. The engine would keep it, because it is
  /// newer, so the replica has to be emptied and filled again.
  bool hides_what_source_has() const;
  /// Empties this replica, so that the merge can begin again with this source. Errors: Corruption if it is a member.
  Status empty_replica();
  /// Removes documents here that are older than what the source has dropped and that the source does not have.
  Status drop_unknown_to_source();
  /// Records, after the last window of a source, up to which times this replica's entries are dropped now.
  Status take_over();

 private:
  /// Chooses the HistoryChoice from what both replicas have dropped, and adapts the receiver's Forgotten to it.
  Status choose(const rpc::ListEntriesReply& page);

  MergeContext& merge_;
  HistoryChoice choice_ = HistoryChoice::Union;
  bool is_first_page_ = true;        // True until the source's first page has arrived.
  spi::Forgotten source_forgotten_;  // Times up to which the source had dropped entries when the merge from it began.
};

}  // namespace fjord::storage
