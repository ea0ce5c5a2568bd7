#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "stripe.h"

namespace fjord::storage {

/// Fetches into one bucket what other replicas have newer: their metadata page by page, then the entries that we lack
/// in blocks. Newest timestamp wins, so writes may go on meanwhile and a repetition goes on where the last one ended.
/// Entries of one timestamp were written together, a document and the token of its operation, and are so again here.
///
/// A token counts only as long as the version it was written with, or one that follows it, is the document's. So if two
/// replicas have different versions and this one decides (MergeBucket::decides), the tokens of the one that loses are
/// cancelled if the other does not know them: its writes were made without seeing those.
///
/// Confined to the stripe's executor; keeps itself alive until it has answered.
class BucketMerge : public std::enable_shared_from_this<BucketMerge> {
 public:
  static void start(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond);

 private:
  BucketMerge(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond);

  struct Missing {
    GlobalId gid;
    std::uint64_t timestamp_us = 0;
    GlobalId leader;  ///< The first of the entries of the same timestamp.
  };

  void next_source();
  void ask_page(const GlobalId* after);
  void on_page(Result<rpc::ListEntriesReply> page);
  void plan();
  void ask_block();
  void on_block(Result<rpc::FetchEntriesReply> block);
  Status apply_blocks();
  Status apply(std::vector<spi::Write>& writes, std::vector<spi::WriteResult>& results);
  /// The engine does not take an entry because it lost a newer version of it.
  bool is_refused_for_loss(const spi::Write& write, const spi::WriteResult& result);
  Status apply_refused();
  bool loses(const EntryView& entry) const;
  void find_lost_tokens();
  /// The token that came with our version of `document`, which is about to lose, cancelled.
  std::optional<spi::Write> cancel_lost_token(const GlobalId& document, std::deque<std::string>& ids);
  /// Of our entry or of the source's, as of the beginning of the source's turn; null if there is none.
  static const spi::EntryMeta* find(const std::vector<spi::EntryMeta>& entries, const GlobalId& gid);
  bool is_outsider() const;
  /// The source said that it has lost something.
  void note_damaged_source();
  bool is_source_damaged() const;
  void finish(Status status);
  const std::string* source_address() const;

  StorageNode::Stripe& stripe_;
  rpc::MergeBucket request_;
  rpc::Responder respond_;
  std::size_t source_ = 0;
  std::vector<spi::EntryMeta> own_;                     // By gid.
  std::vector<spi::EntryMeta> theirs_;                  // By gid.
  std::vector<Missing> missing_;                        // Those of one timestamp side by side.
  std::size_t fetched_ = 0;                             // Of missing_.
  std::unordered_map<GlobalId, GlobalId> lost_tokens_;  // By document.
  std::vector<std::string> blocks_;  // Fetched and not applied: they end within entries of one timestamp.
  DocBlockBuilder refused_;          // Entries of an intact member that the engine did not take.
  rpc::MergeBucketReply reply_;
};

}  // namespace fjord::storage
