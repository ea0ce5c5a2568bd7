#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "bucket.h"
#include "fjord/storage/spi/entry_filter.h"
#include "read_window.h"

namespace fjord::slotfile {

using BucketMap = std::unordered_map<BucketId, std::unique_ptr<Bucket>>;

/// Goes through the slotfiles of a bucket one after the other, each in the order of its blobs, with reads of up to 1
/// MiB.
///
/// The list of what is left of the current slotfile holds numbers into its index, which stay good when documents are
/// replaced and when the file is rewritten. After a split the list is made again from the ids in it.
class SlotfileIterator final : public spi::DocumentIterator {
 public:
  SlotfileIterator(EngineContext& context, const BucketMap& buckets, const Bucket& bucket,
                   const spi::IterateOptions& options);
  ~SlotfileIterator() override;

  Result<bool> next(DocBlockBuilder& into, std::size_t max_bytes) override;

 private:
  struct Pending {
    GlobalId gid;
    std::uint32_t slot;
    std::uint32_t number;
  };
  struct Side {
    ReadWindow window;
    std::string moved;        ///< The part of a document that was replaced after the list was made.
    std::uint64_t ahead = 0;  ///< How far it pays to read on; see read_ahead().
  };

  Status resume();
  bool start_next_slot();
  void add_slot(std::uint32_t slot);
  void order_pending();
  Status give(DocBlockBuilder& into);
  Status give_document(Slot& slot, const MetaEntry& entry, DocBlockBuilder& into);
  Result<std::string_view> part(Slot& slot, const MetaEntry& entry, Part part);
  std::uint64_t read_ahead(const Slot& slot, Part part, std::uint64_t begin, std::uint64_t length);
  std::uint64_t layout_version() const;

  EngineContext& context_;
  const BucketMap& buckets_;
  const BucketId id_;
  const std::uint64_t incarnation_;
  const spi::EntryFilter filter_;
  /// The slots that it goes through are those of the bucket when it began: (their bits, those that are done). After a
  /// split each stands for the ones it has become.
  const unsigned first_slot_bits_;
  std::uint32_t next_slot_ = 0;

  Bucket* bucket_ = nullptr;  ///< During next().
  std::uint32_t generation_;
  std::uint64_t layout_version_ = 0;
  std::vector<Pending> pending_;
  std::size_t at_ = 0;
  std::vector<std::uint64_t> header_ends_;  ///< By slot: what lies behind was written after the list was made.
  std::uint32_t window_slot_ = 0;           ///< Whose bytes the windows hold.
  Side sides_[2];
};

}  // namespace fjord::slotfile
