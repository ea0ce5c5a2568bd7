#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "admission.h"
#include "batch.h"
#include "context.h"
#include "guard_rails.h"
#include "operation_metrics.h"
#include "request_records.h"

namespace fjord::distributor {

/// Accepts clients' batches: first refuses operations that exceed the budget, then checks the
/// others.
class OperationIntake {
 public:
  /// What was decided about a batch on its arrival.
  struct Arrival {
    MonotonicTime at;
    /// By class: the reason for refusing all its operations; empty if they are admitted.
    std::array<std::optional<Admission::Refusal>, Admission::kClasses> refused;
    std::size_t bytes = 0;  ///< Bytes of the admitted operations.
  };
  using Begin = std::function<void(std::shared_ptr<Batch>, const Arrival&)>;
  using AnswerRest = std::function<void(std::uint64_t number, std::uint64_t client, rpc::Responder)>;
  struct Hooks {
    Begin begin;             ///< Begins the operations of a batch, on the executor.
    AnswerRest answer_rest;  ///< Answers a client that asks for the missing results of a batch, on the executor.
  };
  struct Parts {
    Admission& admission;
    GuardRails& guard_rails;
    RequestRecords& records;
    OperationMetrics& metrics;
  };
  OperationIntake(Context& context, Parts parts, Hooks hooks)
      : context_(context), parts_(parts), hooks_(std::move(hooks)) {}

  /// Accepts a client's batch. Threading: any thread.
  void arrive(rpc::Execute request, rpc::Responder respond);
  /// Parses and checks an operation of a batch. Returns an error that says what is wrong with it. Runs on the executor.
  Status prepare(const OpRef& ref);

 private:
  /// The numbers that identify an operation which was refused on arrival.
  struct Refused {
    rpc::OperationKind kind = rpc::OperationKind::Unknown;
    std::uint64_t sequence = 0;
    std::uint32_t attempt = 0;
  };
  void refuse_batch(rpc::Execute request, rpc::Responder respond, const Arrival& arrival);
  void open(rpc::Execute request, rpc::Responder respond, const Arrival& arrival);
  Status prepare_document(rpc::Operation& operation, const DocumentId& id);

  Context& context_;
  Parts parts_;
  Hooks hooks_;
};

}  // namespace fjord::distributor
