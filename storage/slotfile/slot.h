#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catalog.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "part_buffer.h"
#include "slot_file.h"
#include "slot_index.h"

namespace fjord::slotfile {

/// Writes that are in the journal and not yet in a slotfile, laid out as the run that they will become.
struct HeldRun {
  struct Staged {
    std::uint32_t number;  ///< In the index.
    std::uint32_t header_position;
    std::uint32_t body_position;

    /// False if the entry was replaced since, or written.
    bool is(const MetaEntry& entry) const {
      return entry.held() && entry.header_position == header_position && entry.body_position == body_position;
    }
  };
  explicit HeldRun(ChunkPool& pool) : headers(pool), bodies(pool) {}

  PartBuffer headers;
  PartBuffer bodies;
  std::vector<Staged> staged;

  bool empty() const { return staged.empty(); }
  std::uint64_t bytes() const { return headers.size() + bodies.size() + staged.size() * kEntryBytes; }
};

/// A file, and which of its entries are meant.
struct FileRef {
  std::shared_ptr<SlotFile> file;
  BucketId bucket;
  unsigned first_cell = 0;
  unsigned end_cell = kCells;
  bool missing = false;  ///< There is no such file any more.

  SlotFile* operator->() const { return file.get(); }
  bool covers(const GlobalId& gid) const {
    const unsigned cell = cell_of(gid);
    return cell >= first_cell && cell < end_cell && bucket_of(gid, bucket.used_bits()) == bucket;
  }
  friend bool operator==(const FileRef&, const FileRef&) = default;
};

class Slot;

/// The slots whose indexes are in memory, the one used last first.
class LoadedSlots {
 public:
  void touch(Slot& slot);
  void remove(Slot& slot);
  Slot* oldest() const { return oldest_; }
  Slot* newest() const { return newest_; }
  Slot* newer(const Slot& slot) const;

 private:
  Slot* newest_ = nullptr;
  Slot* oldest_ = nullptr;
};

/// The documents of one bucket in some neighbouring cells: the slotfiles that hold them, and an index in memory that is
/// loaded when it is needed.
///
/// Threading: confined to its engine. Lifetime: the context outlives it.
class Slot {
 public:
  Slot(EngineContext& context, LoadedSlots& loaded, BucketId bucket, unsigned first_cell, unsigned depth);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  BucketId bucket() const { return bucket_; }
  unsigned first_cell() const { return first_cell_; }
  unsigned end_cell() const { return first_cell_ + (kCells >> depth_); }
  unsigned depth() const { return depth_; }
  /// True if it is this slot's.
  bool covers(const GlobalId& gid) const { return whole(nullptr).covers(gid); }
  SlotRecord record() const;

  const BucketInfo& info() const { return info_; }
  /// What the newest versions take in files, held ones included.
  std::uint64_t live_bytes() const { return live_bytes_; }
  std::uint64_t files_bytes() const;
  const std::vector<FileRef>& files() const { return files_; }
  void add_file(FileRef ref);
  /// For a slot that is read from the catalog.
  void set_info(const BucketInfo& info, std::uint64_t live_bytes);
  /// From now on removed entries that it covers are neither counted nor visible. If that changes what is there, the
  /// index is loaded. Returns by how much the checksum became less.
  std::uint64_t set_forgotten(const spi::Forgotten& forgotten);
  bool is_forgotten(const MetaEntry& entry) const {
    return entry.removed() && forgotten_.covers(entry.timestamp(), entry.is_token());
  }
  /// True for an entry of the index that readers get.
  bool is_visible(const MetaEntry& entry) const { return entry.file != MetaEntry::kGone && !is_forgotten(entry); }
  /// find() of the index, for readers.
  std::uint32_t find_visible(const GlobalId& gid) const {
    const std::uint32_t number = index_->find(gid);
    return number == SlotIndex::kNone || is_forgotten(index_->at(number)) ? SlotIndex::kNone : number;
  }
  /// Dropped entries in the index as last loaded, and since then: they are still in files.
  std::uint64_t forgotten_entries() const { return forgotten_entries_; }

  bool is_loaded() const { return index_ != nullptr; }
  /// Reads the metadata of its files. What damage it meets is counted and told by damage(). Errors: IoError.
  Status load();
  /// Has the system read what load() will need.
  void ask_for_lists();
  /// Frees the index; nothing is held.
  void unload();
  SlotIndex& index() { return *index_; }
  /// Another one whenever numbers in the index may mean something else.
  std::uint64_t index_serial() const { return index_serial_; }
  std::uint64_t index_bytes() const { return index_ == nullptr ? 0 : index_->memory_bytes(); }

  const HeldRun& held() const { return held_; }

