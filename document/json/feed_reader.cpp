#include "fjord/document/feed_reader.h"

#include <fmt/format.h>

#include "text.h"

namespace fjord {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Returns whether a bracket or a string that begins in `json` does not end there.
bool is_open(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return in_string || depth > 0;
}

}  // namespace

FeedReader::FeedReader(Source source) : FeedReader(std::move(source), Options()) {}

FeedReader::FeedReader(Source source, Options options) : source_(std::move(source)), options_(options) {
  FJORD_CHECK(options_.read_bytes > 0);
}

Status FeedReader::error_here(StatusCode code, std::string_view what) const {
  return error_at(code, line_, offset_, what);
}

Status FeedReader::error_at(StatusCode code, std::uint64_t line, std::uint64_t offset, std::string_view what) {
  return {code, fmt::format("feed, line {}, byte {}: {}", line, offset, what)};
}

Status FeedReader::fatal(Status status) {
  failed_ = true;
  shape_ = Shape::Done;
  return status;
}

bool FeedReader::fill() {
  while (at_ == buffer_.size()) {
    if (ended_) return false;
    // Bytes before keep_ are no longer needed.
    buffer_.erase(0, keep_);
    at_ -= keep_;
    keep_ = 0;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + options_.read_bytes);
    Result<std::size_t> count = source_(std::span<char>(buffer_.data() + before, options_.read_bytes));
    FJORD_CHECK(!count || *count <= options_.read_bytes);
    buffer_.resize(before + (count ? *count : 0));
    if (!count) source_error_ = count.error();
    if (!count || *count == 0) ended_ = true;
  }
  return true;
}

int FeedReader::peek() { return fill() ? static_cast<unsigned char>(buffer_[at_]) : -1; }

void FeedReader::take() {
  if (buffer_[at_] == '\n') ++line_;
  ++at_;
  ++offset_;
}

void FeedReader::skip_space() {
  while (peek() >= 0 && is_space(buffer_[at_])) take();
  keep_ = at_;
}

Status FeedReader::end_of_source() {
  if (source_error_) {
    shape_ = Shape::Done;
    return Status::ok();
  }
  return fatal(source_error_.with_context(fmt::format("feed, line {}, byte {}", line_, offset_)));
}

Result<std::optional<FeedText>> FeedReader::next() {
  if (shape_ == Shape::Undecided) decide_shape();
  if (shape_ == Shape::Lines) return next_line();
  if (shape_ == Shape::Array) return next_element();
  return std::optional<FeedText>();
}

void FeedReader::decide_shape() {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  for (char c : kByteOrderMark) {
    if (peek() != static_cast<unsigned char>(c)) break;
    take();
  }
  skip_space();
  shape_ = peek() == '[' ? Shape::Array : Shape::Lines;
  if (shape_ == Shape::Array) take();
}

Result<std::optional<FeedText>> FeedReader::next_line() {
  skip_space();
  if (peek() < 0) {
    FJORD_TRY(end_of_source());
    return std::optional<FeedText>();
  }
  FeedText text{{}, line_, offset_};
  bool too_long = false;
  while (fill()) {
    const std::size_t newline = buffer_.find('\n', at_);
    const std::size_t stop = newline == std::string::npos ? buffer_.size() : newline;
    offset_ += stop - at_;
    at_ = stop;
    too_long = too_long || at_ - keep_ > options_.operation_bytes_max;
    if (too_long) keep_ = at_;
    if (newline != std::string::npos) break;
  }
  // A line is incomplete if the source failed within it.
  if (!source_error_ && peek() < 0) FJORD_TRY(end_of_source());
  if (too_long) {
    return error_at(StatusCode::TooLarge, text.line, text.offset,
                    fmt::format("a line of more than {} bytes", options_.operation_bytes_max));
  }
  const std::size_t size = at_ - keep_;
  // A whole operation is told by its last byte, at no cost.
  const std::string_view line = trimmed(std::string_view(buffer_).substr(keep_, size));
  const std::uint64_t more = line.back() != '}' && is_open(line) ? skip_continuation() : 0;
  text.json = trimmed(std::string_view(buffer_).substr(keep_, size));
  if (more > 0) {
    return error_at(
        StatusCode::InvalidArgument, text.line, text.offset,
        fmt::format("an operation that goes on for {} more lines; a feed has one a line, or a JSON array of "
                    "them: jq -c . makes such lines",
                    more));
  }
  if (text.json.front() != '{') {
    return error_at(StatusCode::InvalidArgument, text.line, text.offset,
                    fmt::format("expected an operation, which is a JSON object, found {}", quoted(text.json, 40)));
  }
  return std::optional(text);
}

