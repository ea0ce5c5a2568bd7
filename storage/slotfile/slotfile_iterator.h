#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine.h"
#include "fjord/storage/spi/entry_filter.h"
#include "read_window.h"

namespace fjord::slotfile {

/// Goes through the cells of a bucket, slot by slot, and through each slot in the order of its files, with reads of up
/// to 1 MiB. What a slot holds is listed once, when its turn comes; files do not change and are kept until then, so
/// that splits, joins and rewrites in between do not matter. Each document is looked up again before it is given: it
/// may have been replaced or removed. A snapshot lists all slots at once instead, copies what is held, and looks up
/// nothing: 48 bytes an entry, and what the bucket has in memory only.
class SlotfileIterator final : public spi::DocumentIterator {
 public:
  enum class OnCorruption { Fail, Skip };

  SlotfileIterator(Engine& engine, std::uint64_t uid, BucketId bucket, const spi::IterateOptions& options,
                   OnCorruption on_corruption = OnCorruption::Fail);
  ~SlotfileIterator() override;

  /// Once, before anything else: lists what there is now. Errors: IoError, Corruption.
  Status take_snapshot();

  Result<bool> next(DocBlockBuilder& into, std::size_t max_bytes) override;
  Result<bool> visit(const std::function<bool(const EntryView&)>& sink) override;

 private:
  using Sink = std::function<bool(const EntryView&)>;
  enum class Given { Nothing, GoOn, Stop };

  struct Side {
    ReadWindow window;
    std::string held;             ///< A part that was compressed, or could not be mapped.
    std::uint64_t ahead = 0;      ///< How far it pays to read on; see read_ahead().
    std::uint64_t asked_end = 0;  ///< Of a mapped file: up to here the system knows what is needed.
    std::uint64_t last_end = 0;   ///< One past the last part of the list in the open file.
  };

  Result<bool> advance(const Sink& sink, bool& given);
  Status start_slot();
  bool start_listed();
  void copy_held();
  /// What the list says is so now, or is to be given as if it were.
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
  Result<std::string_view> part(const MetaEntry& entry, Part part);
  Result<std::string_view> moved_part(const MetaEntry& entry, Part part);
  Result<std::string_view> plain(const MetaEntry& entry, Part part, std::string_view stored);
  std::uint64_t read_ahead(const MetaEntry& entry, Part part);
  void report(const MetaEntry& entry);

  Engine& engine_;
  EngineContext& context_;
  const std::uint64_t uid_;
  const BucketId id_;
  const spi::EntryFilter filter_;
  const OnCorruption on_corruption_;
  const bool looks_ahead_;
  unsigned next_cell_ = 0;

  Bucket* bucket_ = nullptr;  ///< During next(); null if it is gone, which only a snapshot outlives.
  struct Pending {
    MetaEntry entry;
    std::uint32_t number;
  };
  struct Listed {
    std::vector<Pending> entries;
    std::vector<FileRef> files;
  };
  const bool is_snapshot_;
  std::deque<Listed> listed_;  ///< The slots of a snapshot that are yet to be given.
  std::string held_copy_;      ///< Parts that a snapshot found in memory; positions of held entries count in it.
  std::vector<Pending> pending_;
  Slot* slot_ = nullptr;           ///< Where pending_ is from, as long as
  std::uint64_t slot_serial_ = 0;  ///< its index has this number.
  std::uint64_t changes_ = 0;      ///< The list is what the index says as long as nothing has changed since.
  bool moved_ = false;             ///< The current entry is not where the list says.
  std::vector<FileRef> files_;     ///< Of pending_.
  std::size_t at_ = 0;
  /// What a selection says of the entries before looked_end_, as far as it is known.
  enum class Matches : std::uint8_t { Unknown, No, Yes };
  std::vector<Matches> matches_;
  std::size_t looked_end_ = 0;
  std::uint16_t open_file_ = MetaEntry::kGone;  ///< Of files_: the one that the windows, or mapped_, are of.
  std::shared_ptr<RandomAccessFile> handle_;
  std::string_view mapped_;
  Status failure_;
  Side sides_[2];
};

}  // namespace fjord::slotfile
