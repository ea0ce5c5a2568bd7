#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fjord/storage/spi/entry_window.h"
#include "stripe.h"

namespace fjord::storage {

/// Fetches entries into one bucket that are newer on other replicas. It takes one source after the other and works
/// window by window (spi::list_window): first it compares the metadata of both replicas, then it fetches the entries
/// missing here in blocks. The newest timestamp wins, so writes may go on meanwhile, and a repeated merge continues
/// where the last one ended. The result is OK only if every window of every source was compared.
///
/// Entries with the same timestamp, a document and the token of its operation, were written together and are written
/// together here too. They belong to one group, so they are in one window.
///
/// A token is valid only as long as the document's version is the one it was written with or a successor of that. If
/// two replicas have different versions and this one decides (MergeBucket::decides), the losing replica's tokens that
/// the winning replica does not know are cancelled: the winner's writes were made without knowledge of them.
///
/// A replica that has dropped its remove entries before some time (spi::Forgotten) had complete knowledge of the
/// writes before it. Only therefore can it tell a removed document from one that it never had. If two replicas have
/// dropped entries up to different times, the one that dropped less is no source for older entries. If that is the
/// receiver, it becomes like its source: it removes older entries that only it has (docs/design/0013).
///
/// Memory use is independent of the bucket's size and of the number of sources: the metadata of one window of both
/// replicas, about 200 bytes for each of StorageNodeOptions::merge_page_entries, and one block of documents. More is
/// needed only for what cannot be divided, the tokens of one document and documents larger than a block, and 32 bytes
/// for each entry that was lost here and is fetched a second time.
///
/// Confined to the stripe's executor; keeps itself alive until it has answered.
class BucketMerge : public std::enable_shared_from_this<BucketMerge> {
 public:
  static void start(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond);

 private:
  BucketMerge(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond);

  /// An entry that the source has newer than this replica. Ordered by its fields, so that entries written together are
  /// neighbours.
  struct Missing {
    std::uint64_t group = 0;
    std::uint64_t timestamp_us = 0;
    GlobalId gid;

    bool is_written_with(const Missing& other) const {
      return group == other.group && timestamp_us == other.timestamp_us;
    }
    friend auto operator<=>(const Missing&, const Missing&) = default;
  };

  /// The treatment of the source's entries that are older than the time up to which either replica has dropped remove
  /// entries.
  enum class History {
    Union,   ///< Takes all of them: both replicas have dropped the same, or neither is known to know more.
    Own,     ///< Takes only tokens: the receiver knows more.
    Source,  ///< Takes all of them, and removes older entries that the source does not have.
  };

