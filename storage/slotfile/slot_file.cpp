#include "slot_file.h"

#include <algorithm>
#include <vector>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"

namespace fjord::slotfile {

namespace {

/// How far a read of a header or frame goes on, because metadata entries follow it.
constexpr std::uint64_t kReadAheadBytes = 64 << 10;

}  // namespace

SlotFile::SlotFile(EngineContext& context, std::uint32_t number, std::uint64_t size)
    : context_(context),
      number_(number),
      file_(context.files, context.path(slotfile_name(number))),
      size_(size),
      synced_size_(size) {}

SlotFile::~SlotFile() {
  if (!remove_) return;
  file_.close();
  context_.remove_file(file_.path());
}

Result<std::optional<RunFrame>> SlotFile::frame_at(std::uint64_t offset, std::uint32_t magic) {
  FJORD_TRY_ASSIGN(RandomAccessFile * file, file_.get());
  FJORD_TRY_ASSIGN(
      const std::string_view bytes,
      context_.metadata_window.read(*file, offset, kRunFrameBytes, std::min(offset + kReadAheadBytes, size_)));
  return decode_run_frame(bytes, magic, number_, offset);
}

/// Returns the frame of the run that ends at `end`, read from its trailer; nothing if it is not valid.
Result<std::optional<RunFrame>> SlotFile::frame_before(std::uint64_t end) {
  if (end < kFileHeaderBytes + 2 * kRunFrameBytes) return std::optional<RunFrame>();
  FJORD_TRY_ASSIGN(std::optional<RunFrame> frame, frame_at(end - kRunFrameBytes, kRunTrailerMagic));
  if (frame && frame->bytes() > end - kFileHeaderBytes) frame.reset();
  return frame;
}

Result<SlotFile::Corrupt> SlotFile::walk(const std::function<void(const MetaEntry&, bool)>& visit) {
  Corrupt corrupt;
  context_.metadata_window.forget();
  FJORD_TRY(check_header(corrupt));
  std::uint64_t offset = kFileHeaderBytes;
  while (offset < size_) {
    FJORD_TRY_ASSIGN(const std::optional<RunFrame> frame, frame_at(offset, kRunHeaderMagic));
    if (!frame || offset + frame->bytes() > size_) break;
    FJORD_TRY(walk_run(*frame, offset, visit, corrupt));
    offset += frame->bytes();
  }
  if (offset >= size_) return corrupt;
  // A frame cannot be read. The runs after it are found by reading from the end of the file.
  std::vector<std::pair<std::uint64_t, RunFrame>> behind;
  std::uint64_t end = size_;
  while (end > offset) {
    FJORD_TRY_ASSIGN(const std::optional<RunFrame> frame, frame_before(end));
    if (!frame || frame->bytes() > end - offset) break;
    end -= frame->bytes();
    behind.emplace_back(end, *frame);
  }
  ++(end > offset ? corrupt.frames : corrupt.headers);
  for (auto at = behind.rbegin(); at != behind.rend(); ++at) FJORD_TRY(walk_run(at->second, at->first, visit, corrupt));
  context_.metadata_window.forget();
  return corrupt;
}

/// Verifies the header. Nothing in it is needed to read the file, but a header that changed tells that the file is not
/// what was written, and other programs refuse it.
Status SlotFile::check_header(Corrupt& corrupt) {
  if (size_ == 0) return Status::ok();
  FJORD_TRY_ASSIGN(RandomAccessFile * file, file_.get());
  FJORD_TRY_ASSIGN(const std::string_view bytes,
                   context_.metadata_window.read(*file, 0, kFileHeaderBytes, std::min(kReadAheadBytes, size_)));
  const Result<FileHeader> header = decode_file_header(bytes);
  const bool is_bad = header ? header->number != number_ : header.error().code() == StatusCode::Corruption;
  if (!is_bad) return Status::ok();
  ++corrupt.headers;
  log::error("slotfile", "{}: the header at 0 does not verify; the documents in the file do not depend on it",
             file_.path());
  return Status::ok();
}

/// Verifies the second frames of all runs that can be reached from the beginning of the file.
Status SlotFile::check_trailers(Corrupt& corrupt) {
  context_.metadata_window.forget();
  for (std::uint64_t offset = kFileHeaderBytes; offset < size_;) {
    FJORD_TRY_ASSIGN(const std::optional<RunFrame> frame, frame_at(offset, kRunHeaderMagic));
    if (!frame || offset + frame->bytes() > size_) break;
    offset += frame->bytes();
    FJORD_TRY_ASSIGN(const std::optional<RunFrame> trailer, frame_at(offset - kRunFrameBytes, kRunTrailerMagic));
    if (trailer == frame) continue;
    ++corrupt.headers;
    log::error("slotfile", "{}: the second frame of a run, at {}, does not verify", file_.path(),
               offset - kRunFrameBytes);
  }
  context_.metadata_window.forget();
  return Status::ok();
}

Result<SlotFile::Corrupt> SlotFile::verify_lists() {
  // An open file can still be read after its name is gone, but not after the next start.
  FJORD_TRY_ASSIGN(const bool exists, context_.env.exists(file_.path()));
  if (!exists) return Status(StatusCode::Corruption, file_.path() + " is not there any more");
  const std::uint64_t size = size_on_disk();
  if (size < size_) {
    return Status(StatusCode::Corruption, file_.path() + " was cut off: it has " + std::to_string(size) + " of " +
                                              std::to_string(size_) + " bytes");
  }
  FJORD_TRY_ASSIGN(Corrupt corrupt, walk([](const MetaEntry&, bool) {}));
  FJORD_TRY(check_trailers(corrupt));
  return corrupt;
}

Status SlotFile::walk_run(const RunFrame& frame, std::uint64_t offset,
                          const std::function<void(const MetaEntry&, bool)>& visit, Corrupt& corrupt) {
  FJORD_TRY_ASSIGN(RandomAccessFile * file, file_.get());
  constexpr std::uint64_t kEntriesAtOnce = 16384;
  for (std::uint64_t done = 0; done < frame.entries;) {
    const std::uint64_t count = std::min<std::uint64_t>(frame.entries - done, kEntriesAtOnce);
    const std::uint64_t begin = offset + kRunFrameBytes + done * kEntryBytes;
    FJORD_TRY_ASSIGN(const std::string_view bytes,
                     context_.metadata_window.read(*file, begin, count * kEntryBytes, begin + count * kEntryBytes));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string_view stored = bytes.substr(std::min<std::size_t>(bytes.size(), i * kEntryBytes), kEntryBytes);
      if (stored.size() < kEntryBytes) {  // The file ends within this entry: it was truncated.
        ++corrupt.entries;
        continue;
      }
      const std::uint64_t at = begin + i * kEntryBytes;
      std::optional<MetaEntry> entry = decode_entry(stored.data(), number_, at);
      if (!entry) {
        entry = repair_entry(stored.data(), number_, at);
        if (entry) ++corrupt.repaired;
      }
      if (entry) {
        if (!entry->is_void()) visit(*entry, true);
        continue;
      }
      ++corrupt.entries;
      MetaEntry lost;
      lost.gid = GlobalId::from_bytes(stored.substr(8, sizeof(lost.gid.bytes)));
      visit(lost, false);
    }
    done += count;
  }
  return Status::ok();
}

