#include "export_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "fjord/common/check.h"
#include "fjord/library/detail/small_file.h"

namespace fjord {
namespace {

constexpr std::string_view kFilePrefix = "fjord-export-1 ";
/// Largest size of one bucket's lines in memory.
constexpr std::size_t kSpoolBytesMax = std::size_t{8} << 20;

/// Returns `plain` as a gzip member.
Result<std::string> pack(const std::string& plain) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Status(StatusCode::IoError, "zlib cannot be set up");
  }
  std::string packed(deflateBound(&stream, static_cast<uLong>(plain.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return Status(StatusCode::IoError, "zlib cannot pack the documents");
  return packed;
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

/// Splits "<bytes> <documents>\n<rest>".
bool parse_numbers(std::string_view text, std::uint64_t& bytes, std::uint64_t& documents, std::string_view& rest) {
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, bytes);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') return false;
  const auto second = std::from_chars(first.ptr + 1, end, documents);
  if (second.ec != std::errc() || second.ptr == end || *second.ptr != '\n') return false;
  rest = std::string_view(second.ptr + 1, static_cast<std::size_t>(end - second.ptr - 1));
  return true;
}

}  // namespace

ExportFile::ExportFile(std::string path)
    : path_(std::move(path)), progress_path_(path_ + ".progress"), packed_(path_.ends_with(".gz")) {}

ExportFile::~ExportFile() = default;

Status ExportFile::failed(const char* what) const {
  return {StatusCode::IoError, fmt::format("{} cannot be {}: {}", path_, what, std::strerror(errno))};
}

Result<std::unique_ptr<ExportFile>> ExportFile::open(const std::string& path, Mode mode) {
  std::unique_ptr<ExportFile> file(new ExportFile(path));
  FJORD_TRY(file->load(mode));
  file->file_.reset(std::fopen(path.c_str(), file->bytes_ == 0 ? "wb" : "r+b"));
  if (file->file_ == nullptr) return file->failed("written");
  if (::ftruncate(::fileno(file->file_.get()), static_cast<off_t>(file->bytes_)) != 0 ||
      std::fseek(file->file_.get(), 0, SEEK_END) != 0) {
    return file->failed("cut to what is complete");
  }
  return file;
}

Status ExportFile::load(Mode mode) {
  const bool begun = exists(progress_path_);
  if (mode == Mode::New && (begun || exists(path_))) {
    return {StatusCode::AlreadyExists,
            begun ? fmt::format("{} holds an unfinished export: --resume continues it, --overwrite replaces it", path_)
                  : fmt::format("{} exists; --overwrite replaces it", path_)};
  }
  if (mode == Mode::Overwrite && begun && ::unlink(progress_path_.c_str()) != 0) return failed("replaced");
  if (mode != Mode::Resume) return Status::ok();
  if (!begun) {
    struct stat info {};
    const bool is_there = ::stat(path_.c_str(), &info) == 0;
    if (!is_there || info.st_size == 0) return Status::ok();  // The export was killed before it wrote anything.
    return {StatusCode::AlreadyExists,
            fmt::format("{} is complete, or not an export: there is no {}", path_, progress_path_)};
  }
  FJORD_TRY_ASSIGN(const std::string text, read_small_file(progress_path_));
  const std::string damaged = progress_path_ + " (restore this file, or begin again with --overwrite)";
  const Status wrong(StatusCode::InvalidArgument, damaged + ": not a progress file of an export");
  std::string_view rest;
  if (!text.starts_with(kFilePrefix) ||
      !parse_numbers(std::string_view(text).substr(kFilePrefix.size()), bytes_, documents_, rest)) {
    return wrong;
  }
  std::string unsealed = text.substr(0, text.size() - rest.size());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    auto cursor = visitors::SessionCursor::parse(rest.substr(0, end));
    if (!cursor) return cursor.error().with_context(damaged);
    if (!resumed_.empty()) unsealed += std::string(rest.substr(0, end)) + '\n';
    resumed_.push_back(std::move(*cursor));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (resumed_.empty()) return wrong;
  if (Status whole = resumed_.front().open_seal(unsealed); !whole) return whole.with_context(damaged);
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0 || static_cast<std::uint64_t>(info.st_size) < bytes_) {
    return {StatusCode::InvalidArgument, fmt::format("{} is shorter than {} says", path_, progress_path_)};
  }
  return Status::ok();
}

Status ExportFile::begin(const std::string& header) { return bytes_ == 0 ? append(header) : Status::ok(); }

Status ExportFile::append(const std::string& lines) {
  if (lines.empty()) return Status::ok();
  std::string packed;
  if (packed_) {
    FJORD_TRY_ASSIGN(packed, pack(lines));
  }
  const std::string& out = packed_ ? packed : lines;
  if (std::fwrite(out.data(), 1, out.size(), file_.get()) != out.size()) return failed("written");
  bytes_ += out.size();
  return Status::ok();
}

Status ExportFile::add(const VisitedBucket& bucket, const std::string& lines, std::uint64_t documents) {
  Spool& spool = spools_[bucket];
  spool.lines += lines;
  spool.documents += documents;
  if (spool.lines.size() <= kSpoolBytesMax) return Status::ok();
  if (spool.overflow == nullptr) {
    const std::string name = fmt::format("{}.bucket-{:016x}-{}", path_, bucket.bucket.raw(), bucket.slice);
    spool.overflow.reset(std::fopen(name.c_str(), "w+b"));
    if (spool.overflow == nullptr || ::unlink(name.c_str()) != 0) return failed("kept waiting beside it");
  }
  const bool ok = std::fwrite(spool.lines.data(), 1, spool.lines.size(), spool.overflow.get()) == spool.lines.size();
  spool.lines.clear();
  return ok ? Status::ok() : failed("kept waiting beside it");
}

Status ExportFile::commit(const VisitedBucket& bucket) {
  const auto at = spools_.find(bucket);
  if (at == spools_.end()) return Status::ok();
  Spool spool = std::move(at->second);
  spools_.erase(at);
  if (spool.overflow != nullptr) {
    std::rewind(spool.overflow.get());
    std::string piece(kSpoolBytesMax, '\0');
    for (std::size_t got; (got = std::fread(piece.data(), 1, kSpoolBytesMax, spool.overflow.get())) > 0;) {
      FJORD_TRY(append(piece.substr(0, got)));
    }
    if (std::ferror(spool.overflow.get()) != 0) return failed("read where it waited");
  }
  FJORD_TRY(append(spool.lines));
  documents_ += spool.documents;
  return Status::ok();
}

Status ExportFile::save(const std::vector<visitors::SessionCursor>& cursors) {
  if (std::fflush(file_.get()) != 0 || ::fdatasync(::fileno(file_.get())) != 0) return failed("written");
  FJORD_CHECK(!cursors.empty());
  const std::string head = fmt::format("{}{} {}\n", kFilePrefix, bytes_, documents_);
  std::string others;
  for (std::size_t i = 1; i < cursors.size(); ++i) others += cursors[i].to_text() + '\n';
  visitors::SessionCursor first = cursors.front();
  first.seal(head + others);
  return replace_file(progress_path_, fmt::format("{}{}\n{}", head, first.to_text(), others));
}

Status ExportFile::finish() {
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0) return failed("written");
  if (exists(progress_path_) && ::unlink(progress_path_.c_str()) != 0) return failed("finished");
  return Status::ok();
}

}  // namespace fjord
