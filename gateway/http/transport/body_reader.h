#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::gateway {

/// Reads the body of an HTTP/1.1 request: of a given length, or in chunks. Refuses all that another reader could
/// understand differently: lines end with CR and LF, a length of a chunk is hexadecimal digits, and trailers are read
/// and dropped.
class BodyReader {
 public:
  static BodyReader of_length(std::uint64_t bytes);
  static BodyReader chunked();

  /// Appends the bytes of the body in `bytes`. Returns how many of `bytes` were used; the rest is not part of the body.
  /// Errors: InvalidArgument; TooLarge if chunks have more than `bytes_max` bytes.
  Result<std::size_t> read(std::string_view bytes, std::string& body, std::size_t bytes_max);
  bool is_done() const { return step_ == Step::Done; }

 private:
  enum class Step {
    Size,
    Extension,
    SizeEnd,
    Data,
    DataCr,
    DataEnd,
    TrailerBegin,  ///< A line of the trailer, or the empty one at its end.
    Trailer,
    TrailerEnd,
    End,
    Done,
  };

  void read_data(std::string_view& rest, std::string& body);
  Status read_framing(char c);
  Status read_size(char c);

  Step step_ = Step::Done;
  bool is_chunked_ = false;
  std::uint64_t left_ = 0;  ///< Bytes of the body, or of the chunk, that have not arrived.
  int digits_ = 0;
  std::size_t body_bytes_ = 0;
  std::size_t framing_bytes_ = 0;
};

}  // namespace fjord::gateway
