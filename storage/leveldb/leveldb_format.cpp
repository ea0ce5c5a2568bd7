#include "leveldb_format.h"

#include "fjord/common/coding.h"

namespace fjord::leveldb_store {

namespace {

constexpr char kSettings = 's';
constexpr char kCatalog = 'c';
constexpr char kGarbage = 'g';
constexpr char kEntry = 'e';
constexpr std::uint8_t kDamaged = 1;
constexpr std::uint8_t kRemoved = 1;

/// Appends the number with its high byte first, so that keys sort in the order of the numbers.
void put_big_endian(std::string& out, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift & 0xff));
}

std::uint64_t load_big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes.substr(0, sizeof(value))) value = value << 8 | static_cast<std::uint8_t>(byte);
  return value;
}

std::string numbered_key(char first, std::uint64_t number) {
  std::string key(1, first);
  put_big_endian(key, number);
  return key;
}

}  // namespace

std::string settings_key() { return std::string(1, kSettings); }
std::string catalog_prefix() { return std::string(1, kCatalog); }
std::string catalog_key(BucketId bucket) { return numbered_key(kCatalog, bucket.raw()); }
std::string garbage_prefix() { return std::string(1, kGarbage); }
std::string garbage_key(std::uint64_t uid) { return numbered_key(kGarbage, uid); }
std::string entries_prefix(std::uint64_t uid) { return numbered_key(kEntry, uid); }

std::string entries_prefix(std::uint64_t uid, Kind kind) {
  std::string key = entries_prefix(uid);
  key.push_back(static_cast<char>(kind));
  return key;
}

std::string entry_key(std::uint64_t uid, Kind kind, const GlobalId& gid) {
  std::string key = entries_prefix(uid, kind);
  key.append(gid.view());
  return key;
}

std::string encode(const Settings& settings) {
  std::string out;
  put_fixed<std::uint64_t>(out, settings.next_uid);
  return out;
}

std::string encode(const CatalogEntry& entry) {
  std::string out;
  put_fixed<std::uint64_t>(out, entry.uid);
  put_fixed<std::uint8_t>(out, entry.damaged ? kDamaged : 0);
  put_fixed<std::uint64_t>(out, entry.forgotten.removes.us);
  put_fixed<std::uint64_t>(out, entry.replicas.epoch);
  put_varint(out, entry.replicas.nodes.size());
  for (const std::uint16_t node : entry.replicas.nodes) put_fixed<std::uint16_t>(out, node);
  if (entry.forgotten == spi::Forgotten{}) return out;
  put_fixed<std::uint64_t>(out, entry.forgotten.tokens.us);
  put_fixed<std::uint64_t>(out, entry.forgotten.checksum);
  return out;
}

std::string encode(const EntryHead& head) {
  std::string out;
  put_fixed<std::uint64_t>(out, head.timestamp.us);
  put_fixed<std::uint8_t>(out, head.removed ? kRemoved : 0);
  put_varint(out, head.header_bytes);
  put_varint(out, head.body_bytes);
  return out;
}

std::optional<Settings> decode_settings(std::string_view value) {
  ByteReader reader(value);
  const Settings settings{.next_uid = reader.fixed<std::uint64_t>()};
  return reader.at_end() ? std::optional(settings) : std::nullopt;
}

std::optional<CatalogEntry> decode_catalog_entry(std::string_view value) {
  ByteReader reader(value);
  CatalogEntry entry;
  entry.uid = reader.fixed<std::uint64_t>();
  entry.damaged = (reader.fixed<std::uint8_t>() & kDamaged) != 0;
  entry.forgotten.removes.us = reader.fixed<std::uint64_t>();
  entry.replicas.epoch = reader.fixed<std::uint64_t>();
  const std::uint64_t nodes = reader.varint();
  for (std::uint64_t i = 0; i < nodes && reader.ok(); ++i) {
    entry.replicas.nodes.push_back(reader.fixed<std::uint16_t>());
  }
  if (reader.ok() && !reader.at_end()) {
    entry.forgotten.tokens.us = reader.fixed<std::uint64_t>();
    entry.forgotten.checksum = reader.fixed<std::uint64_t>();
  }
  return reader.at_end() ? std::optional(std::move(entry)) : std::nullopt;
}

std::optional<EntryHead> decode_head(std::string_view value) {
  ByteReader reader(value);
  EntryHead head;
  head.timestamp.us = reader.fixed<std::uint64_t>();
  head.removed = (reader.fixed<std::uint8_t>() & kRemoved) != 0;
  head.header_bytes = static_cast<std::uint32_t>(reader.varint());
  head.body_bytes = static_cast<std::uint32_t>(reader.varint());
  return reader.at_end() ? std::optional(head) : std::nullopt;
}

BucketId bucket_of_key(std::string_view key) { return BucketId(load_big_endian(key.substr(1))); }
std::uint64_t uid_of_garbage_key(std::string_view key) { return load_big_endian(key.substr(1)); }
GlobalId gid_of_key(std::string_view key) { return GlobalId::from_bytes(key.substr(key.size() - kGidBytes)); }

}  // namespace fjord::leveldb_store
