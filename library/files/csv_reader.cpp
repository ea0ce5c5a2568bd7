#include "csv_reader.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord {

Result<std::vector<CsvCell>> split_csv(std::string_view record) {
  std::vector<CsvCell> cells;
  std::size_t at = 0;
  while (true) {
    CsvCell cell;
    if (at < record.size() && record[at] == '"') {
      cell.quoted = true;
      for (++at; at < record.size(); ++at) {
        if (record[at] == '"') {
          if (at + 1 >= record.size() || record[at + 1] != '"') break;
          ++at;
        }
        cell.text += record[at];
      }
      ++at;  // skips the closing quote, which exists because CsvReader has checked it
      if (at < record.size() && record[at] != ',') {
        return Status(StatusCode::InvalidArgument,
                      fmt::format("column {}: \"{}\" stands behind the closing quote", cells.size() + 1, record[at]));
      }
    } else {
      const std::size_t end = std::min(record.find(',', at), record.size());
      cell.text = record.substr(at, end - at);
      at = end;
    }
    cells.push_back(std::move(cell));
    if (at >= record.size()) return cells;
    ++at;  // skips the comma
  }
}

Status CsvReader::fail(Status status) {
  failed_ = true;
  ended_ = true;
  buffer_.clear();
  at_ = 0;
  return status;
}

Status CsvReader::fill() {
  constexpr std::size_t kReadBytes = 256 * 1024;
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t old_size = buffer_.size();
  buffer_.resize(old_size + kReadBytes);
  const Result<std::size_t> got = source_(std::span<char>(buffer_).subspan(old_size));
  buffer_.resize(old_size + (got ? *got : 0));
  if (!got) return got.error();
  if (*got == 0) ended_ = true;
  return Status::ok();
}

Result<std::optional<FileRecord>> CsvReader::next() {
  if (!begun_) {
    begun_ = true;
    while (buffer_.size() < 3 && !ended_) {
      if (Status status = fill(); !status) return fail(status);
    }
    if (buffer_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }
  bool in_quotes = false;
  bool cell_begins = true;
  std::uint64_t lines = 0;
  for (std::size_t i = at_;; ++i) {
    if (i == buffer_.size() && !ended_) {
      const std::size_t scanned = i - at_;
      if (scanned > kRecordBytesMax) {
        return fail(
            {StatusCode::TooLarge, fmt::format("line {}: a record of more than {} bytes", line_, kRecordBytesMax)});
      }
      if (Status status = fill(); !status) return fail(status);
      i = scanned;
    }
    if (i == buffer_.size() && ended_) {
      if (in_quotes) {
        return fail(
            {StatusCode::InvalidArgument, fmt::format("line {}: a quote of this record is never closed", line_)});
      }
      if (i == at_) return std::optional<FileRecord>();
      const FileRecord record{std::string_view(buffer_).substr(at_, i - at_), line_};
      at_ = i;
      return std::optional<FileRecord>(record);
    }
    const char c = buffer_[i];
    if (c == '\n') ++lines;
    if (in_quotes) {
      // In a doubled quote, the first one ends the quoted part and the second one begins it again.
      if (c == '"') in_quotes = false, cell_begins = true;
      continue;
    }
    if (c == '"' && cell_begins) {
      in_quotes = true;
      continue;
    }
    cell_begins = c == ',';
    if (c != '\n') continue;
    std::string_view text = std::string_view(buffer_).substr(at_, i - at_);
    if (text.ends_with('\r')) text.remove_suffix(1);
    const FileRecord record{text, line_};
    at_ = i + 1;
    line_ += lines;
    lines = 0;
    cell_begins = true;
    if (!text.empty()) return std::optional<FileRecord>(record);
  }
}

}  // namespace fjord
