#include "operation_metrics.h"

#include <string>

namespace fjord::distributor {
namespace {

OperationMetrics::PerKind make_kind(MetricRegistry& registry, const std::string& operation) {
  auto outcome = [&](const char* name) -> Counter& {
    return registry.counter("fjord_distributor_operations_total", "Operations by how they ended",
                            {{"operation", operation}, {"outcome", name}});
  };
  return {
      outcome("applied"), outcome("not_applied"), outcome("in_doubt"),
      registry.histogram("fjord_distributor_operation_seconds", "From arrival to answer", {{"operation", operation}})};
}

}  // namespace

OperationMetrics::OperationMetrics(MetricRegistry& metrics)
    : get(make_kind(metrics, "get")),
      put(make_kind(metrics, "put")),
      remove(make_kind(metrics, "remove")),
      update(make_kind(metrics, "update")),
      foreground_seconds(metrics.histogram("fjord_distributor_foreground_seconds",
                                           "From arrival to answer, of operations that are not in the background")),
      duplicates(metrics.counter("fjord_distributor_duplicates_total", "Copies of writes that were recognised")),
      known_tokens(metrics.counter("fjord_distributor_known_tokens_total",
                                   "Operations whose token said that they had been applied")),
      parts(metrics.counter("fjord_distributor_partial_answers_total",
                            "Answers with the outcomes that were known, while other operations of the batch went on")),
      pending(metrics.gauge("fjord_distributor_pending_operations", "Operations under way")),
      registry(metrics) {}

void OperationMetrics::count(rpc::OperationKind kind, const Status& status, Duration took) {
  const bool is_get = kind == rpc::OperationKind::Get;
  PerKind& metrics = is_get                               ? get
                     : kind == rpc::OperationKind::Put    ? put
                     : kind == rpc::OperationKind::Update ? update
                                                          : remove;
  metrics.seconds.observe(took);
  if (status || (is_get && status.code() == StatusCode::NotFound)) {
    metrics.applied.add();
  } else if (!is_get && status.code() == StatusCode::Timeout) {
    metrics.in_doubt.add();
  } else {
    metrics.not_applied.add();
    registry
        .counter("fjord_distributor_not_applied_total", "Operations that were not applied, by reason",
                 {{"reason", std::string(to_string(status.code()))}})
        .add();
  }
}

}  // namespace fjord::distributor
