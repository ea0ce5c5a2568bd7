#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord {

/// The text of one operation within a feed.
struct FeedText {
  std::string_view json;     ///< Lives until the next call of FeedReader::next().
  std::uint64_t line = 0;    ///< Line of its first byte, from 1.
  std::uint64_t offset = 0;  ///< Offset of its first byte in the feed, in bytes.
};

/// Cuts a feed into operations: either one JSON object a line, or one JSON array of objects. The first byte that is not
/// white space decides between them. The objects are not parsed.
///
/// Memory: the longest operation, up to `operation_bytes_max`, plus one read.
class FeedReader {
 public:
  struct Options {
    std::size_t operation_bytes_max = std::size_t{64} << 20;
    std::size_t read_bytes = std::size_t{256} << 10;
  };
  /// Fills the buffer from its start and returns the number of bytes written; 0 at the end of the feed.
  using Source = std::function<Result<std::size_t>(std::span<char>)>;

  explicit FeedReader(Source source);
  FeedReader(Source source, Options options);

  /// The next operation, or empty at the end of the feed. Errors: InvalidArgument or TooLarge, with line and offset,
  /// for an operation that is skipped: the next call returns the operation after it. If the feed cannot be read on (the
  /// source failed, or the brackets of the array do not match), the error is returned once and the feed ends: failed().
  Result<std::optional<FeedText>> next();

  /// True if an error ended the feed before its end.
  bool failed() const { return failed_; }

 private:
  enum class Shape { Undecided, Lines, Array, Done };
  struct Extent {
    bool too_long = false;
  };

  static Status error_at(StatusCode code, std::uint64_t line, std::uint64_t offset, std::string_view what);
  Status error_here(StatusCode code, std::string_view what) const;
  Status fatal(Status status);
  bool fill();
  int peek();
  void take();
  void step(Extent& extent);
  void skip_space();
  void decide_shape();
  Status end_of_source();
  Result<Extent> scan_value();
  Result<std::optional<FeedText>> next_line();
  std::uint64_t skip_continuation();
  Result<std::optional<FeedText>> next_element();
  Result<std::optional<FeedText>> end_of_array();

  Source source_;
  Options options_;
  std::string buffer_;
  std::size_t at_ = 0;        // in buffer_: offset of the next byte
  std::size_t keep_ = 0;      // in buffer_: offset of the first byte that a fill must preserve
  std::uint64_t line_ = 1;    // line of buffer_[at_]
  std::uint64_t offset_ = 0;  // offset of buffer_[at_] in the feed
  Shape shape_ = Shape::Undecided;
  Status source_error_;
  bool ended_ = false;          // the source is at its end
  bool after_element_ = false;  // in an array: a comma has to come before the next element
  bool comma_taken_ = false;    // in an array: an element has to come before the end
  bool failed_ = false;
};

}  // namespace fjord
