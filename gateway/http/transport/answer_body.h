#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

namespace fjord::gateway {

/// Compresses a body piece by piece, so that a reader has each piece at once.
///
/// Each one needs some 260 KB. There are at most a few hundred: open() returns nullptr above that.
class GzipPieces {
 public:
  static std::unique_ptr<GzipPieces> open();
  ~GzipPieces();
  GzipPieces(const GzipPieces&) = delete;
  GzipPieces& operator=(const GzipPieces&) = delete;

  /// Appends the compressed piece, and the end of the stream if `is_last`.
  void add(std::string_view piece, bool is_last, std::string& to);

 private:
  struct Stream;
  explicit GzipPieces(std::unique_ptr<Stream> stream);
  std::unique_ptr<Stream> stream_;
};

/// The bytes of an answer that are not sent yet. Threading: one thread at a time.
class AnswerBody {
 public:
  void add(std::string piece);
  void end() { is_ended_ = true; }
  /// Compresses what take() returns, if `gzip` is not null. Must be called before the first take().
  void compress_with(std::unique_ptr<GzipPieces> gzip) { gzip_ = std::move(gzip); }
  /// Drops all pieces that are not sent.
  void clear();

  /// Appends at most `bytes_max` bytes.
  void take(std::string& to, std::size_t bytes_max);

  /// Returns the number of bytes that wait, before their compression.
  std::size_t waiting_bytes() const { return pieces_bytes_ + ready_.size() - ready_at_; }
  /// Returns true if take() would append nothing.
  bool is_empty() const { return pieces_.empty() && ready_at_ == ready_.size() && !has_trailer(); }
  /// Returns true if all was taken and no more will come.
  bool is_over() const { return is_ended_ && is_empty(); }

 private:
  bool has_trailer() const { return gzip_ != nullptr && is_ended_; }
  void make_ready();

  std::deque<std::string> pieces_;
  std::size_t pieces_at_ = 0;     ///< Bytes of the first piece that are compressed already.
  std::size_t pieces_bytes_ = 0;  ///< Bytes of the pieces that are not in ready_.
  std::string ready_;
  std::size_t ready_at_ = 0;
  std::unique_ptr<GzipPieces> gzip_;
  bool is_ended_ = false;
};

/// Returns the text compressed with gzip.
std::string gzip_text(std::string_view text);

/// Returns true if a client that sends this header Accept-Encoding takes gzip.
bool accepts_gzip(std::string_view accept_encoding);

}  // namespace fjord::gateway
