// The tuner: advice on settings, and changes that it can take back.
#include "fjord/library/tuning.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "admin_calls.h"
#include "bindings.h"
#include "fjord/tuner/settings.h"
#include "record.h"

namespace fjord::python {

namespace {

nb::dict to_dict(const PlannedChange& change) {
  return Record()
      .add("setting", change.knob == nullptr ? std::string() : std::string(change.knob->name))
      .add("old", change.old_text)
      .add("new", change.new_text)
      .add("reason", change.reason)
      .add("effect", change.effect)
      .add("may_be_applied", change.may_be_applied)
      .add("why_not", change.why_not)
      .add("moved_bytes", change.moved_bytes)
      .take();
}

nb::dict to_dict(const TuningPlan& plan) {
  return Record()
      .add("changes", records_of(plan.changes, [](const PlannedChange& change) { return to_dict(change); }))
      .add("values", plan.values())
      .add("moved_bytes", plan.moved_bytes)
      .add("seconds", plan.seconds)
      .take();
}

nb::dict to_dict(const AppliedTuning& applied) {
  nb::dict values;
  for (const AppliedTuning::Value& value : applied.values) {
    values[to_str(value.name)] = nb::make_tuple(to_str(value.before), to_str(value.after));
  }
  return Record()
      .add("id", applied.id)
      .add("is_revert", applied.is_revert)
      .add("version", applied.version)
      .add("unix_us", applied.unix_us)
      .add("who", applied.who)
      .add("values", values)
      .take();
}

nb::dict plan(ClientHandle& handle, const std::vector<std::string>& metrics, double sample, const std::string& workload,
              const std::vector<std::string>& only) {
  const std::shared_ptr<Client> client = handle.use_connected();
  TuningSource source;
  source.metrics = metrics;
  source.sample = to_duration(sample);
  source.workload = workload;
  std::stop_source stop;
  source.stop = stop.get_token();
  return to_dict(
      value_of(call_blocking([client, source, only] { return client->admin().tuning().plan(source, only); }, &stop)));
}

}  // namespace

void bind_tuning(nb::module_& module) {
  module.def("tuning_plan", &plan);
  module.def("tuning_apply",
             [](ClientHandle& handle, const std::map<std::string, std::string>& values, const std::string& reason) {
               return to_dict(value_of(
                   call_admin(handle, [values, reason](Admin admin) { return admin.tuning().apply(values, reason); })));
             });
  module.def("tuning_history", [](ClientHandle& handle) {
    return records_of(value_of(call_admin(handle, [](Admin admin) { return admin.tuning().history(); })),
                      [](const AppliedTuning& applied) { return to_dict(applied); });
  });
  module.def("tuning_revert", [](ClientHandle& handle, const std::string& id) {
    return to_dict(value_of(call_admin(handle, [id](Admin admin) { return admin.tuning().revert(id); })));
  });
}

}  // namespace fjord::python
