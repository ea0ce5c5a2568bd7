#include "fjord/storage/spi/token_entry.h"

#include <cstring>

#include "fjord/common/hash.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {
namespace {

constexpr std::string_view kPrefix = "token:";
constexpr std::size_t kGidDigits = 24;
constexpr std::size_t kHashDigits = 32;
constexpr std::size_t kIdSize = kPrefix.size() + kGidDigits + 1 + kHashDigits + 2;

// Bits 32 to 57 of GlobalId::hash_bits() are part of bucket ids (bucket_of).
constexpr std::uint64_t kBucketHashBits = ((std::uint64_t{1} << 26) - 1) << 32;
// Seeds that make two independent hashes of the token.
constexpr std::uint64_t kSeeds[] = {0x746f6b656e31, 0x746f6b656e32};

constexpr std::string_view kDigits = "0123456789abcdef";

void append_hex(std::string& text, std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
}

bool read_hex(std::string_view text, std::string& bytes) {
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const std::size_t high = kDigits.find(text[i]);
    const std::size_t low = kDigits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return true;
}

std::string hash_of(std::string_view token) {
  std::string text;
  for (const std::uint64_t seed : kSeeds) {
    const std::uint64_t hash = hash64(token, seed);
    append_hex(text, {reinterpret_cast<const char*>(&hash), sizeof hash});
  }
  return text;
}

}  // namespace

GlobalId token_gid(const GlobalId& document, std::string_view token) {
  const std::uint64_t mixed = hash64(token, hash64(document.view()));
  std::uint64_t bits = (document.hash_bits() & kBucketHashBits) | (mixed & ~kBucketHashBits);
  if (bits == document.hash_bits()) bits ^= 1;  // The gid must differ from the gid of the document.
  GlobalId gid = document;
  std::memcpy(gid.bytes.data() + sizeof(std::uint32_t), &bits, sizeof bits);
  return gid;
}

std::optional<TokenEntry> TokenEntry::parse(std::string_view id) {
  if (id.size() != kIdSize || !is_token_id(id)) return std::nullopt;
  const std::string_view gid = id.substr(kPrefix.size(), kGidDigits);
  const std::string_view hash = id.substr(kPrefix.size() + kGidDigits + 1, kHashDigits);
  const char state = id.back();
  std::string gid_bytes;
  std::string hash_bytes;
  if (!read_hex(gid, gid_bytes) || !read_hex(hash, hash_bytes)) return std::nullopt;
  if (id[kPrefix.size() + kGidDigits] != ':' || id[kIdSize - 2] != ':') return std::nullopt;
  if (state != '0' && state != '1' && state != 'x') return std::nullopt;
  return TokenEntry{GlobalId::from_bytes(gid_bytes), std::string(hash), static_cast<State>(state)};
}

TokenEntry TokenEntry::of(const GlobalId& document, std::string_view token, bool existed) {
  return {document, hash_of(token), existed ? State::Existed : State::New};
}

std::string TokenEntry::id() const {
  std::string text(kPrefix);
  append_hex(text, document.view());
  text.append(":").append(token_hash).append(":").push_back(static_cast<char>(state));
  return text;
}

bool TokenEntry::is_of(std::string_view token) const { return token_hash == hash_of(token); }

}  // namespace fjord::spi
