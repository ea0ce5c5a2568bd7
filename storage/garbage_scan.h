#pragma once

#include <memory>

#include "fjord/document/garbage_rules.h"
#include "stripe.h"

namespace fjord::storage {

/// Reads a bucket in search of documents that their types do not want to keep (GarbageRules), in steps between which
/// whatever waits for the stripe has its turn, and no faster than the node's budget for maintenance allows. It changes
/// nothing: who asked decides with a condition, when it removes them.
///
/// Confined to the stripe's executor; keeps itself alive until it has answered.
class GarbageScan : public std::enable_shared_from_this<GarbageScan> {
 public:
  static void start(StorageNode::Stripe& stripe, const rpc::FindGarbage& request, rpc::Responder respond);

 private:
  GarbageScan(StorageNode::Stripe& stripe, const rpc::FindGarbage& request, rpc::Responder respond);

  Status open();
  void step();
  /// False once there is nothing left to read, or enough was found.
  Result<bool> read_some();
  void finish(Status status);

  StorageNode::Stripe& stripe_;
  rpc::FindGarbage request_;
  rpc::Responder respond_;
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot_;  // Whose types the rules are of.
  GarbageRules rules_;
  std::unique_ptr<spi::DocumentIterator> iterator_;
  rpc::FindGarbageReply reply_;
};

}  // namespace fjord::storage
