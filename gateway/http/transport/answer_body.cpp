#include "http/transport/answer_body.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <zlib.h>

#include "fjord/common/check.h"
#include "http/message.h"

namespace fjord::gateway {
namespace {

constexpr int kGzipWindow = MAX_WBITS + 16;
constexpr int kMemoryLevel = 8;
constexpr int kGzipStreamsMax = 256;
constexpr std::size_t kCompressedAtOnce = 64 << 10;

std::atomic<int> gzip_streams{0};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_gzip_name(std::string_view name) {
  return is_same_word(name, "gzip") || is_same_word(name, "x-gzip") || name == "*";
}

/// Returns true for parameters such as "q=0" and "q=0.000", which forbid a coding.
bool is_weight_zero(std::string_view parameters) {
  const std::size_t equals = parameters.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view weight = trimmed(parameters.substr(equals + 1));
  return weight.starts_with('0') && weight.find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

struct GzipPieces::Stream {
  z_stream zlib{};
};

std::unique_ptr<GzipPieces> GzipPieces::open() {
  if (gzip_streams.fetch_add(1) >= kGzipStreamsMax) {
    gzip_streams.fetch_sub(1);
    return nullptr;
  }
  auto stream = std::make_unique<Stream>();
  if (deflateInit2(&stream->zlib, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    gzip_streams.fetch_sub(1);
    return nullptr;
  }
  return std::unique_ptr<GzipPieces>(new GzipPieces(std::move(stream)));
}

GzipPieces::GzipPieces(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}

GzipPieces::~GzipPieces() {
  deflateEnd(&stream_->zlib);
  gzip_streams.fetch_sub(1);
}

void GzipPieces::add(std::string_view piece, bool is_last, std::string& to) {
  z_stream& zlib = stream_->zlib;
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
  zlib.avail_in = static_cast<uInt>(piece.size());
  char part[16 << 10];
  do {
    zlib.next_out = reinterpret_cast<Bytef*>(part);
    zlib.avail_out = sizeof(part);
    const int state = deflate(&zlib, is_last ? Z_FINISH : Z_SYNC_FLUSH);
    FJORD_CHECK(state != Z_STREAM_ERROR);
    to.append(part, sizeof(part) - zlib.avail_out);
  } while (zlib.avail_out == 0);
}

void AnswerBody::add(std::string piece) {
  if (piece.empty()) return;
  pieces_bytes_ += piece.size();
  pieces_.push_back(std::move(piece));
}

void AnswerBody::clear() {
  pieces_.clear();
  pieces_at_ = pieces_bytes_ = ready_at_ = 0;
  ready_ = {};
  gzip_.reset();
}

void AnswerBody::make_ready() {
  ready_.clear();
  ready_at_ = 0;
  if (gzip_ == nullptr) {
    if (pieces_.empty()) return;
    pieces_bytes_ -= pieces_.front().size();
    ready_ = std::move(pieces_.front());
    pieces_.pop_front();
    return;
  }
  if (pieces_.empty() && !is_ended_) return;
  std::string_view part;
  if (!pieces_.empty()) part = std::string_view(pieces_.front()).substr(pieces_at_, kCompressedAtOnce);
  const bool is_whole_piece = pieces_.empty() || pieces_at_ + part.size() == pieces_.front().size();
  const bool is_last = is_ended_ && is_whole_piece && pieces_.size() <= 1;
  gzip_->add(part, is_last, ready_);
  pieces_at_ += part.size();
  pieces_bytes_ -= part.size();
  if (is_whole_piece && !pieces_.empty()) {
    pieces_.pop_front();
    pieces_at_ = 0;
  }
  if (is_last) gzip_.reset();
}

void AnswerBody::take(std::string& to, std::size_t bytes_max) {
  while (bytes_max > 0 && !is_empty()) {
    if (ready_at_ == ready_.size()) make_ready();
    const std::size_t bytes = std::min(bytes_max, ready_.size() - ready_at_);
    to.append(ready_, ready_at_, bytes);
    ready_at_ += bytes;
    bytes_max -= bytes;
  }
  if (ready_at_ == ready_.size()) {
    ready_ = {};
    ready_at_ = 0;
  }
}

std::string gzip_text(std::string_view text) {
  std::string compressed;
  const auto gzip = GzipPieces::open();
  if (gzip != nullptr) gzip->add(text, true, compressed);
  return compressed;
}

bool accepts_gzip(std::string_view accept_encoding) {
  bool accepted = false;
  while (!accept_encoding.empty()) {
    const std::string_view one = accept_encoding.substr(0, accept_encoding.find(','));
    accept_encoding.remove_prefix(std::min(accept_encoding.size(), one.size() + 1));
    const std::size_t semicolon = one.find(';');
    const std::string_view name = trimmed(one.substr(0, semicolon));
    if (!is_gzip_name(name)) continue;
    const bool is_forbidden = semicolon != std::string_view::npos && is_weight_zero(one.substr(semicolon + 1));
    if (name != "*") return !is_forbidden;
    accepted = !is_forbidden;
  }
  return accepted;
}

}  // namespace fjord::gateway
