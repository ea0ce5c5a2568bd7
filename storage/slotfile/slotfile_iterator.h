#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "bucket_table.h"
#include "fjord/storage/spi/entry_filter.h"
#include "read_window.h"

namespace fjord::slotfile {

/// Walks through the cells of a bucket slot by slot, and through each slot in the order of its files, with reads of up
/// to 1 MiB. The entries of a slot are listed once, when the iterator reaches it. Files do not change and are kept
/// until then, so splits, joins and rewrites in between do no harm. Each document is looked up again before it is
/// given, because it may have been replaced or removed. A snapshot instead lists all slots at once, copies the data
/// that is held in memory, and looks up nothing. A snapshot takes 48 bytes for each entry, plus the held data.
class SlotfileIterator final : public spi::DocumentIterator {
 public:
  enum class OnCorruption { Fail, Skip };

  SlotfileIterator(BucketTable& table, std::uint64_t uid, BucketId bucket, const spi::IterateOptions& options,
                   OnCorruption on_corruption = OnCorruption::Fail);
  ~SlotfileIterator() override;

  /// Calls `at_slot` for each slot when the iterator reaches it, before its documents are read. With
  /// OnCorruption::Skip, a slot whose index cannot be loaded is skipped.
  void set_at_slot(std::function<void(Bucket&, Slot&)> at_slot) { at_slot_ = std::move(at_slot); }
  /// Lists the current content. To be called once, before anything else. Errors: IoError, Corruption.
  Status take_snapshot();

  Result<bool> next(DocBlockBuilder& into, std::size_t max_bytes) override;
  Result<bool> visit(const std::function<bool(const EntryView&)>& sink) override;

 private:
  using Sink = std::function<bool(const EntryView&)>;
  enum class Given { Nothing, GoOn, Stop };

  struct Side {
    ReadWindow window;
    std::string held;  ///< Holds a part that was compressed, or could not be mapped.
    /// Number of bytes that are worth reading at once; see read_ahead().
    std::uint64_t ahead = 0;
    /// End of the range of a mapped file that the system was asked to read.
    std::uint64_t asked_end = 0;
    /// Offset one past the last listed part in the open file.
    std::uint64_t last_end = 0;
  };

  Result<bool> advance(const Sink& sink, bool& given);
  Status start_slot();
  bool start_listed();
  void copy_held();
  /// Returns true if the list is up to date, or is a snapshot.
  bool is_list_valid() const { return is_snapshot_ || changes_ == context_.changes; }
  Status open_file_of(const MetaEntry& entry);
  void ask_for(Side& side, const MetaEntry& entry, Part part);
  void look_ahead();
  void look_at(std::size_t i);
  void ask_for_next_slot();
  bool goes_in_order(Part part) const {
    return part == Part::Header || !filter_.has_selection() || filter_.selects_on_body();
  }
  Result<Given> give(const Sink& sink);
  Result<const MetaEntry*> as_it_is_now();
  Result<Given> give_entry(const MetaEntry& entry, const Sink& sink);
  Result<Given> give_document(const MetaEntry& entry, const Sink& sink);
  Result<Given> hand_over(const EntryView& entry, const Sink& sink);
  Result<std::string_view> stored_part(const MetaEntry& entry, Part part);
  Result<std::string_view> read_or_loss(const MetaEntry& entry, Part part);
  Result<std::string_view> part(const MetaEntry& entry, Part part);
  Result<std::string_view> moved_part(const MetaEntry& entry, Part part);
  Result<std::string_view> plain(const MetaEntry& entry, Part part, std::string_view stored);
  std::uint64_t read_ahead(const MetaEntry& entry, Part part);
  void report(const MetaEntry& entry);

  BucketTable& table_;
  EngineContext& context_;
  const std::uint64_t uid_;
  const BucketId id_;
  spi::EntryFilter filter_;
  const OnCorruption on_corruption_;
  const bool looks_ahead_;
  std::function<void(Bucket&, Slot&)> at_slot_;
  unsigned next_cell_ = 0;

  /// Valid during next(). Null if the bucket no longer exists; only a snapshot continues without it.
  Bucket* bucket_ = nullptr;
  struct Pending {
    MetaEntry entry;
    std::uint32_t number;
  };
  struct Listed {
    std::vector<Pending> entries;
    std::vector<FileRef> files;
  };
  const bool is_snapshot_;
  std::deque<Listed> listed_;  ///< The slots of a snapshot that have not been given yet.
  /// Copies of parts that were held in memory when the snapshot was made; positions of held entries refer to it.
  std::string held_copy_;
  std::vector<Pending> pending_;
  /// The slot of pending_; valid as long as its index has the serial number slot_serial_.
  Slot* slot_ = nullptr;
  std::uint64_t slot_serial_ = 0;
  /// The value of EngineContext::changes when the list was last known to be up to date.
  std::uint64_t changes_ = 0;
  bool moved_ = false;          ///< True if the current entry has another place than the list says.
  std::vector<FileRef> files_;  ///< The files to which the entries in pending_ refer.
  std::size_t at_ = 0;
  /// Results of the selection for the entries before looked_end_, as far as they are known.
  enum class Matches : std::uint8_t { Unknown, No, Yes };
  std::vector<Matches> matches_;
  std::size_t looked_end_ = 0;
  /// Index in files_ of the file that the windows, or mapped_, refer to.
  std::uint16_t open_file_ = MetaEntry::kGone;
  std::shared_ptr<RandomAccessFile> handle_;
  std::string_view mapped_;
  Status failure_;
  Side sides_[2];
};

}  // namespace fjord::slotfile
