#pragma once

#include <memory>
#include <string>
#include <vector>

#include "merge_context.h"
#include "merge_history.h"
#include "merge_tokens.h"

namespace fjord::storage {

/// Fetches entries into one bucket that are newer on other replicas. It takes one source after the other and works
/// window by window (spi::list_window): first it compares the metadata of both replicas, then it fetches the entries
/// missing here in blocks. The newest timestamp wins, so writes may go on meanwhile, and a repeated merge continues
/// where the last one ended. The result is OK only if every window of every source was compared.
///
/// A document and the tokens of its operations belong to one group, so they are in one window, and they are written
/// here in one call of the engine. A document without the token of its version would be changed twice by a repetition
/// of the operation. A token without the document would count as applied what is not there.
///
/// MergeTokens decides about tokens, and MergeHistory about remove entries that were dropped.
///
/// Memory use is independent of the bucket's size and of the number of sources: the metadata of one window of both
/// replicas, about 200 bytes for each of StorageNodeOptions::merge_page_entries, and one block of documents. More is
/// needed only for what cannot be divided (the tokens of one document, and documents larger than a block), and 32 bytes
/// for each entry that was lost here and is fetched a second time.
///
/// Confined to the stripe's executor; keeps itself alive until it has answered.
class BucketMerge : public std::enable_shared_from_this<BucketMerge> {
 public:
  static void start(StripeParts& parts, Executor& executor, rpc::MergeBucket request, rpc::Responder respond);

 private:
  BucketMerge(StripeParts& parts, Executor& executor, rpc::MergeBucket request, rpc::Responder respond);

  void next_source();
  /// Returns true if the source is an intact member and this replica is damaged.
  bool is_repair() const;
  /// Has the engine rewrite the bucket's files, and begins with the source again when that is done. Whatever cannot
  /// be read here is out of the replica then, and the merge brings all of it back.
  void renew();
  void next_window();
  void ask_page(const GlobalId* after = nullptr);
  void on_page(Result<rpc::ListEntriesReply> page);
  /// Uses a page from a source of an earlier version, which knows no windows: all entries of the source and all of this
  /// replica form one window.
  void take_old_page(rpc::ListEntriesReply page);
  void compare_window();
  void plan();
  void ask_block();
  void send_ask_block();
  void on_block(Result<rpc::FetchEntriesReply> block);
  void window_done();
  void source_done();
  Status apply_blocks();
  /// Returns true if the engine refuses an entry because it has lost a newer version of the document.
  bool is_refused_for_loss(const spi::Write& write, const spi::WriteResult& result);
  /// Starts to fetch again the entries that the engine refused; this time it has to accept them. Returns false if
  /// there are none.
  bool take_refused();
  /// Returns OK while the distributor that asked for the merge still owns the bucket, the replica set is not newer than
  /// the merge, and the time limit has not passed. Errors: WrongDistribution, Busy.
  Status check_goes_on() const;
  /// Runs `step`, which moves documents, as soon as the node's budget allows it. Ends the merge if check_goes_on()
  /// fails.
  void when_affordable(void (BucketMerge::*step)());
  void pause(Duration wait, void (BucketMerge::*step)());
  void charge(std::size_t bytes);
  void finish(Status status);
  const std::string* source_address() const;

  MergeContext merge_;
  Executor& executor_;
  rpc::Responder respond_;
  MergeHistory history_;
  MergeTokens tokens_;
  MonotonicTime deadline_;
  std::vector<MissingEntry> missing_;  // Entries to fetch, sorted, so that those of a group are neighbours.
  std::size_t fetched_ = 0;            // Number of entries of missing_ that have been fetched.
  // Fetched blocks that wait to be applied: the last one ends between two entries of a group.
  std::vector<std::string> blocks_;
  // Entries of the source that the engine refused.
  std::vector<MissingEntry> refused_;
  bool renewed_ = false;   // True if the engine has rewritten the bucket's files, or could not.
  bool retaking_ = false;  // True while the entries that the engine refused are applied a second time.
};

}  // namespace fjord::storage
