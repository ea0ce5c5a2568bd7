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

/// The writes of a slot that are in the journal and not yet in a slotfile, in the layout of the run that will be
/// written to a slotfile.
struct HeldRun {
  struct Staged {
    std::uint32_t number;  ///< Number of the entry in the index.
    std::uint32_t header_position;
    std::uint32_t body_position;

    /// Returns false if the entry was replaced or written to a file meanwhile.
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

/// A file with the range of entries in it that count.
struct FileRef {
  std::shared_ptr<SlotFile> file;
  BucketId bucket;
  unsigned first_cell = 0;
  unsigned end_cell = kCells;
  bool missing = false;  ///< True if the file no longer exists.

  SlotFile* operator->() const { return file.get(); }
  bool covers(const GlobalId& gid) const {
    const unsigned cell = cell_of(gid);
    return cell >= first_cell && cell < end_cell && bucket_of(gid, bucket.used_bits()) == bucket;
  }
  friend bool operator==(const FileRef&, const FileRef&) = default;
};

class Slot;

/// The slots whose indexes are in memory, most recently used first.
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

/// The documents of one bucket whose hashes lie in a range of cells (64 equal parts of the hash range,
/// storage/FORMAT.md): the slotfiles that hold them, and an index in memory that is loaded when it is needed.
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
  /// Returns true if documents with this id belong to this slot.
  bool covers(const GlobalId& gid) const { return whole(nullptr).covers(gid); }
  SlotRecord record() const;

  const BucketInfo& info() const { return info_; }
  /// Returns the bytes of the newest versions, in files and held.
  std::uint64_t live_bytes() const { return live_bytes_; }
  std::uint64_t files_bytes() const;
  const std::vector<FileRef>& files() const { return files_; }
  void add_file(FileRef ref);
  /// Sets the info and the live bytes that the catalog has.
  void set_info(const BucketInfo& info, std::uint64_t live_bytes);
  /// Hides the remove entries that `forgotten` covers: they are no longer counted or visible. Requires a loaded index
  /// if this changes which entries are visible. Returns by how much the checksum decreased.
  std::uint64_t set_forgotten(const spi::Forgotten& forgotten);
  bool is_forgotten(const MetaEntry& entry) const {
    return entry.removed() && forgotten_.covers(entry.timestamp(), entry.is_token());
  }
  /// Returns true for an index entry that readers may see.
  bool is_visible(const MetaEntry& entry) const { return entry.file != MetaEntry::kGone && !is_forgotten(entry); }
  /// Returns the number of the entry of `gid` if readers may see it, else SlotIndex::kNone.
  std::uint32_t find_visible(const GlobalId& gid) const {
    const std::uint32_t number = index_->find(gid);
    return number == SlotIndex::kNone || is_forgotten(index_->at(number)) ? SlotIndex::kNone : number;
  }
  /// Returns the number of dropped entries that are still in the index and in files.
  std::uint64_t forgotten_entries() const { return forgotten_entries_; }

  bool is_loaded() const { return index_ != nullptr; }
  enum class Unreadable { Fails, IsLost };
  /// Loads the index from the metadata in the files. Damage is counted in the statistics and makes is_damaged() true.
  /// With IsLost, entries in a file that can be opened and not read count as lost. Errors: IoError.
  Status load(Unreadable unreadable = Unreadable::Fails);
  /// Asks the system to read in advance the metadata that load() will need.
  void ask_for_lists();
  /// Frees the index. Requires that no entry is held.
  void unload();
  SlotIndex& index() { return *index_; }
  /// Returns a number that changes whenever an entry's number in the index may have changed.
  std::uint64_t index_serial() const { return index_serial_; }
  std::uint64_t index_bytes() const { return index_ == nullptr ? 0 : index_->memory_bytes(); }

  const HeldRun& held() const { return held_; }

  /// The state that is needed to undo a staged write.
  struct Undo {
    Slot* slot;
    std::uint32_t number;
    bool inserted;
    MetaEntry before;
    std::uint64_t max_timestamp_us;
    std::uint64_t headers;
    std::uint64_t bodies;
  };
  /// Returns true if this version is in a file, and the file's copy of it does not verify.
  bool has_bad_copy(const MetaEntry& entry);
  /// Adds a write to the held run if it is newer than the stored entry. Requires a loaded index. Returns true and fills
  /// `undo` if it was newer.
  bool stage(const spi::Write& write, spi::WriteResult& result, Undo& undo);
  /// Like stage(), for a write with parts in stored form, from the journal. With `replaces_equal` the write also
  /// replaces the same version in a file, which may be damaged. Returns false if nothing changed.
  bool stage_stored(MetaEntry entry, std::string_view header, std::string_view body, bool replaces_equal);
  /// Undoes the latest stage() that was not undone yet.
  void take_back(const Undo& undo);
  /// Returns a part of a held entry, including its checksum.
  std::string_view held_part(const MetaEntry& entry, Part part) const;

