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

/// Fetches into one bucket what other replicas have newer, one source after the other and window by window
/// (spi::list_window): the metadata of both, then the entries that we lack in blocks. Newest timestamp wins, so writes
/// may go on meanwhile and a repetition goes on where the last one ended. It is OK only if every window of every source
/// was gone through.
///
/// Entries of one timestamp were written together, a document and the token of its operation, and are so again here.
/// They are of one group, so they are in one window.
///
/// A token counts only as long as the version it was written with, or one that follows it, is the document's. So if two
/// replicas have different versions and this one decides (MergeBucket::decides), the tokens of the one that loses are
/// cancelled if the other does not know them: its writes were made without seeing those.
///
/// A replica has dropped removed entries that are older than a time (spi::Forgotten), and then it knows all there is to
/// know of what was written before: it can tell a document that was removed from one that it never had only by that. So
/// where two replicas have dropped up to different times, the one that dropped less is no source of what is older. If
/// it is the receiver, it becomes like its source: what it alone has and what is older goes (docs/design/0013).
///
/// Memory, whatever the bucket holds and however many sources there are: the metadata of one window of both replicas,
/// about 200 bytes an entry of StorageNodeOptions::merge_page_entries, and a block of documents. More only for what
/// cannot be taken apart: the tokens of one document, documents that are larger than a block; and 32 bytes for each
/// entry that was lost here and is fetched once more.
///
/// Confined to the stripe's executor; keeps itself alive until it has answered.
class BucketMerge : public std::enable_shared_from_this<BucketMerge> {
 public:
  static void start(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond);

 private:
  BucketMerge(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond);

  struct Missing {
    std::uint64_t group = 0;
    std::uint64_t timestamp_us = 0;
    GlobalId gid;

    bool is_written_with(const Missing& other) const {
      return group == other.group && timestamp_us == other.timestamp_us;
    }
    friend auto operator<=>(const Missing&, const Missing&) = default;
  };

  /// What the receiver takes of entries that are older than what either of the two has dropped.
  enum class History {
    Union,   ///< All of it: both have dropped the same, or nobody knows better.
    Own,     ///< None but tokens: the receiver knows better.
    Source,  ///< All of it, and what the source does not have goes.
  };

  void next_source();
  /// Compares what both have dropped, with the first page of the source. Errors: NotReady if it changed meanwhile.
  Status compare_forgotten(const rpc::ListEntriesReply& page);
  Status choose_history(const rpc::ListEntriesReply& page);
  /// Something here is older than what the source has dropped, and newer than what the source has of that document. It
  /// was never acknowledged; but the engine keeps what is newer, so the replica has to be filled from nothing.
  bool hides_what_source_has() const;
  Status begin_from_nothing();
  /// Removes what is here, and is older than what the source has dropped, and not there.
  Status drop_unknown_to_source();
  Status take_over_forgotten();
  /// The receiver knows all there is of that time, and the source does not.
  bool is_closed(Timestamp timestamp) const { return history_ == History::Own && timestamp < own_forgotten_.removes; }
  void next_window();
  void ask_page(const GlobalId* after = nullptr);
  void on_page(Result<rpc::ListEntriesReply> page);
  /// Errors: Corruption if this is not what was asked for.
  Status take_page(rpc::ListEntriesReply page);
  /// A source of an earlier version has no windows: all it holds, and all we do, is one.
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
  /// The engine does not take an entry because it lost a newer version of it.
  bool is_refused_for_loss(const spi::Write& write, const spi::WriteResult& result);
  /// True if entries that were refused are now fetched again, to be taken.
  bool take_refused();
  bool loses(const EntryView& entry) const;
  void find_lost_tokens();
  void find_lost_adopted();
  void note_adopted(const EntryView& entry);
  void note_orphan(const EntryView& entry);
  /// Cancels the tokens of a damaged source whose writes it could not give: they are lost.
  Status cancel_orphans();
  /// Cancels the tokens that came with our version of `document`, which is about to lose.
  void cancel_lost_tokens(const GlobalId& document, std::deque<std::string>& ids, std::vector<spi::Write>& writes);
  /// Of our entry or of the source's, as of the beginning of the window; null if there is none.
  static const spi::EntryMeta* find(const std::vector<spi::EntryMeta>& entries, const GlobalId& gid);
  bool is_outsider() const;
  /// The source said that it has lost something.
  void note_damaged_source();
  bool is_source_damaged() const;
  /// OK while whoever asked for this may do so, and is not to be told how far it came.
  Status check_goes_on() const;
  /// Does the next step, which moves documents, as soon as the node's budget has something left; or ends the merge.
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
  spi::GroupRange range_;                                    // What is left of the source's turn.
  std::uint64_t window_end_ = spi::kLastGroup;               // The last group of the window.
  std::vector<spi::EntryMeta> own_;                          // In the window, by (group, gid).
  std::vector<spi::EntryMeta> theirs_;                       // The same.
  std::vector<Missing> missing_;                             // By rising member, so that what was written together is.
  std::size_t fetched_ = 0;                                  // Of missing_.
  std::unordered_multimap<GlobalId, GlobalId> lost_tokens_;  // By document.
  // Those that this merge took from outsiders, by document. Few: nobody was told that their writes were applied.
  std::unordered_multimap<GlobalId, GlobalId> adopted_tokens_;
  // Tokens that this merge took from the source, which is damaged: their documents may not have come with them.
  struct Orphan {
    GlobalId document;
    GlobalId token;
    Timestamp timestamp;
  };
  std::vector<Orphan> orphans_;
  std::vector<std::string> blocks_;  // Fetched and not applied: they end within entries of one timestamp.
  std::vector<Missing> refused_;     // Entries of the source that the engine did not take.
  bool retaking_ = false;            // They are in missing_.
  History history_ = History::Union;
  bool is_first_page_ = true;        // Of the source.
  spi::Forgotten own_forgotten_;     // As it was when the source's turn began.
  spi::Forgotten source_forgotten_;  // The same.
  rpc::MergeBucketReply reply_;
};

}  // namespace fjord::storage
