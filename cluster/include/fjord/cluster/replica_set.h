#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace fjord {

/// The storage nodes that hold all acknowledged writes of a bucket since `epoch`. Every replica stores it beside its
/// documents. A distributor that has lost its memory reads from the newest set which replicas may be served and which
/// must be merged first (docs/design/0001-first-architecture.md, "Replica sets").
/// Epoch 0: the replica was never part of a set, because it is still catching up.
///
/// An epoch is a cluster state version and, in the low kStepBits bits, a step that counts the sets made under it.
struct ReplicaSet {
  static constexpr unsigned kStepBits = 20;
  static constexpr std::uint64_t make_epoch(std::uint64_t state_version, std::uint64_t step) {
    return (state_version << kStepBits) + step;
  }
  std::uint64_t state_version() const { return epoch >> kStepBits; }

  std::uint64_t epoch = 0;
  std::vector<std::uint16_t> nodes;  ///< The members, primary first.

  bool contains(std::uint16_t node) const { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); }
  friend bool operator==(const ReplicaSet&, const ReplicaSet&) = default;
};

/// Summary of the content of a replica. `checksum` is the sum over all entries of a hash of (gid, timestamp, removed),
/// so it does not depend on order: two replicas with equal entries and checksum hold the same versions.
struct BucketInfo {
  std::uint64_t entries = 0;    ///< Number of entries: one for each document id, including removed documents.
  std::uint64_t documents = 0;  ///< Number of documents: entries that are not removes.
  std::uint64_t bytes = 0;      ///< Bytes of the documents' parts.
  std::uint64_t checksum = 0;
  std::uint64_t max_timestamp_us = 0;

  friend bool operator==(const BucketInfo&, const BucketInfo&) = default;
  /// Returns true if both hold the same versions of the same documents. The other fields may depend on earlier content.
  bool same_content(const BucketInfo& other) const { return entries == other.entries && checksum == other.checksum; }
};

}  // namespace fjord