Status SlotFile::append(BucketId bucket, const RunFrame& frame, std::span<MetaEntry> entries,
                        std::span<const std::string_view> headers, std::span<const std::string_view> bodies) {
  const std::uint64_t offset = std::max(size_, kFileHeaderBytes);
  FJORD_CHECK(offset + frame.bytes() <= kFileBytesMax);
  const std::uint64_t entries_at = offset + kRunFrameBytes;
  const std::uint64_t headers_at = entries_at + frame.entries_bytes();
  const std::uint64_t bodies_at = headers_at + frame.header_bytes;
  const std::uint64_t trailer_at = bodies_at + frame.body_bytes;
  std::string& metadata = context_.scratch;
  metadata.clear();
  if (size_ == 0) metadata = encode_file_header({.number = number_, .bucket = bucket});
  metadata += encode_run_frame(frame, kRunHeaderMagic, number_, offset);
  const std::size_t list = metadata.size();
  metadata.resize(list + frame.entries_bytes());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].header_position += static_cast<std::uint32_t>(headers_at);
    entries[i].body_position += static_cast<std::uint32_t>(bodies_at);
    encode_entry(entries[i], number_, entries_at + i * kEntryBytes, metadata.data() + list + i * kEntryBytes);
  }
  const std::string trailer = encode_run_frame(frame, kRunTrailerMagic, number_, trailer_at);
  std::vector<std::string_view> pieces{metadata};
  pieces.insert(pieces.end(), headers.begin(), headers.end());
  pieces.insert(pieces.end(), bodies.begin(), bodies.end());
  pieces.push_back(trailer);
  if (size_ == 0) FJORD_TRY(file_.create());
  FJORD_TRY_ASSIGN(std::shared_ptr<RandomAccessFile> file, file_.share());
  FJORD_TRY(file->write_gather(size_ == 0 ? 0 : offset, pieces));
  context_.start_writeback(std::move(file));
  size_ = trailer_at + kRunFrameBytes;
  return Status::ok();
}

