#include "manifest.h"

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"

namespace fjord::search {
namespace {

Status malformed_manifest() { return {StatusCode::Corruption, "the manifest of the keyword index is malformed"}; }

}  // namespace

std::string Manifest::encode() const {
  std::string out;
  put_fixed(out, kManifestMagic);
  put_fixed(out, kIndexFormatVersion);
  put_string(out, label);
  put_varint(out, next_number);
  put_varint(out, segments.size());
  for (const OneSegment& one : segments) {
    put_varint(out, one.place.number);
    put_varint(out, one.place.directory_offset);
    put_varint(out, one.place.directory_bytes);
    for (const std::string& dead : one.dead) put_string(out, dead);
  }
  put_varint(out, checksums.size());
  for (const auto& [bucket, checksum] : checksums) {
    put_fixed(out, bucket.raw());
    put_fixed(out, checksum);
  }
  put_fixed(out, checksum32(out));
  return out;
}

Result<Manifest> Manifest::decode(std::string_view bytes) {
  if (bytes.size() < sizeof(std::uint32_t)) return malformed_manifest();
  const std::string_view content = bytes.substr(0, bytes.size() - sizeof(std::uint32_t));
  if (checksum32(content) != load_fixed<std::uint32_t>(bytes.data() + content.size())) return malformed_manifest();
  ByteReader in(content);
  const bool is_manifest = in.fixed<std::uint32_t>() == kManifestMagic;
  if (!is_manifest || in.fixed<std::uint16_t>() != kIndexFormatVersion) return malformed_manifest();
  Manifest manifest;
  manifest.label = std::string(in.string());
  manifest.next_number = in.varint();
  const std::uint64_t segments = in.varint();
  if (!in.ok() || segments > in.remaining()) return malformed_manifest();
  for (std::uint64_t i = 0; i < segments; ++i) {
    OneSegment one;
    one.place.number = in.varint();
    one.place.directory_offset = in.varint();
    one.place.directory_bytes = in.varint();
    for (std::string& dead : one.dead) dead = std::string(in.string());
    if (one.place.number >= manifest.next_number) return malformed_manifest();
    manifest.segments.push_back(std::move(one));
  }
  const std::uint64_t checksums = in.varint();
  if (!in.ok() || checksums > in.remaining()) return malformed_manifest();
  for (std::uint64_t i = 0; i < checksums; ++i) {
    const BucketId bucket(in.fixed<std::uint64_t>());
    if (!bucket.is_valid()) return malformed_manifest();
    manifest.checksums[bucket] = in.fixed<std::uint64_t>();
  }
  if (!in.at_end()) return malformed_manifest();
  return manifest;
}

}  // namespace fjord::search
