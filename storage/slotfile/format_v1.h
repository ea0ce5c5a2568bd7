#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/cluster/replica_set.h"
#include "fjord/common/env.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"

/// Reads format version 1, for the import: a folder for each bucket, with a manifest and 2^k slotfiles whose regions
/// had fixed sizes. The format is described in test/data/slotfile/v1/README.md. This code writes nothing.
namespace fjord::slotfile::v1 {

/// The manifest of a bucket, which names its slotfiles.
struct Manifest {
  BucketId bucket;
  std::uint32_t generation = 0;
  unsigned slot_bits = 0;  ///< k: the bucket has 2^k slotfiles.
  ReplicaSet replicas;
};
/// Errors: Corruption; NotImplemented for another version or an unknown feature.
Result<Manifest> decode_manifest(std::string_view bytes);

struct FileHeader {
  BucketId bucket;
  std::uint32_t generation = 0;
  std::uint32_t slot = 0;
  unsigned slot_bits = 0;
  std::uint64_t entry_capacity = 0;
  std::uint64_t header_capacity = 0;
  std::uint64_t body_capacity = 0;
};
/// Errors: Corruption (neither of the two copies can be read); NotImplemented; IoError.
Result<FileHeader> read_header(const RandomAccessFile& file);

enum class Part { Header, Body };

struct Entry {
  std::uint64_t timestamp_us = 0;
  GlobalId gid;
  std::uint32_t header_position = 0;
  std::uint32_t body_position = 0;
  std::uint32_t header_length = 0;
  std::uint32_t body_length = 0;
  bool removed = false;  ///< If true, the header part is the document id.
};
struct EntryList {
  std::vector<Entry> newest;  ///< The newest entry of each document id.
  std::uint64_t lost = 0;     ///< Number of entries that may have been acknowledged and cannot be read.
};
/// Errors: IoError.
Result<EntryList> read_entries(const RandomAccessFile& file, const FileHeader& header);
/// Errors: Corruption, IoError.
Result<std::string> read_part(const RandomAccessFile& file, const FileHeader& header, const Entry& entry, Part part);

inline constexpr std::string_view kManifestName = "manifest";

/// Parses the name of a bucket's folder, for example "4000000000000012".
std::optional<BucketId> parse_bucket_name(std::string_view name);
struct SlotfileName {
  std::uint32_t generation = 0;
  std::uint32_t slot = 0;
};
/// Returns for example "00000001-03.slot": generation and slot, hexadecimal.
std::string slotfile_name(SlotfileName name);
std::optional<SlotfileName> parse_slotfile_name(std::string_view name);

}  // namespace fjord::slotfile::v1