  void next_source();
  /// Compares what both replicas have dropped, when the source's page arrives. Errors: NotReady if the source has
  /// dropped more since its first page.
  Status compare_forgotten(const rpc::ListEntriesReply& page);
  /// Sets `history_` from what both replicas have dropped, and adapts the receiver's Forgotten to it.
  Status choose_history(const rpc::ListEntriesReply& page);
  /// True if an entry here is older than the time up to which the source has dropped, but newer than the source's
  /// version of that document. Such an entry was never acknowledged. The engine would keep it, because it is newer, so
  /// the replica has to be emptied and filled again.
  bool hides_what_source_has() const;
  Status begin_from_nothing();
  /// Removes documents here that are older than what the source has dropped and that the source does not have.
  Status drop_unknown_to_source();
  Status take_over_forgotten();
  /// True if `timestamp` is in the time of which the receiver has complete knowledge and the source does not.
  bool is_closed(Timestamp timestamp) const { return history_ == History::Own && timestamp < own_forgotten_.removes; }
  void next_window();
  void ask_page(const GlobalId* after = nullptr);
  void on_page(Result<rpc::ListEntriesReply> page);
  /// Errors: Corruption if the page does not match the request.
  Status take_page(rpc::ListEntriesReply page);
  /// Takes a page of a source of an earlier version, which knows no windows: all its entries and all of ours form one
  /// window.
  void take_old_page(rpc::ListEntriesReply page);
  void compare_window();
  void plan();
  void ask_block();
  void send_ask_block();
  void on_block(Result<rpc::FetchEntriesReply> block);
  void window_done();
  void source_done();
  Status apply_blocks();
  Status apply(std::vector<spi::Write>& writes, std::vector<spi::WriteResult>& results);
  /// True if the engine refuses an entry because it has lost a newer version of the document.
  bool is_refused_for_loss(const spi::Write& write, const spi::WriteResult& result);
  /// Starts to fetch the refused entries again, so that they are taken. Returns false if there is nothing to fetch
  /// again.
  bool take_refused();
  bool loses(const EntryView& entry) const;
  void find_lost_tokens();
  void find_lost_adopted();
  void note_adopted(const EntryView& entry);
  void note_orphan(const EntryView& entry);
  /// Cancels tokens from a damaged source if the documents written with them did not come: those writes are lost.
  Status cancel_orphans();
  /// Cancels the tokens that came with our version of `document`, which another version is about to replace.
  void cancel_lost_tokens(const GlobalId& document, std::deque<std::string>& ids, std::vector<spi::Write>& writes);
  /// Returns the entry of `gid` as of the beginning of the window; null if there is none.
  static const spi::EntryMeta* find(const std::vector<spi::EntryMeta>& entries, const GlobalId& gid);
  bool is_outsider() const;
  /// Records that the source has reported damage.
  void note_damaged_source();
  bool is_source_damaged() const;
  /// OK while the distributor that asked for the merge still owns the bucket, the replica set is not newer than the
  /// merge, and the time limit is not over. Errors: WrongDistribution, Busy.
  Status check_goes_on() const;
  /// Does `step`, which moves documents, as soon as the node's budget allows. Ends the merge if check_goes_on() fails.
  void when_affordable(void (BucketMerge::*step)());
  void pause(Duration wait, void (BucketMerge::*step)());
  void charge(std::size_t bytes);
  void finish(Status status);
  const std::string* source_address() const;

  StorageNode::Stripe& stripe_;
  rpc::MergeBucket request_;
  rpc::Responder respond_;
  std::size_t source_ = 0;
  MonotonicTime deadline_;
  spi::GroupRange range_;                       // Groups of the source that are still to be compared.
  std::uint64_t window_end_ = spi::kLastGroup;  // The last group of the window.
  std::vector<spi::EntryMeta> own_;             // Entries of this replica in the window, by (group, gid).
  std::vector<spi::EntryMeta> theirs_;          // Entries of the source in the window, by (group, gid).
  // Sorted, so that entries written together are neighbours.
  std::vector<Missing> missing_;
  std::size_t fetched_ = 0;                                  // Number of entries of missing_ that are fetched.
  std::unordered_multimap<GlobalId, GlobalId> lost_tokens_;  // Tokens to cancel, by document.
  // Tokens that this merge took from non-member replicas, by document. They are few, because their writes were never
  // acknowledged.
  std::unordered_multimap<GlobalId, GlobalId> adopted_tokens_;
  // Tokens that this merge took from a damaged source, which may not have given the documents written with them.
  struct Orphan {
    GlobalId document;
    GlobalId token;
    Timestamp timestamp;
  };
  std::vector<Orphan> orphans_;
  // Fetched blocks that are not yet applied, because they end between entries of one timestamp.
  std::vector<std::string> blocks_;
  // Entries of the source that the engine refused.
  std::vector<Missing> refused_;
  bool retaking_ = false;  // True while missing_ holds the refused entries.
  History history_ = History::Union;
  bool is_first_page_ = true;        // True until the source's first page has arrived.
  spi::Forgotten own_forgotten_;     // This replica's, when the merge from this source began.
  spi::Forgotten source_forgotten_;  // The source's, when the merge from it began.
  rpc::MergeBucketReply reply_;
};

}  // namespace fjord::storage
