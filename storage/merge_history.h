#pragma once

#include "merge_context.h"

namespace fjord::storage {

/// How a merge treats the source's old entries. An entry is old if it is older than the time up to which either replica
/// has dropped remove entries.
enum class HistoryChoice {
  /// Takes all old entries. Both replicas have dropped the same, or neither is known to have the complete history.
  Union,
  /// Takes no old documents, only remove entries and tokens. The receiver has the complete history of that time, so a
  /// document that it lacks was removed.
  Own,
  /// Takes all old entries, and removes old documents that the source lacks. The source has the complete history of
  /// that time, so a document that it lacks was removed.
  Source,
};

/// Keeps a merge from bringing back documents whose remove entries were dropped.
///
/// A replica drops remove entries before some time (spi::Forgotten) only when it has all writes before that time. So a
/// document of that time that it lacks was removed. If two replicas have dropped entries up to different times, the one
/// that dropped less may still have such a document. As the source it therefore gives no old documents
/// (HistoryChoice::Own). As the receiver it removes the old documents that only it has (HistoryChoice::Source). See
/// docs/design/0013.
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
  /// True if the receiver has the complete history of the time of `timestamp`, and the source may not have it.
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
  spi::Forgotten source_forgotten_;  // What the source had dropped when the merge from it began.
};

}  // namespace fjord::storage
