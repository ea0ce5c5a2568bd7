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
  std::uint64_t line = 0;    ///< Where it begins, from 1.
  std::uint64_t offset = 0;  ///< Where it begins, in bytes from the start of the feed.
};

/// Cuts a feed into operations: either one JSON object a line, or one JSON array of objects. What the first byte that
/// is not white space is decides which. Does not parse the objects.
///
/// Memory: the longest operation, up to `operation_bytes_max`, and one read.
class FeedReader {
 public:
  struct Options {
    std::size_t operation_bytes_max = std::size_t{64} << 20;
    std::size_t read_bytes = std::size_t{256} << 10;
  };
  /// Fills the buffer from its beginning and returns how many bytes it wrote; 0 at the end of the feed.
  using Source = std::function<Result<std::size_t>(std::span<char>)>;

  explicit FeedReader(Source source);
  FeedReader(Source source, Options options);

  /// The next operation, or empty at the end of the feed.
  /// Errors: InvalidArgument or TooLarge, with line and offset, for an operation that is passed over: call next() again
  /// for the one after it. If the feed cannot be read on (the source failed, an array whose brackets do not match) the
  /// error is said once and the feed ends: failed().
  Result<std::optional<FeedText>> next();

  /// True if the feed ended before its end.
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
  Result<std::optional<FeedText>> next_element();
  Result<std::optional<FeedText>> end_of_array();

  Source source_;
  Options options_;
  std::string buffer_;
  std::size_t at_ = 0;        // in buffer_: the next byte
  std::size_t keep_ = 0;      // in buffer_: the first byte that must survive a fill
  std::uint64_t line_ = 1;    // of buffer_[at_]
  std::uint64_t offset_ = 0;  // of buffer_[at_]
  Shape shape_ = Shape::Undecided;
  Status source_error_;
  bool ended_ = false;          // the source has nothing more
  bool after_element_ = false;  // in an array: a comma has to come before the next element
  bool comma_taken_ = false;    // in an array: an element has to come before the end
  bool failed_ = false;
};

}  // namespace fjord
