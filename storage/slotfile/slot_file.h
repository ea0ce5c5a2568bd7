#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine_context.h"
#include "file_format.h"

namespace fjord::slotfile {

/// One slotfile: runs that are appended and never changed. The slots decide which of its entries count; after a split
/// several slots may share the file.
///
/// Threading: confined to its engine. Lifetime: the context outlives it.
class SlotFile {
 public:
  /// `size` is the number of valid bytes of an existing file; 0 for a new one.
  SlotFile(EngineContext& context, std::uint32_t number, std::uint64_t size);
  /// Removes the file if remove_when_unused() was called.
  ~SlotFile();
  SlotFile(const SlotFile&) = delete;
  SlotFile& operator=(const SlotFile&) = delete;

  std::uint32_t number() const { return number_; }
  std::uint64_t size() const { return size_; }
  /// Returns the number of bytes that are known to be on the device.
  std::uint64_t synced_size() const { return synced_size_; }
  void set_synced_size(std::uint64_t size) { synced_size_ = std::max(synced_size_, size); }
  bool is_dirty() const { return synced_size_ < size_; }
  CachedFile& file() { return file_; }
  void remove_when_unused() { remove_ = true; }

  /// Number of slots that refer to the file.
  unsigned users = 0;

  struct Corrupt {
    std::uint64_t frames = 0;   ///< Number of runs of which nothing can be read.
    std::uint64_t entries = 0;  ///< Number of metadata entries that fail verification.
    /// Number of entries in which one flipped bit was corrected; they were visited as valid.
    std::uint64_t repaired = 0;
    /// Number of file headers, and of second frames of readable runs, that do not verify. No entry is lost with them.
    std::uint64_t headers = 0;
    bool loses_entries() const { return frames + entries != 0; }
    bool any() const { return frames + entries + repaired + headers != 0; }
  };
  /// Calls `visit(entry, valid)` for each entry in the order in which they were written: with the whole entry if it is
  /// valid; otherwise with its gid only, as far as that can be read. Errors: NotFound (the file is missing), IoError.
  Result<Corrupt> walk(const std::function<void(const MetaEntry& entry, bool valid)>& visit);

  /// Reads and verifies everything in the file but the parts: the header, both frames of each run, and all metadata
  /// entries. Errors: Corruption (the file is missing or cut off), IoError.
  Result<Corrupt> verify_lists();

  /// Appends a run; `frame` holds the total sizes of `headers` and `bodies`. The positions in `entries` are first
  /// relative to `headers` and `bodies`; the call changes them to positions in the file. A new file is created, for
  /// `bucket`. After an error the file is unchanged.
  Status append(BucketId bucket, const RunFrame& frame, std::span<MetaEntry> entries,
                std::span<const std::string_view> headers, std::span<const std::string_view> bodies);

  /// Sets the size of a file that is written in pieces, when all bytes before this size are written.
  void set_size(std::uint64_t size) { size_ = size; }

  /// Returns the size on disk: less than size() if the file was truncated; size() if the size cannot be read.
  std::uint64_t size_on_disk();
  /// Returns the whole file as mapped memory; empty if that is not possible (RandomAccessFile::mapped()). Valid as long
  /// as the file is open.
  Result<std::string_view> mapped();
  /// Reads and verifies one part as stored, and returns it without its checksum. The view refers to the mapped file or
  /// to `buffer`. Errors: Corruption, IoError.
  Result<std::string_view> read_part(const MetaEntry& entry, Part part, std::string& buffer);
  /// Starts reading the parts that are not in memory: the header, and with `body` both at the same time. Returns the
  /// number of reads from the medium for which this one stands; 0 if it need not wait or was not checked.
  unsigned read_ahead(const MetaEntry& entry, bool body);

 private:
  Status check_header(Corrupt& corrupt);
  Status check_trailers(Corrupt& corrupt);
  Status walk_run(const RunFrame& frame, std::uint64_t offset, const std::function<void(const MetaEntry&, bool)>& visit,
                  Corrupt& corrupt);
  Result<std::optional<RunFrame>> frame_at(std::uint64_t offset, std::uint32_t magic);
  Result<std::optional<RunFrame>> frame_before(std::uint64_t end);

  EngineContext& context_;
  const std::uint32_t number_;
  CachedFile file_;
  std::uint64_t size_;
  std::uint64_t synced_size_;
  std::uint64_t checked_size_ = 0;  ///< The file was checked to have at least this size on disk.
  bool remove_ = false;
};

/// Returns true if `stored`, a part with its checksum, is intact and belongs to `entry`.
bool verify_part(const MetaEntry& entry, Part part, std::string_view stored);

}  // namespace fjord::slotfile
