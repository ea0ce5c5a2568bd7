#include "part_codec.h"

#include <algorithm>
#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>

#include "fjord/common/coding.h"

namespace fjord::slotfile {

namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);
constexpr int kZstdLevel = 3;
/// From this level on, lz4 uses its slower variant, which compresses more.
constexpr int kLz4DenseLevel = 2;

/// Returns the number of bytes written to `to`, or 0 if they do not fit.
std::size_t compress(const PartCompression& wanted, std::string_view bytes, char* to, std::size_t capacity) {
  if (wanted.codec == spi::Compression::Lz4) {
    const auto from_size = static_cast<int>(bytes.size());
    const auto to_size = static_cast<int>(capacity);
    const int n = wanted.level >= kLz4DenseLevel ? LZ4_compress_HC(bytes.data(), to, from_size, to_size, wanted.level)
                                                 : LZ4_compress_default(bytes.data(), to, from_size, to_size);
    return n <= 0 ? 0 : static_cast<std::size_t>(n);
  }
  const int level = wanted.level == 0 ? kZstdLevel : wanted.level;
  const std::size_t n = ZSTD_compress(to, capacity, bytes.data(), bytes.size(), level);
  return ZSTD_isError(n) != 0 ? 0 : n;
}

}  // namespace

spi::Compression append_compressed(std::string& into, std::string_view bytes, const PartCompression& wanted) {
  const std::size_t before = into.size();
  if (wanted.codec != spi::Compression::None && bytes.size() >= wanted.min_bytes && bytes.size() > 2 * kLengthBytes) {
    // If the compressed bytes do not fit into this many bytes, compression saves too little.
    const std::size_t most = std::min<std::size_t>(bytes.size() - 1, bytes.size() * wanted.percent_max / 100);
    const std::size_t capacity = most > kLengthBytes ? most - kLengthBytes : 0;
    into.resize(before + kLengthBytes + capacity);
    store_fixed(into.data() + before, static_cast<std::uint32_t>(bytes.size()));
    const std::size_t n = capacity == 0 ? 0 : compress(wanted, bytes, into.data() + before + kLengthBytes, capacity);
    into.resize(n == 0 ? before : before + kLengthBytes + n);
    if (n != 0) return wanted.codec;
  }
  into.append(bytes);
  return spi::Compression::None;
}

Status decompress(std::string_view stored, spi::Compression compression, std::string& into) {
  const auto corrupt = [] { return Status(StatusCode::Corruption, "a compressed part cannot be decompressed"); };
  if (stored.size() < kLengthBytes) return corrupt();
  const auto length = load_fixed<std::uint32_t>(stored.data());
  if (length > spi::kPartBytesMax) return corrupt();
  stored.remove_prefix(kLengthBytes);
  into.resize(length);
  if (compression == spi::Compression::Lz4) {
    const int n =
        LZ4_decompress_safe(stored.data(), into.data(), static_cast<int>(stored.size()), static_cast<int>(length));
    return n >= 0 && static_cast<std::uint32_t>(n) == length ? Status::ok() : corrupt();
  }
  if (compression != spi::Compression::Zstd) return corrupt();
  return ZSTD_decompress(into.data(), length, stored.data(), stored.size()) == length ? Status::ok() : corrupt();
}

}  // namespace fjord::slotfile
