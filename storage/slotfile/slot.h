#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "file_cache.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "read_window.h"
#include "slot_index.h"
#include "slotfile_format.h"

namespace fjord::slotfile {

/// Space in a slotfile: metadata entries, and bytes of the blobs with their checksums.
struct Room {
  std::uint64_t entries = 0;
  std::uint64_t header_bytes = 0;
  std::uint64_t body_bytes = 0;

  static Room of(const MetaEntry& entry) {
    return {1, stored_bytes(entry.header_length()), stored_bytes(entry.body_length)};
  }
  static Room of(const spi::Write& write) {
    if (write.remove) return {1, stored_bytes(write.id.size()), 0};
    return {1, stored_bytes(write.header.size()), stored_bytes(write.body.size())};
  }
  Room& operator+=(const Room& other) {
    entries += other.entries;
    header_bytes += other.header_bytes;
    body_bytes += other.body_bytes;
    return *this;
  }
  Room& operator-=(const Room& other) {
    entries -= other.entries;
    header_bytes -= other.header_bytes;
    body_bytes -= other.body_bytes;
    return *this;
  }
  friend Room operator+(Room a, const Room& b) { return a += b; }
  /// Of a slotfile with exactly this room.
  std::uint64_t file_bytes() const { return kHeaderAreaBytes + entries * kEntryBytes + header_bytes + body_bytes; }
};

/// Buffers that are used again for each run of writes.
struct WriteScratch {
  struct Undo {
    std::uint32_t number;
    bool inserted;
    MetaEntry before;
  };
  std::string headers;
  std::string bodies;
  std::string entries;
  std::vector<Undo> undo;
  std::vector<std::uint32_t> pending;
  std::vector<std::uint32_t> group;
  std::vector<std::uint32_t> rest;
};

/// What the parts of one engine share.
struct EngineContext {
  EngineContext(Env& environment, const SlotfileOptions& slotfile_options)
      : env(environment), options(slotfile_options), files(environment, slotfile_options.open_files_max) {}

  Env& env;
  SlotfileOptions options;
  FileCache files;
  SlotfileStats stats;
  WriteScratch scratch;
  /// For copying parts into a new file, used again like the next.
  ReadWindow copy_window;
  std::string copy_run;
  /// Of ReadWindow, for the next iterator: fresh pages from the system cost as much as reading into them.
  std::vector<std::unique_ptr<char[]>> window_buffers;

  bool sync() const { return options.durability == Durability::Sync; }
};

/// One of the 2^k files that hold a bucket's documents, with its index. Format: storage/FORMAT.md.
///
/// Threading: confined to the engine. Lifetime: the context outlives it.
class Slot {
 public:
  /// For a file that is complete under `path` and holds exactly `entries`.
  Slot(EngineContext& context, std::string path, const FileHeader& header, std::span<const MetaEntry> entries);

  /// Opens an existing file, checks its header against `expected` (capacities aside) and reads its metadata list.
  /// Bad entries are dropped and counted in the context's statistics. Errors: NotFound, Corruption, IoError.
  static Result<std::unique_ptr<Slot>> load(EngineContext& context, std::string path, const FileHeader& expected);

  const FileHeader& header() const { return header_; }
  const std::string& path() const { return file_.path(); }
  const SlotIndex& index() const { return index_; }
  /// Rises when entries that are there change their positions.
  std::uint64_t layout_version() const { return layout_version_; }
  /// True after a sync that failed: the file must not be used any more.
  bool sync_failed() const { return sync_failed_; }

  /// What the newest versions take.
  const Room& live() const { return live_; }
  bool fits(const Room& need) const;
  /// The room for those of the writes that are newer than what is stored.
  Room room_for(std::span<const spi::Write> writes, std::span<const std::uint32_t> group) const;

  /// Appends the writes numbered by `group` in order, sets their results and follows in `info`. They fit. On an error
  /// nothing has changed in memory and all of the group have it as their status.
  Status append(std::span<const spi::Write> writes, std::span<const std::uint32_t> group,
                std::span<spi::WriteResult> results, BucketInfo& info);

  /// Replaces the file by one with `capacity`, without what is superseded. On an error the old file stays in use.
  Status rewrite(const Room& capacity);

  /// Reads and verifies one part into `into` (its previous content is lost). Errors: Corruption, IoError.
  Status read_part(const MetaEntry& entry, Part part, std::string& into);
  /// Verifies `stored`, which is a part with its checksum. Errors: Corruption, counted.
  Status verify(const MetaEntry& entry, Part part, std::string_view stored) const;

  Result<RandomAccessFile*> file() { return file_.get(); }
  /// In the file.
  std::uint64_t part_offset(const MetaEntry& entry, Part part) const {
    return part == Part::Header ? header_.header_offset() + entry.header_position
                                : header_.body_offset() + entry.body_position;
  }
  static std::uint32_t part_length(const MetaEntry& entry, Part part) {
    return part == Part::Header ? entry.header_length() : entry.body_length;
  }
  /// The end of what is used of a blob, in the file.
  std::uint64_t used_end(Part part) const {
    return part == Part::Header ? header_.header_offset() + used_.header_bytes
                                : header_.body_offset() + used_.body_bytes;
  }

 private:
  void adopt(std::span<const MetaEntry> entries);
  void stage(const spi::Write& write, spi::WriteResult& result, BucketInfo& info);
  void stage_part(std::string& run, std::string_view bytes, std::uint64_t seed);
  Status write_runs(const Room& before);
  Status sync(RandomAccessFile& file);
  void undo();

  EngineContext& context_;
  CachedFile file_;
  FileHeader header_;
  SlotIndex index_;
  Room used_;  ///< Where the next ones are appended.
  Room live_;
  std::uint64_t layout_version_ = 0;
  bool sync_failed_ = false;
  bool must_rewrite_ = false;  ///< The file may hold metadata of a write that failed; see write_runs().
};

/// Writes a new slotfile with `header` that holds `entries` (positions in the file of `source`, changed to those in the
/// new file), under a temporary name and then under `path`. Parts are copied as they are: one that does not verify does
/// not verify in the copy either. Errors: NoSpace, IoError; nothing is left under `path` then that was not there
/// before.
Status write_slotfile(EngineContext& context, const std::string& path, const FileHeader& header, Slot* source,
                      std::vector<MetaEntry>& entries);

}  // namespace fjord::slotfile