  /// Appends held entries as a run to a file, oldest first and up to about `bytes_max`. The file is the last one, if it
  /// belongs to this slot alone and has room; otherwise a new one from `make_file`. Errors: NoSpace, IoError; the
  /// entries are then still held.
  Status flush(std::uint64_t bytes_max, const std::function<std::shared_ptr<SlotFile>()>& make_file);

  /// Sorts the index by position in the files, so that readers of all documents need not sort. Changes the numbers of
  /// entries. Does nothing while entries are held or the slot is being rewritten.
  void sort_index();

  /// Makes an empty index for a new slot. adopt() then adds entries of other slots together with their files.
  void make_index(std::uint64_t expected_entries);
  void adopt(MetaEntry entry, const FileRef& from);
  /// Refers to the part of a file of another slot that this slot covers, although no entry of it is known.
  void keep_file(const FileRef& from);
  /// Stages the entries that `other` still holds in memory and that belong to this slot.
  void adopt_held(const Slot& other);
  void inherit_damage(const Slot& other);

  /// Reads, verifies and decompresses a part. The view refers to memory of the slot, to a mapped file or to `buffer`,
  /// and is valid until the next call of the engine. An entry that fails verification is put in quarantine. Errors:
  /// Corruption, IoError.
  Result<std::string_view> read_part(std::uint32_t number, Part part, std::string& buffer);
  /// Announces that the entry is about to be read; see SlotFile::read_ahead().
  unsigned read_ahead(const MetaEntry& entry, bool body) {
    return entry.held() ? 0 : files_[entry.file]->read_ahead(entry, body);
  }
  /// Hints that the parts of this document are read next. Does nothing if they are not in a mapped file that is open.
  void prefetch_parts(const GlobalId& gid);
  /// Removes an entry from the index and remembers its id, so that readers are not told that the document does not
  /// exist.
  void quarantine(std::uint32_t number);
  /// Quarantines the entry. If its file was truncated, also quarantines all entries in the missing part; a merge would
  /// otherwise believe that they are present.
  void quarantine_with_cut_off(std::uint32_t number);
  /// Removes a dropped remove entry from the index.
  void forget(std::uint32_t number);
  /// Returns true if damage makes it unknown whether a document with this id exists.
  bool is_uncertain(const GlobalId& gid) const;
  /// Returns true while entries are lost: until newer or equal versions of them are here or, for lost metadata, until
  /// clear_damage() is called.
  bool is_damaged();
  void clear_damage();
  void set_lost_entries() { lost_entries_ = true; }
  /// Returns true if a file may hold something that does not verify, so that the slot has to be rewritten.
  bool is_suspect() const { return suspect_; }
  void set_suspect() {
    suspect_ = true;
    context_.may_renew = true;
  }
  /// Must be called only when no file holds anything that does not verify.
  void clear_suspect() { suspect_ = false; }
  /// Returns true if the metadata in a file is bad, so that the index in memory may be the only good copy of it.
  bool is_list_bad() const { return list_bad_; }
  void set_list_bad() {
    list_bad_ = true;
    set_suspect();
  }
  /// After a failed rewrite the slot waits for some time, longer after each failure, so that it does not keep other
  /// work waiting.
  void put_off_rewrite(MonotonicTime now);
  /// Returns the time before which maintain() does not try again to rewrite the slot.
  MonotonicTime rewrite_at() const { return rewrite_at_; }

  /// Ends a rewrite that has copied the live entries into `file`, which replaces all other files.
  void replace_files(std::shared_ptr<SlotFile> file);

  // Members that the other parts of the engine use.
  std::size_t to_flush = 0;  ///< Number of held writes, from the oldest, that the checkpoint still has to write.
  bool rewriting = false;
  bool pinned = false;  ///< True while the index must not be unloaded.
  bool damage_reported = false;
  /// True while the journal is replayed: a difference from the catalog's info is no damage then.
  bool adopting_info = false;

 private:
  friend class LoadedSlots;

  void account(const MetaEntry& entry, bool add);
  /// Returns a reference to all entries of a file that can belong to this slot.
  FileRef whole(std::shared_ptr<SlotFile> file) const { return {std::move(file), bucket_, first_cell_, end_cell()}; }
  FileRef part_of(const FileRef& from) const;
  bool may_append(std::uint64_t bytes) const;
  Status load_file(std::uint16_t ordinal, SlotIndex& index, Unreadable unreadable);
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
  /// Ids of entries that could not be read, with their timestamps.
  std::vector<std::pair<GlobalId, std::uint64_t>> quarantine_;
  bool lost_entries_ = false;  ///< True if metadata was lost and cannot be restored from this node.
  bool suspect_ = false;
  bool list_bad_ = false;
  Duration rewrite_delay_{0};  ///< How long the slot was put off last; zero if its last rewrite did not fail.
  MonotonicTime rewrite_at_;
  Slot* newer_ = nullptr;
  Slot* older_ = nullptr;
  bool linked_ = false;
};

}  // namespace fjord::slotfile
