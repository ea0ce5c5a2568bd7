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

namespace fjord::cli {

/// One cell of a CSV record.
struct CsvCell {
  std::string text;
  bool quoted = false;
};

/// The cells of one record (without its line end). A quote inside an unquoted cell is a character like any other.
/// Errors: InvalidArgument with the column number for something behind a closing quote.
Result<std::vector<CsvCell>> split_csv(std::string_view record);

/// Cuts a CSV file (RFC 4180; line ends LF or CRLF; a byte order mark is passed over) into records. Empty lines are
/// none.
class CsvReader {
 public:
  using Source = std::function<Result<std::size_t>(std::span<char>)>;
  static constexpr std::size_t kRecordBytesMax = std::size_t{64} << 20;

  explicit CsvReader(Source source) : source_(std::move(source)) {}

  /// The next record, or empty at the end. Errors: InvalidArgument with the line for a quote that is never closed;
  /// TooLarge; those of the source. Each of them ends the file: failed().
  Result<std::optional<Record>> next();
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

}  // namespace fjord::cli
