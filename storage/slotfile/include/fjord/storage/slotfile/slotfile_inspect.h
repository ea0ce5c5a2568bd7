#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/cluster/replica_set.h"
#include "fjord/common/env.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"

namespace fjord {

/// Reading of slotfiles for people and tools: changes nothing, repairs nothing, tells everything. Not to be used on the
/// files of a running engine if the answer is to be exact.

enum class EntryState {
  Newest,    ///< The version that counts.
  Replaced,  ///< There is a newer one of the same document.
  Bad,       ///< The checksum is wrong; an acknowledged write may be lost.
  Torn,      ///< The remains of an interrupted write.
};
/// "newest", "replaced", "bad", "torn".
std::string_view to_string(EntryState state);

struct EntryReport {
  std::uint64_t index = 0;
  EntryState state = EntryState::Newest;
  GlobalId gid;
  std::uint64_t timestamp_us = 0;
  bool removed = false;
  std::string id;  ///< Document id, where it could be read.
  std::uint32_t header_position = 0;
  std::uint32_t header_length = 0;
  std::uint32_t body_position = 0;
  std::uint32_t body_length = 0;
};

struct SlotfileReport {
  std::string path;
  BucketId bucket;
  std::uint32_t generation = 0;
  std::uint32_t slot = 0;
  unsigned slot_bits = 0;
  std::uint64_t entry_capacity = 0;
  std::uint64_t header_capacity = 0;
  std::uint64_t body_capacity = 0;
  std::uint64_t live_bytes = 0;  ///< Of the newest versions, with their metadata.
  std::vector<EntryReport> entries;
  std::vector<std::string> problems;  ///< Each names the place; empty if all is well.
};

struct BucketReport {
  std::string directory;
  BucketId bucket;
  std::uint32_t generation = 0;
  unsigned slot_bits = 0;
  ReplicaSet replicas;
  std::vector<SlotfileReport> slotfiles;
  std::vector<std::string> leftovers;  ///< Names of files that the engine would remove when it opens the bucket.
  std::vector<std::string> problems;   ///< Without those of the slotfiles.
};

/// Reads a slotfile and verifies every part of the newest versions. Damage is in `problems`; if even the header cannot
/// be read, there is nothing else. Errors: NotFound, IoError.
Result<SlotfileReport> inspect_slotfile(Env& env, const std::string& path);
/// The same for the folder of a bucket. Errors: NotFound, IoError.
Result<BucketReport> inspect_bucket(Env& env, const std::string& directory);

}  // namespace fjord
