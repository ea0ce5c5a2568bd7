#pragma once

#include <memory>

#include "fjord/document/garbage_rules.h"
#include "stripe_context.h"

namespace fjord::storage {

/// Searches a bucket for documents that their types do not keep (GarbageRules). Works in steps, between which the
/// stripe serves its waiting requests, and within the node's maintenance budget. The scan changes nothing: the
/// distributor that asked for it removes the documents with conditional operations.
///
/// Confined to the stripe's executor; keeps itself alive until it has answered.
class GarbageScan : public std::enable_shared_from_this<GarbageScan> {
 public:
  static void start(StripeContext& context, Executor& executor, const rpc::FindGarbage& request,
                    rpc::Responder respond);

 private:
  GarbageScan(StripeContext& context, Executor& executor, const rpc::FindGarbage& request, rpc::Responder respond);

  Status open();
  void step();
  /// Reads some documents. Returns false if nothing is left to read or enough garbage was found. Errors: those of the
  /// iterator.
  Result<bool> read_some();
  void finish(Status status);

  StripeContext& context_;
  Executor& executor_;
  rpc::FindGarbage request_;
  rpc::Responder respond_;
  /// The snapshot that owns the document types to which `rules_` refer.
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot_;
  GarbageRules rules_;
  std::unique_ptr<spi::DocumentIterator> iterator_;
  rpc::FindGarbageReply reply_;
};

}  // namespace fjord::storage
