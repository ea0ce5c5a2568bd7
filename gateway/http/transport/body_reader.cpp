#include "http/transport/body_reader.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord::gateway {
namespace {

constexpr int kSizeDigitsMax = 15;
/// Lengths, extensions and trailers of chunks may have this many bytes more than the body, as no limit of bodies counts
/// them.
constexpr std::size_t kFramingBytesMax = 64 << 10;
constexpr std::size_t kFramingFactor = 8;

Status bad_chunk(std::string_view reason) {
  return {StatusCode::InvalidArgument, fmt::format("a chunk of the body: {}", reason)};
}

bool is_line_character(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f'); }

}  // namespace

BodyReader BodyReader::of_length(std::uint64_t bytes) {
  BodyReader reader;
  reader.left_ = bytes;
  if (bytes > 0) reader.step_ = Step::Data;
  return reader;
}

BodyReader BodyReader::chunked() {
  BodyReader reader;
  reader.is_chunked_ = true;
  reader.step_ = Step::Size;
  return reader;
}

Result<std::size_t> BodyReader::read(std::string_view bytes, std::string& body, std::size_t bytes_max) {
  std::string_view rest = bytes;
  while (!rest.empty() && step_ != Step::Done) {
    if (step_ == Step::Data) {
      read_data(rest, body);
      continue;
    }
    if (++framing_bytes_ > kFramingBytesMax + kFramingFactor * body_bytes_) {
      return bad_chunk("lengths, extensions and trailers are too long for so small a body");
    }
    FJORD_TRY(read_framing(rest.front()));
    rest.remove_prefix(1);
    if (step_ == Step::Data && left_ > bytes_max - std::min(bytes_max, body_bytes_)) {
      return Status(StatusCode::TooLarge, fmt::format("the body has more than {} bytes", bytes_max));
    }
  }
  return bytes.size() - rest.size();
}

void BodyReader::read_data(std::string_view& rest, std::string& body) {
  const std::size_t bytes = std::min<std::uint64_t>(left_, rest.size());
  body.append(rest.substr(0, bytes));
  rest.remove_prefix(bytes);
  body_bytes_ += bytes;
  left_ -= bytes;
  if (left_ == 0) step_ = is_chunked_ ? Step::DataCr : Step::Done;
}

Status BodyReader::read_size(char c) {
  const int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
  if (digit >= 0) {
    if (++digits_ > kSizeDigitsMax) return bad_chunk("its length has too many digits");
    left_ = left_ * 16 + static_cast<unsigned>(digit);
    return Status::ok();
  }
  if (digits_ == 0) return bad_chunk("expected its length in hexadecimal digits");
  if (c != '\r' && c != ';') return bad_chunk("expected ; or the end of the line behind its length");
  step_ = c == ';' ? Step::Extension : Step::SizeEnd;
  return Status::ok();
}

Status BodyReader::read_framing(char c) {
  const auto expect = [&](char wanted, Step next) {
    if (c != wanted) return bad_chunk("expected the end of a line");
    step_ = next;
    return Status::ok();
  };
  switch (step_) {
    case Step::Size:
      return read_size(c);
    case Step::Extension:
      if (is_line_character(c)) return Status::ok();
      return expect('\r', Step::SizeEnd);
    case Step::SizeEnd:
      digits_ = 0;
      return expect('\n', left_ == 0 ? Step::TrailerBegin : Step::Data);
    case Step::DataCr:
      return expect('\r', Step::DataEnd);
    case Step::DataEnd:
      return expect('\n', Step::Size);
    case Step::TrailerBegin:
      if (c == '\r') return expect('\r', Step::End);
      if (c == ' ' || c == '\t' || !is_line_character(c)) return bad_chunk("a folded or broken line in the trailer");
      step_ = Step::Trailer;
      return Status::ok();
    case Step::Trailer:
      if (is_line_character(c)) return Status::ok();
      return expect('\r', Step::TrailerEnd);
    case Step::TrailerEnd:
      return expect('\n', Step::TrailerBegin);
    default:
      return expect('\n', Step::Done);
  }
}

}  // namespace fjord::gateway
