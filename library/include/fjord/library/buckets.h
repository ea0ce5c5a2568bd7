#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"

/// What Admin says about single buckets. The name of a bucket is its number in hexadecimal, "0x4000000000000012".
namespace fjord {

/// Returns the name of a bucket as the library writes it. `text` may lack "0x". Errors: InvalidArgument.
Result<std::string> bucket_name(std::string_view text);

enum class BucketState : std::uint8_t {
  InSync,
  OutOfSync,  ///< Served; some replica is behind or being moved.
  /// Served with fewer current replicas than wanted: with a redundancy of 2 the loss of one more loses documents.
  TooFewReplicas,
  Damaged,      ///< Served; a replica has lost entries.
  Lost,         ///< All replicas have lost entries; Admin::accept_loss() continues with what is left.
  Unavailable,  ///< The bucket is not served.
};
std::string_view to_string(BucketState state);

/// One replica of a bucket and its contents.
struct ReplicaInfo {
  std::string node;         ///< "storage.2"
  std::string state;        ///< "primary", "member", "catching up", "obsolete", "unlisted", and what is wrong with it.
  bool is_member = false;   ///< The replica is in the replica set: reads and writes use it.
  bool is_damaged = false;  ///< The replica has lost entries and is not repaired yet.
  Status status;            ///< An error if the replica did not answer; then the figures are 0.
  std::string bucket;       ///< The bucket as split on the node.
  std::string epoch;        ///< Epoch of the replica set as stored on the node.
  std::uint64_t documents = 0;
  std::uint64_t entries = 0;  ///< Documents and remove entries.
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;   ///< Equal on replicas with equal contents.
  std::uint64_t newest_us = 0;  ///< Newest version; 0: the replica is empty.

  // The next members are about the document of Admin::bucket_of().

  std::optional<std::uint64_t> document_version_us;  ///< Absent: the replica does not have the document.
  std::uint64_t document_checksum = 0;               ///< Equal for documents with equal content.
  std::uint64_t removed_us = 0;                      ///< Version of the document's remove entry; 0: there is none.
  Status document_status;                            ///< Status of reading the document from the replica.
};

struct BucketReplicas {
  std::string bucket;
  unsigned bits = 0;
  std::string distributor;  ///< "distributor.1"
  std::uint64_t state_version = 0;
  BucketState state = BucketState::InSync;
  std::string reason;                    ///< Why the bucket is not in sync.
  std::string epoch;                     ///< Epoch of the replica set.
  std::vector<std::string> replica_set;  ///< Members, primary first.
  std::vector<ReplicaInfo> replicas;

  bool is_in_sync() const { return state == BucketState::InSync; }
};

struct UnhealthyBucket {
  std::string bucket;
  BucketState state = BucketState::OutOfSync;
  std::string reason;
  std::vector<std::string> members;
  std::vector<std::string> damaged;
  std::vector<std::string> catching_up;
};

struct UnhealthyBuckets {
  std::vector<UnhealthyBucket> buckets;  ///< The worst first.
  std::vector<std::string> silent;       ///< Names and errors of distributors that did not answer.
  bool more = false;                     ///< There are more than were asked for.
};

}  // namespace fjord
