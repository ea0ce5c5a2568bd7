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

/// Splits the bytes received on a connection into frames (a 4-byte big-endian length, then as many bytes). Memory grows
/// with the bytes received, never with a claimed length.
class FrameInput {
 public:
  explicit FrameInput(std::size_t max_frame_bytes) : max_frame_bytes_(max_frame_bytes) {}

  /// Returns the buffer for the next bytes. The caller then passes their number to commit().
  boost::asio::mutable_buffer prepare();
  void commit(std::size_t bytes) { end_ += bytes; }
  /// Returns the next whole frame without its length, valid until prepare(). Returns nothing if it has not arrived yet
  /// or is too long.
  std::optional<std::string_view> next();
  /// Returns true if the next frame is longer than the limit. No later frame can be read then.
  bool too_long() const { return too_long_; }
  /// Returns the number of received bytes that next() has not returned.
  std::size_t size() const { return end_ - begin_; }
  /// Drops these bytes, and frees their memory.
  void clear();

 private:
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t max_frame_bytes_;
  bool too_long_ = false;
};

/// The frames that a connection has yet to send. Small frames are copied together and large ones are moved, so that one
/// gathering write sends many.
class FrameOutput {
 public:
  void add(std::string frame);

  bool empty() const { return queued_.empty(); }
  bool writing() const { return !writing_.empty(); }
  /// Returns the size of all frames added so far, which is also the offset of the next frame.
  std::uint64_t bytes_added() const { return bytes_added_; }
  std::uint64_t bytes_written() const { return bytes_written_; }
  std::uint64_t bytes_waiting() const { return bytes_added_ - bytes_written_; }

  /// Returns all queued frames for one write. writing() is true until written() is called.
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
