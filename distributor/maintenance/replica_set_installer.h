#pragma once

#include <functional>
#include <vector>

#include "context.h"

namespace fjord::distributor {

/// Installs replica sets: sends a set to its members, then to those that join, then to the replicas outside of it. Puts
/// it in force when all have confirmed it. The first set of a bucket is sent once more with the next epoch then, see
/// is_birth(). The entry says what is left to do (activity::Installing). Confined to the executor.
class ReplicaSetInstaller {
 public:
  /// `in_force` is called when the set of an entry is in force and operations on it may start.
  ReplicaSetInstaller(Context& context, std::function<void(BucketEntry&, const Installation&)> in_force)
      : context_(context), in_force_(std::move(in_force)) {}

  /// Installs the entry's replica set on its nodes.
  void install(BucketEntry& entry, Installation work = {});
  /// Like install(), but sends nothing yet, so that the sets of many buckets travel in one message to each node.
  void begin(BucketEntry& entry, Installation work = {});
  void send(const std::vector<BucketId>& buckets);
  /// Installs the set that follows the entry's merge. Its members are the nodes that should be members, as far as the
  /// merge has filled them. `work` says which of them were repaired.
  void extend(BucketEntry& entry, Installation work);

 private:
  /// One bucket of a message that carries replica sets.
  struct SentSet {
    BucketTicket ticket;
    std::uint64_t epoch = 0;  ///< Epoch that was sent; 0: the message says that the node is catching up.
  };
  void send_to(std::uint16_t node, const std::vector<BucketId>& buckets);
  void on_answer(std::uint16_t node, const std::vector<SentSet>& sent, Result<rpc::SetReplicaSetsReply> reply);
  void compare_content(BucketEntry& entry, std::uint16_t node, const BucketInfo& content);
  void confirmed_by_all(BucketEntry& entry);
  /// Gives the members of a bucket that was just made the epoch which says so.
  void confirm_birth(BucketEntry& entry);
  void delete_surplus(BucketEntry& entry, std::uint16_t node);

  Context& context_;
  std::function<void(BucketEntry&, const Installation&)> in_force_;
  std::vector<BucketId> born_;  ///< Buckets whose births confirm_birth() noted and on_answer() has to send.
};

}  // namespace fjord::distributor
