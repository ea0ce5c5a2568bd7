// Balancing by load: what the storage nodes are asked to do, and plans that move buckets.
#include "fjord/library/balancing.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "admin_calls.h"
#include "bindings.h"
#include "record.h"

namespace fjord::python {

namespace {

nb::dict to_dict(const BucketMove& move) {
  return Record()
      .add("bucket", move.bucket)
      .add("source", move.from)
      .add("target", move.to)
      .add("bytes", move.bytes)
      .add("load", move.load)
      .add("reason", move.reason)
      .add("read_part", move.read_part)
      .take();
}

nb::list to_list(const std::vector<BucketMove>& moves) {
  return records_of(moves, [](const BucketMove& move) { return to_dict(move); });
}

nb::dict to_dict(const BalancePlan& plan) {
  return Record()
      .add("state_version", plan.state_version)
      .add("algorithm", plan.algorithm)
      .add("moves", to_list(plan.moves))
      .add("bytes", plan.bytes)
      .add("duration", plan.duration)
      .add("imbalance_before", plan.imbalance_before)
      .add("imbalance_after", plan.imbalance_after)
      .add("rows", plan.rows)
      .add("notes", plan.notes)
      .add("refusals", plan.refusals)
      .add("native", nb::cast(plan))
      .take();
}

nb::dict to_dict(const NodeLoad& node) {
  return Record()
      .add("node", node.node)
      .add("load", node.load)
      .add("over_mean", node.over_mean)
      .add("reads_per_s", node.reads_per_s)
      .add("writes_per_s", node.writes_per_s)
      .add("bytes", node.bytes)
      .add("note", node.note)
      .take();
}

nb::dict to_dict(const BucketLoadInfo& bucket) {
  return Record()
      .add("bucket", bucket.bucket)
      .add("load", bucket.load)
      .add("reads_per_s", bucket.reads_per_s)
      .add("writes_per_s", bucket.writes_per_s)
      .add("bytes", bucket.bytes)
      .add("nodes", bucket.nodes)
      .add("why_not", bucket.why_not)
      .take();
}

nb::dict to_dict(const BalanceStatus& status) {
  return Record()
      .add("mode", status.mode)
      .add("algorithm", status.algorithm)
      .add("unit", status.unit == LoadUnit::ProcessorShare ? "processor share" : "operations per second")
      .add("imbalance", status.imbalance)
      .add("doing", status.doing)
      .add("waits_for", status.waits_for)
      .add("state_version", status.state_version)
      .add("distribution_bits", status.distribution_bits)
      .add("rows", status.rows)
      .add("rows_max", status.rows_max)
      .add("round", status.round)
      .add("round_time", status.round_time)
      .add("round_age", status.round_age)
      .add("moves_left", status.moves_left)
      .add("nodes", records_of(status.nodes, [](const NodeLoad& node) { return to_dict(node); }))
      .add("buckets", records_of(status.buckets, [](const BucketLoadInfo& bucket) { return to_dict(bucket); }))
      .take();
}

nb::dict to_dict(const BalanceStepInfo& step) {
  return Record()
      .add("step", step.step)
      .add("kind", step.kind)
      .add("unix_us", step.unix_us)
      .add("state_version", step.state_version)
      .add("moves", to_list(step.moves))
      .add("bytes", step.bytes)
      .add("rows_removed", step.rows_removed)
      .add("rows_added", step.rows_added)
      .add("imbalance_before", step.imbalance_before)
      .add("imbalance_after", step.imbalance_after)
      .add("who", step.who)
      .add("why", step.why)
      .add("reverts", step.reverts)
      .take();
}

/// Runs a call of Balancing without the interpreter lock, and returns its value; raises its error.
template <typename F>
auto call_balancing(ClientHandle& handle, F f) {
  return value_of(call_admin(handle, [f](Admin admin) { return f(admin.balancing()); }));
}

}  // namespace

void bind_balancing(nb::module_& module) {
  nb::class_<BalancePlan>(module, "BalancePlan");
  module.def("balance_status", [](ClientHandle& handle, std::uint32_t buckets) {
    return to_dict(call_balancing(handle, [buckets](Balancing balancing) { return balancing.status(buckets); }));
  });
  module.def("balance_plan", [](ClientHandle& handle, const std::string& algorithm) {
    return to_dict(call_balancing(handle, [algorithm](Balancing balancing) { return balancing.plan(algorithm); }));
  });
  module.def("balance_apply", [](ClientHandle& handle, const BalancePlan& plan, const std::string& reason) {
    return Record::convert(
        call_balancing(handle, [plan, reason](Balancing balancing) { return balancing.apply(plan, reason); }));
  });
  module.def("balance_history", [](ClientHandle& handle) {
    return records_of(call_balancing(handle, [](Balancing balancing) { return balancing.history(); }),
                      [](const BalanceStepInfo& step) { return to_dict(step); });
  });
  module.def("balance_revert", [](ClientHandle& handle, std::uint64_t step, bool dry_run, const std::string& reason) {
    return to_dict(call_balancing(
        handle, [step, dry_run, reason](Balancing balancing) { return balancing.revert(step, dry_run, reason); }));
  });
}

}  // namespace fjord::python
