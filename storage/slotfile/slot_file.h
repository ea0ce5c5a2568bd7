#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine_context.h"
#include "file_format.h"

namespace fjord::slotfile {

/// One slotfile: runs that are appended and never changed. Which of its entries count is the slots' business, several
/// of which may share it after a split.
///
/// Threading: confined to its engine. Lifetime: the context outlives it.
class SlotFile {
 public:
  /// `size`: how much of an existing file counts; 0 for one that is yet to be made.
  SlotFile(EngineContext& context, std::uint32_t number, std::uint64_t size);
  /// Removes the file if remove_when_unused() was called.
  ~SlotFile();
  SlotFile(const SlotFile&) = delete;
  SlotFile& operator=(const SlotFile&) = delete;

  std::uint32_t number() const { return number_; }
  std::uint64_t size() const { return size_; }
  /// How much of it is known to be on the device.
  std::uint64_t synced_size() const { return synced_size_; }
  void set_synced_size(std::uint64_t size) { synced_size_ = std::max(synced_size_, size); }
  bool is_dirty() const { return synced_size_ < size_; }
  CachedFile& file() { return file_; }
  void remove_when_unused() { remove_ = true; }

  /// Slots that refer to it.
  unsigned users = 0;

  struct Corrupt {
    std::uint64_t frames = 0;    ///< Runs of which nothing can be read.
    std::uint64_t entries = 0;   ///< Metadata entries that do not verify.
    std::uint64_t repaired = 0;  ///< Had one flipped bit, and were given to the visitor.
    bool any() const { return frames + entries != 0; }
  };
  /// Gives each valid entry, and the id of each invalid one as far as it can be read, to `visit(entry, valid)`, in the
  /// order in which they were written. Errors: NotFound (the file is gone), IoError.
  Result<Corrupt> walk(const std::function<void(const MetaEntry& entry, bool valid)>& visit);

  /// Appends a run; `frame` counts what the pieces of headers and bodies have between them. `entries` have positions
  /// relative to these; they are changed to those in the file. The file is made if it is new, for `bucket`. On an error
  /// it is as before.
  Status append(BucketId bucket, const RunFrame& frame, std::span<MetaEntry> entries,
                std::span<const std::string_view> headers, std::span<const std::string_view> bodies);

  /// For a file that is written piece by piece: sets the size once everything up to it is there.
  void set_size(std::uint64_t size) { size_ = size; }

  /// Less than size() if somebody cut it off; size() where that cannot be told.
  std::uint64_t size_on_disk();
  /// All of it in memory, or nothing; see RandomAccessFile::mapped(). Good as long as the handle is open.
  Result<std::string_view> mapped();
  /// Reads one part as it is stored, verifies it and takes the checksum off. The view is of the mapped file or of
  /// `buffer`. Errors: Corruption, IoError.
  Result<std::string_view> read_part(const MetaEntry& entry, Part part, std::string& buffer);
  /// Has both parts read at the same time if they are not in memory, or the header alone. Returns for how many reads
  /// that wait for the medium this one speaks; 0 if it does not wait, or was not looked at.
  unsigned read_ahead(const MetaEntry& entry, bool body);

 private:
  Status walk_run(const RunFrame& frame, std::uint64_t offset, const std::function<void(const MetaEntry&, bool)>& visit,
                  Corrupt& corrupt);
  Result<std::optional<RunFrame>> frame_at(std::uint64_t offset, std::uint32_t magic);
  Result<std::optional<RunFrame>> frame_before(std::uint64_t end);

  EngineContext& context_;
  const std::uint32_t number_;
  CachedFile file_;
  std::uint64_t size_;
  std::uint64_t synced_size_;
  std::uint64_t checked_size_ = 0;  ///< The file on disk has at least that.
  bool remove_ = false;
};

/// True if `stored`, a part with its checksum, is what `entry` says.
bool verify_part(const MetaEntry& entry, Part part, std::string_view stored);

}  // namespace fjord::slotfile
