#pragma once

#include <functional>
#include <map>
#include <memory>

#include "admission.h"
#include "batch.h"
#include "context.h"
#include "operation_metrics.h"
#include "unclaimed_answers.h"

namespace fjord::distributor {

/// The batches in flight. Answers clients with all results of a batch at once, or in parts (docs/design/0015). Confined
/// to the executor.
class BatchAnswers {
 public:
  /// `expire` ends an operation whose deadline has passed; `flush` is called afterwards.
  struct Hooks {
    std::function<void(const OpRef&)> expire;
    std::function<void()> flush;
  };
  BatchAnswers(Context& context, Admission& admission, OperationMetrics& metrics, Hooks hooks);

  /// Adds a batch, which is answered when all its operations have ended.
  void add(const std::shared_ptr<Batch>& batch);
  /// Sets the timer of a batch to the next part of its answer, or the next deadline of its operations.
  void watch(const std::shared_ptr<Batch>& batch);
  /// Must be called when one operation of the batch has ended and its result is complete.
  void ended(const std::shared_ptr<Batch>& batch);
  /// Answers a client that asks for the missing results of a batch.
  void answer_rest(std::uint64_t number, std::uint64_t client, rpc::Responder respond);
  /// Returns the batches that have not been answered completely, in order of arrival.
  const std::map<std::uint64_t, std::shared_ptr<Batch>>& batches() const { return batches_; }

 private:
  void on_time(const std::shared_ptr<Batch>& batch);
  void answer(Batch& batch);
  void answer_part(const std::shared_ptr<Batch>& batch);
  void answer_part_soon(const std::shared_ptr<Batch>& batch);
  rpc::ExecuteReply take_results(Batch& batch);

  Context& context_;
  Admission& admission_;
  OperationMetrics& metrics_;
  Hooks hooks_;
  std::map<std::uint64_t, std::shared_ptr<Batch>> batches_;
  std::uint64_t next_batch_ = 1;
  UnclaimedAnswers<Batch> unclaimed_;
};

/// Reduces the answer to a get to the wanted fields, and converts it to JSON if that is wanted.
void shape_document(const OpRef& ref, const DocumentTypeRepo& types);

}  // namespace fjord::distributor
