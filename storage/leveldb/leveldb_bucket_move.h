#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "leveldb_engine.h"

namespace fjord::leveldb_store {

/// Replaces buckets by other buckets that get their entries: a split or a join. Copies the entries to keys of new uids
/// in batches that readers do not see. A final batch makes the new uids valid and the old ones garbage. So a move is
/// atomic, and as slow as writing all entries again. Used once, within a call of the engine.
class BucketMove {
 public:
  BucketMove(Engine& engine, std::vector<BucketId> sources) : engine_(engine), sources_(std::move(sources)) {}

  /// Adds a bucket to be made. If `target` exists, it keeps its entries and replica set; otherwise it gets `replicas`.
  Status add_target(BucketId target, const ReplicaSet& replicas);
  Status finish();

 private:
  struct Target {
    BucketId id;
    Bucket bucket;
  };

  Status reserve_uid(std::uint64_t uid);
  Status copy(const std::vector<const Bucket*>& from, Target& target);
  Status copy_entry(const GlobalId& gid, const EntryHead& head, std::uint64_t from_uid, Target& target);
  Status flush(std::size_t at_least);

  Engine& engine_;
  const std::vector<BucketId> sources_;
  std::vector<Target> targets_;
  std::vector<std::uint64_t> replaced_;
  leveldb::WriteBatch batch_;
};

}  // namespace fjord::leveldb_store
