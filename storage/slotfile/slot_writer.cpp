#include <algorithm>
#include <numeric>
#include <utility>

#include "slot.h"

namespace fjord::slotfile {

namespace {

/// Collects bytes for one region of a new file and writes them in long runs.
class RunWriter {
 public:
  RunWriter(RandomAccessFile& file, std::uint64_t offset, std::string& run) : file_(file), offset_(offset), run_(run) {
    run_.clear();
  }

  Status add(std::string_view bytes) {
    run_.append(bytes);
    return run_.size() < ReadWindow::kBytesMax ? Status::ok() : flush();
  }
  Status flush() {
    if (run_.empty()) return Status::ok();
    FJORD_TRY(file_.write(offset_, run_));
    offset_ += run_.size();
    run_.clear();
    return Status::ok();
  }

 private:
  RandomAccessFile& file_;
  std::uint64_t offset_;
  std::string& run_;
};

/// Copies one part of all entries, in `order`, from `source` to the region at `region_offset`. Gives their new
/// positions by entry.
Result<std::vector<std::uint32_t>> copy_parts(EngineContext& context, Slot& source, std::span<const MetaEntry> entries,
                                              std::span<const std::uint32_t> order, Part part, RandomAccessFile& into,
                                              std::uint64_t region_offset) {
  std::vector<std::uint32_t> positions(entries.size());
  RunWriter writer(into, region_offset, context.copy_run);
  ReadWindow& window = context.copy_window;
  window.forget();
  std::uint64_t position = 0;
  FJORD_TRY_ASSIGN(RandomAccessFile * from, source.file());
  for (const std::uint32_t i : order) {
    positions[i] = static_cast<std::uint32_t>(position);
    const std::uint64_t length = stored_bytes(Slot::part_length(entries[i], part));
    if (length == 0) continue;
    FJORD_TRY_ASSIGN(const std::string_view bytes,
                     window.read(*from, source.part_offset(entries[i], part), length, source.used_end(part)));
    FJORD_TRY(writer.add(bytes));
    // Where the old file was cut off the part stays damaged, and its space is kept.
    if (bytes.size() < length) FJORD_TRY(writer.add(std::string(length - bytes.size(), '\0')));
    position += length;
  }
  FJORD_TRY(writer.flush());
  return positions;
}

/// In the order of their parts in the file, so that they are read from front to back.
std::vector<std::uint32_t> file_order(std::span<const MetaEntry> entries) {
  std::vector<std::uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](std::uint32_t i) { return std::tuple(entries[i].header_position, entries[i].body_position, i); };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return order;
}

Status fill_slotfile(EngineContext& context, const std::string& path, const FileHeader& header, Slot* source,
                     std::vector<MetaEntry>& entries) {
  FJORD_TRY_ASSIGN(auto file, context.env.create_random_access(path));
  FJORD_TRY(file->allocate(header.file_bytes()));
  const std::vector<std::uint32_t> order = file_order(entries);
  if (!entries.empty()) {
    FJORD_TRY_ASSIGN(const std::vector<std::uint32_t> header_positions,
                     copy_parts(context, *source, entries, order, Part::Header, *file, header.header_offset()));
    FJORD_TRY_ASSIGN(const std::vector<std::uint32_t> body_positions,
                     copy_parts(context, *source, entries, order, Part::Body, *file, header.body_offset()));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i].header_position = header_positions[i];
      entries[i].body_position = body_positions[i];
    }
  }
  std::string list(entries.size() * kEntryBytes, '\0');
  for (std::size_t n = 0; n < order.size(); ++n) {
    encode_entry(entries[order[n]], entry_seed(header.bucket, header.slot, n), list.data() + n * kEntryBytes);
  }
  if (!list.empty()) FJORD_TRY(file->write(header.entry_offset(0), list));
  FJORD_TRY(file->write(0, encode_header_area(header)));
  return context.sync() ? file->sync() : Status::ok();
}

}  // namespace

Status write_slotfile(EngineContext& context, const std::string& path, const FileHeader& header, Slot* source,
                      std::vector<MetaEntry>& entries) {
  const std::string temporary = path + std::string(kTemporarySuffix);
  Status status = fill_slotfile(context, temporary, header, source, entries);
  if (status) status = context.env.rename(temporary, path);
  if (!status) static_cast<void>(context.env.remove_file(temporary));  // else removed at the next start
  return status;
}

}  // namespace fjord::slotfile