  /// What is needed to take a staged write back.
  struct Undo {
    Slot* slot;
    std::uint32_t number;
    bool inserted;
    MetaEntry before;
    std::uint64_t max_timestamp_us;
    std::uint64_t headers;
    std::uint64_t bodies;
  };
  /// Takes a write in, if it is newer than what is there; it is loaded. True if it was, with `undo` filled.
  bool stage(const spi::Write& write, spi::WriteResult& result, Undo& undo);
  /// The same for parts as they are stored, from the journal. With `replaces_equal` also instead of the same version in
  /// a file, which may be damaged. False if nothing changed.
  bool stage_stored(MetaEntry entry, std::string_view header, std::string_view body, bool replaces_equal);
  /// The latest stage() that was not taken back.
  void take_back(const Undo& undo);
  /// The parts of a held entry with their checksums.
  std::string_view held_part(const MetaEntry& entry, Part part) const;

  /// Appends what is held, the oldest first and up to about `bytes_max`, as a run to the last file, if that is this
  /// slot's alone and has room, else to one that `make_file` gives. Errors: NoSpace, IoError; then it is still held.
  Status flush(std::uint64_t bytes_max, const std::function<std::shared_ptr<SlotFile>()>& make_file);

  /// Brings the index into the order of the files, so that whoever goes through the documents has no sorting to do.
  /// Numbers change. Left out while something is held or the slot is being rewritten.
  void sort_index();

  /// For a new slot: an empty index, and entries of other slots with the files that they are in.
  void make_index(std::uint64_t expected_entries);
  void adopt(MetaEntry entry, const FileRef& from);
  /// Takes over what another slot holds and is this slot's.
  void adopt_held(const Slot& other);
  void inherit_damage(const Slot& other);

  /// Reads, verifies and decompresses. The view is of memory of the slot, of a mapped file or of `buffer`, and good
  /// until the next call of the engine. An entry that does not verify is put in quarantine. Errors: Corruption,
  /// IoError.
  Result<std::string_view> read_part(std::uint32_t number, Part part, std::string& buffer);
  /// Says that the entry is about to be read; see SlotFile::read_ahead().
  unsigned read_ahead(const MetaEntry& entry, bool body) {
    return entry.held() ? 0 : files_[entry.file]->read_ahead(entry, body);
  }
  /// Takes an entry out of the index and remembers its id: nobody may be told that it does not exist.
  void quarantine(std::uint32_t number);
  /// And with it, if its file was cut off, all entries that the file does not have any more: a merge would take them
  /// for there.
  void quarantine_with_cut_off(std::uint32_t number);
  /// Takes out a removed entry for good.
  void forget(std::uint32_t number);
  /// Nothing is known about the id because of damage.
  bool is_uncertain(const GlobalId& gid) const;
  /// False again once newer or equal versions of what was lost are here.
  bool is_damaged();
  void clear_damage();
  void set_lost_entries() { lost_entries_ = true; }

  /// A rewrite put live entries in `file`: it replaces all others.
  void replace_files(std::shared_ptr<SlotFile> file);

  // For the engine's bookkeeping.
  std::size_t to_flush = 0;  ///< How many of the held writes, from the oldest, the checkpoint is yet to write.
  bool rewriting = false;
  bool wants_rewrite = false;
  bool pinned = false;  ///< Its index is not dropped.
  bool damage_reported = false;
  bool adopting_info = false;  ///< While the journal is replayed the catalog's info is no news.

 private:
  friend class LoadedSlots;

  void account(const MetaEntry& entry, bool add);
  /// All of a file, as far as it can be this slot's.
  FileRef whole(std::shared_ptr<SlotFile> file) const { return {std::move(file), bucket_, first_cell_, end_cell()}; }
  FileRef part_of(const FileRef& from) const;
  bool may_append(std::uint64_t bytes) const;
  Status load_file(std::uint16_t ordinal, SlotIndex& index);
  bool is_superseded(std::uint32_t number, const GlobalId& gid, std::uint64_t timestamp_us, spi::WriteResult& result);
  void put_entry(std::uint32_t number, MetaEntry entry);
  struct Prefix;
  Prefix first_held(std::uint64_t bytes_max) const;
  Status append_prefix(const Prefix& prefix, std::vector<MetaEntry>& entries,
                       const std::function<std::shared_ptr<SlotFile>()>& make_file);
  void drop_held(const Prefix& prefix);

  EngineContext& context_;
  LoadedSlots& loaded_;
  const BucketId bucket_;
  const unsigned first_cell_;
  const unsigned depth_;
  std::vector<FileRef> files_;
  BucketInfo info_;
  std::uint64_t live_bytes_ = 0;
  spi::Forgotten forgotten_;
  std::uint64_t forgotten_entries_ = 0;
  std::unique_ptr<SlotIndex> index_;
  std::uint64_t index_serial_ = 0;
  HeldRun held_;
  std::vector<std::pair<GlobalId, std::uint64_t>> quarantine_;  ///< Ids and the timestamps of what was lost.
  bool lost_entries_ = false;                                   ///< Metadata that nobody can read any more.
  Slot* newer_ = nullptr;
  Slot* older_ = nullptr;
  bool linked_ = false;
};

}  // namespace fjord::slotfile