/// Skips the lines that go on with the operation of the line before, which is not closed at its end: all until one that
/// begins with a bracket in its first column, as the next operation does, or with nothing. Keeps the bytes from keep_
/// on. Returns how many lines these are.
std::uint64_t FeedReader::skip_continuation() {
  std::uint64_t lines = 0;
  while (peek() == '\n') {
    const std::size_t end = at_ - keep_;
    take();
    const int first = peek();
    if (first < 0 || first == '{' || first == '\n' || first == '\r') {
      at_ = keep_ + end;  // Back in front of the end of the line.
      --line_;
      --offset_;
      break;
    }
    ++lines;
    while (peek() >= 0 && peek() != '\n') take();
    // One line of an operation is kept for the message, and no more.
    if (at_ - keep_ > options_.operation_bytes_max) break;
  }
  return lines;
}

/// Skips one value: up to the comma or bracket after it.
Result<FeedReader::Extent> FeedReader::scan_value() {
  Extent extent;
  std::string open;  // the brackets that are open, outermost first
  bool in_string = false;
  for (int c = peek(); c >= 0; c = peek()) {
    if (in_string) {
      if (c == '\\') {
        step(extent);
        if (peek() < 0) break;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      open.push_back(c == '{' ? '}' : ']');
    } else if (open.empty() && (c == ',' || c == ']')) {
      return extent;
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != c) {
        return fatal(error_here(StatusCode::InvalidArgument,
                                fmt::format("'{}' closes nothing; the array cannot be read on", static_cast<char>(c))));
      }
      open.pop_back();
      step(extent);
      if (open.empty()) return extent;
      continue;
    }
    step(extent);
  }
  FJORD_TRY(end_of_source());
  return fatal(error_here(StatusCode::InvalidArgument, "the array ends within an element"));
}

/// Takes one byte of an element. Once the element is too long its bytes are no longer kept.
void FeedReader::step(Extent& extent) {
  take();
  if (at_ - keep_ > options_.operation_bytes_max) extent.too_long = true;
  if (extent.too_long) keep_ = at_;
}

Result<std::optional<FeedText>> FeedReader::next_element() {
  skip_space();
  // Between two elements; if `after_element_`, a comma must come first.
  if (after_element_ && peek() == ',') {
    take();
    after_element_ = false;
    comma_taken_ = true;
    skip_space();
  }
  const int c = peek();
  if (c < 0) {
    FJORD_TRY(end_of_source());
    return fatal(error_here(StatusCode::InvalidArgument, "the array is not closed"));
  }
  if (c == ']' && !comma_taken_) return end_of_array();
  comma_taken_ = false;
  if (after_element_) return fatal(error_here(StatusCode::InvalidArgument, "expected ',' or ']' after an element"));
  FeedText text{{}, line_, offset_};
  keep_ = at_;
  after_element_ = true;
  if (c == ']' || c == ',') {
    return error_at(StatusCode::InvalidArgument, text.line, text.offset, "expected an operation after ','");
  }
  FJORD_TRY_ASSIGN(Extent extent, scan_value());
  if (extent.too_long) {
    return error_at(StatusCode::TooLarge, text.line, text.offset,
                    fmt::format("an operation of more than {} bytes", options_.operation_bytes_max));
  }
  text.json = trimmed(std::string_view(buffer_).substr(keep_, at_ - keep_));
  if (text.json.front() != '{') {
    return error_at(StatusCode::InvalidArgument, text.line, text.offset,
                    fmt::format("expected an operation, which is a JSON object, found {}", quoted(text.json, 40)));
  }
  return std::optional(text);
}

Result<std::optional<FeedText>> FeedReader::end_of_array() {
  take();
  skip_space();
  if (peek() >= 0) return fatal(error_here(StatusCode::InvalidArgument, "expected nothing after the array"));
  FJORD_TRY(end_of_source());
  return std::optional<FeedText>();
}

}  // namespace fjord
