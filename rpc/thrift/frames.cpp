#include "frames.h"

#include <algorithm>
#include <cstring>

namespace fjord::rpc {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kReadBytesMin = 64u << 10;
constexpr std::size_t kKeptBytesMax = 4u << 20;    ///< A buffer larger than this is freed when it is empty.
constexpr std::size_t kCopiedBytesMax = 8u << 10;  ///< Frames longer than this are moved instead of copied.
constexpr std::size_t kChunkBytesMax = 64u << 10;

}  // namespace

boost::asio::mutable_buffer FrameInput::prepare() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (capacity_ > kKeptBytesMax) {
      buffer_.reset();
      capacity_ = 0;
    }
  }
  if (capacity_ - end_ < kReadBytesMin) {
    const std::size_t size = end_ - begin_;
    if (capacity_ - size >= std::max(kReadBytesMin, capacity_ / 2)) {
      std::memmove(buffer_.get(), buffer_.get() + begin_, size);
    } else {
      const std::size_t capacity = std::max(2 * capacity_, size + 2 * kReadBytesMin);
      std::unique_ptr<char[]> larger(new char[capacity]);  // make_unique would first fill the buffer with zeros
      if (size > 0) std::memcpy(larger.get(), buffer_.get() + begin_, size);
      buffer_ = std::move(larger);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = size;
  }
  return {buffer_.get() + end_, capacity_ - end_};
}

std::optional<std::string_view> FrameInput::next() {
  if (too_long_ || end_ - begin_ < kLengthBytes) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length = (length << 8) | static_cast<std::uint8_t>(buffer_[begin_ + i]);
  }
  if (length > max_frame_bytes_) {
    too_long_ = true;
    return std::nullopt;
  }
  if (end_ - begin_ - kLengthBytes < length) return std::nullopt;
  const std::string_view frame(buffer_.get() + begin_ + kLengthBytes, length);
  begin_ += kLengthBytes + length;
  return frame;
}

void FrameInput::clear() {
  buffer_.reset();
  capacity_ = begin_ = end_ = 0;
}

void FrameOutput::add(std::string frame) {
  char length[kLengthBytes];
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length[i] = static_cast<char>(frame.size() >> (8 * (kLengthBytes - 1 - i)));
  }
  bytes_added_ += kLengthBytes + frame.size();
  if (queued_.empty() || queued_.back().size() >= kChunkBytesMax) queued_.emplace_back();
  queued_.back().append(length, kLengthBytes);
  if (frame.size() <= kCopiedBytesMax) {
    queued_.back() += frame;
  } else {
    queued_.push_back(std::move(frame));
    queued_.emplace_back();
  }
}

const std::vector<boost::asio::const_buffer>& FrameOutput::start_writing() {
  writing_.swap(queued_);
  buffers_.clear();
  for (const std::string& chunk : writing_) {
    if (!chunk.empty()) buffers_.emplace_back(chunk.data(), chunk.size());
  }
  return buffers_;
}

void FrameOutput::written(std::size_t bytes) {
  bytes_written_ += bytes;
  writing_.clear();
}

}  // namespace fjord::rpc
