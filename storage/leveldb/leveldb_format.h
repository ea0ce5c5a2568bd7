#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/cluster/replica_set.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"
#include "fjord/document/timestamp.h"
#include "fjord/storage/spi/persistence_provider.h"

/// Encodes and decodes keys and values, which README.md describes under "Format".
namespace fjord::leveldb_store {

inline constexpr std::uint16_t kFormatVersion = 1;
inline constexpr std::size_t kGidBytes = 12;

struct Settings {
  std::uint64_t next_uid = 1;
};

/// The stored description of a bucket.
struct CatalogEntry {
  std::uint64_t uid = 0;  ///< Part of the keys of the bucket's entries. Never assigned twice.
  ReplicaSet replicas;
  spi::Forgotten forgotten;
  bool damaged = false;
};

/// The stored description of an entry, without its parts.
struct EntryHead {
  Timestamp timestamp;
  bool removed = false;
  std::uint32_t header_bytes = 0;  ///< Bytes of the header; for a remove entry, of its id.
  std::uint32_t body_bytes = 0;
};

enum class Kind : char { Head = 0, Header = 1, Body = 2 };

std::string settings_key();
std::string catalog_prefix();
std::string catalog_key(BucketId bucket);
std::string garbage_prefix();
std::string garbage_key(std::uint64_t uid);
/// Returns the prefix that the keys of the entries of bucket `uid` have in common; with `kind`, only of that kind.
std::string entries_prefix(std::uint64_t uid);
std::string entries_prefix(std::uint64_t uid, Kind kind);
std::string entry_key(std::uint64_t uid, Kind kind, const GlobalId& gid);

std::string encode(const Settings& settings);
std::string encode(const CatalogEntry& entry);
std::string encode(const EntryHead& head);

/// The decoding functions return nothing if the value is not one that encode() makes.
std::optional<Settings> decode_settings(std::string_view value);
std::optional<CatalogEntry> decode_catalog_entry(std::string_view value);
std::optional<EntryHead> decode_head(std::string_view value);
/// The functions for keys take a whole key of their kind.
BucketId bucket_of_key(std::string_view key);
std::uint64_t uid_of_garbage_key(std::string_view key);
GlobalId gid_of_key(std::string_view key);

}  // namespace fjord::leveldb_store
