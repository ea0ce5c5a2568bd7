#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "record_source.h"

namespace fjord {

/// One cell of a CSV record.
struct CsvCell {
  std::string text;
  bool quoted = false;
};

/// Splits one record, without its line end, into cells. A quote inside an unquoted cell is an ordinary character.
/// Errors: InvalidArgument with the column number if text follows a closing quote.
Result<std::vector<CsvCell>> split_csv(std::string_view record);

/// Cuts a CSV file (RFC 4180) into records. Line ends are LF or CRLF; a byte order mark and empty lines are skipped.
class CsvReader {
 public:
  using Source = std::function<Result<std::size_t>(std::span<char>)>;
  static constexpr std::size_t kRecordBytesMax = std::size_t{64} << 20;

  explicit CsvReader(Source source) : source_(std::move(source)) {}

  /// Returns the next record, or none at the end. Errors: InvalidArgument with the line if a quote is never closed;
  /// TooLarge; those of the source. Every error ends the file: failed() is true then.
  Result<std::optional<FileRecord>> next();
  bool failed() const { return failed_; }

 private:
  Status fill();
  Status fail(Status status);

  Source source_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 1;
  bool begun_ = false;
  bool ended_ = false;
  bool failed_ = false;
};

}  // namespace fjord