std::uint64_t SlotFile::size_on_disk() {
  const Result<RandomAccessFile*> file = file_.get();
  if (!file) return size_;
  const Result<std::uint64_t> size = (*file)->size();
  return size ? *size : size_;
}

Result<std::string_view> SlotFile::mapped() {
  FJORD_TRY_ASSIGN(RandomAccessFile * file, file_.get());
  if (!context_.options.map_files) return std::string_view();
  // A file that was truncated must not be read through the mapping beyond its end.
  if (checked_size_ < size_) {
    FJORD_TRY_ASSIGN(checked_size_, file->size());
    if (checked_size_ < size_) return std::string_view();
  }
  const std::string_view all = file->mapped(size_);
  if (all.empty()) checked_size_ = 0;
  return all;
}

Result<std::string_view> SlotFile::read_part(const MetaEntry& entry, Part part, std::string& buffer) {
  const std::uint64_t length = stored_bytes(entry.length(part));
  if (length == 0) return std::string_view();
  FJORD_TRY_ASSIGN(const std::string_view all, mapped());
  if (entry.position(part) + length <= all.size()) {
    const std::string_view stored = all.substr(entry.position(part), length);
    if (verify_part(entry, part, stored)) return stored.substr(0, length - kPartChecksumBytes);
  }
  buffer.resize(length);
  FJORD_TRY_ASSIGN(RandomAccessFile * file, file_.get());
  FJORD_TRY_ASSIGN(const std::size_t n, file->read(entry.position(part), buffer));
  if (n < length || !verify_part(entry, part, buffer)) {
    return Status(StatusCode::Corruption,
                  file_.path() + ": a document part at " + std::to_string(entry.position(part)) + " does not verify");
  }
  return std::string_view(buffer).substr(0, length - kPartChecksumBytes);
}

unsigned SlotFile::read_ahead(const MetaEntry& entry, bool body) {
  const std::uint64_t header_bytes = stored_bytes(entry.header_length());
  const std::uint64_t body_bytes = body ? stored_bytes(entry.body_length()) : 0;
  const bool large = std::max(header_bytes, body_bytes) >= kLargePartBytes;
  ColdReads& cold = context_.cold_reads;
  if (!large && !cold.is_sample()) return 0;
  const Result<std::string_view> all = mapped();
  if (!all || all->empty()) return 0;
  const Result<RandomAccessFile*> file = file_.get();
  if (!file) return 0;  // The next reader of the file reports the error.
  const unsigned weight = large ? 1 : cold.weight();
  const bool header_resident = (*file)->is_resident(entry.header_position, header_bytes);
  const bool body_resident = (*file)->is_resident(entry.body_position, body_bytes);
  cold.note(header_resident && body_resident);
  if (!header_resident) {
    // Headers are small and close together; the medium needs hardly more time for a block of them than for one.
    constexpr std::uint64_t kBlock = 64 << 10;
    const std::uint64_t begin = entry.header_position / kBlock * kBlock;
    const std::uint64_t end = std::max(begin + kBlock, entry.header_position + header_bytes);
    (*file)->will_need(begin, std::min(end, size_) - begin);
  }
  // A single page is read when it is touched; requesting it first would gain nothing.
  constexpr std::uint64_t kPage = 4096;
  const bool one_page = entry.body_position / kPage == (entry.body_position + body_bytes) / kPage;
  if (!body_resident && !(one_page && header_resident)) (*file)->will_need(entry.body_position, body_bytes);
  return header_resident && body_resident ? 0 : weight;
}

bool verify_part(const MetaEntry& entry, Part part, std::string_view stored) {
  const std::size_t length = entry.length(part);
  return stored.size() == length + kPartChecksumBytes &&
         load_fixed<std::uint32_t>(stored.data() + length) ==
             checksum32(stored.substr(0, length), part_seed(entry.gid, entry.timestamp_us, part));
}

}  // namespace fjord::slotfile
