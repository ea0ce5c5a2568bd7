#pragma once

#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fjord::rpc {

/// Takes a connection's frames (a 4-byte big-endian length, then that many bytes) out of what arrives. Memory grows
/// with what has arrived, never with what a length promises.
class FrameInput {
 public:
  explicit FrameInput(std::size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes) {}

  /// Where the next bytes go; then tell commit() how many came.
  boost::asio::mutable_buffer prepare();
  void commit(std::size_t bytes) { end_ += bytes; }
  /// The next whole frame without its length, valid until prepare(); nothing if it has not arrived or is too long.
  std::optional<std::string_view> next();
  /// The length of the next frame is above the limit. Nothing after it can be read.
  bool too_long() const { return too_long_; }

 private:
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t max_frame_bytes_;
  bool too_long_ = false;
};

/// Frames on their way out. Small ones are copied together, large ones are moved, so that one gathering write takes
/// many.
class FrameOutput {
 public:
  void add(std::string frame);

  bool empty() const { return queued_.empty(); }
  bool writing() const { return !writing_.empty(); }
  /// Of all frames added so far; a frame starts where this was before it.
  std::uint64_t bytes_added() const { return bytes_added_; }
  std::uint64_t bytes_written() const { return bytes_written_; }
  std::uint64_t bytes_waiting() const { return bytes_added_ - bytes_written_; }

  /// Everything queued, to be written now; writing() until written().
  const std::vector<boost::asio::const_buffer>& start_writing();
  void written(std::size_t bytes);

 private:
  std::deque<std::string> queued_;
  std::deque<std::string> writing_;
  std::vector<boost::asio::const_buffer> buffers_;
  std::uint64_t bytes_added_ = 0;
  std::uint64_t bytes_written_ = 0;
};

}  // namespace fjord::rpc
