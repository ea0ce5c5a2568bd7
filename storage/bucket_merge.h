#pragma once

#include <map>
#include <memory>
#include <vector>

#include "stripe.h"

namespace fjord::storage {

/// Fetches into one bucket what other replicas have newer: their metadata page by page, compared with ours, then the
/// entries that we lack in blocks. Newest timestamp wins, so writes may go on meanwhile and a repetition goes on where
/// the last one ended. Confined to the stripe's executor; keeps itself alive until it has answered.
class BucketMerge : public std::enable_shared_from_this<BucketMerge> {
 public:
  static void start(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond);

 private:
  BucketMerge(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond);

  void next_source();
  void ask_page(const GlobalId* after);
  void on_page(Result<rpc::ListEntriesReply> page);
  void ask_block();
  void on_block(Result<rpc::FetchEntriesReply> block);
  Status apply_block(const std::string& docblock);
  void finish(Status status);
  const std::string* source_address() const;

  StorageNode::Stripe& stripe_;
  rpc::MergeBucket request_;
  rpc::Responder respond_;
  std::size_t source_ = 0;
  std::vector<spi::EntryMeta> own_;  // By gid, as of the beginning of the source's turn.
  std::vector<GlobalId> missing_;    // Of the current page, not fetched yet.
  GlobalId page_end_;
  bool more_pages_ = false;
  rpc::MergeBucketReply reply_;
};

}  // namespace fjord::storage
