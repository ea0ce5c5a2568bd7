// The tuner: advice on settings, and changes that it can take back.
#include "fjord/library/tuning.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "admin_calls.h"
#include "bindings.h"
#include "fjord/tuner/settings.h"
#include "options.h"
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
  source.sample = to_duration(sample, "sample");
  source.workload = workload;
  std::stop_source stop;
  source.stop = stop.get_token();
  return to_dict(
      value_of(handle.run([client, source, only] { return client->admin().tuning().plan(source, only); }, {&stop})));
}

nb::object value_or_none(const tuner::Knob* knob, std::int64_t value) {
  return knob == nullptr ? nb::none() : to_str(tuner::value_text(*knob, value));
}

nb::dict to_dict(const TuningEvent& event) {
  return Record()
      .add("event", event.event)
      .add("loop", event.loop)
      .add("setting", event.knob == nullptr ? std::string() : std::string(event.knob->name))
      .add("old", value_or_none(event.knob, event.old_value))
      .add("new", value_or_none(event.knob, event.new_value))
      .add("id", event.id)
      .add("version", event.config_version)
      .add("text", event.text)
      .take();
}

/// Returns callbacks that pass the tuner's events to `on_event`, on the Python thread that waits for the call.
TuningCallbacks callbacks_to(const std::shared_ptr<Mailbox>& mailbox, nb::handle on_event) {
  TuningCallbacks callbacks;
  if (on_event.is_none()) return callbacks;
  callbacks.on_event = [mailbox, on_event](const TuningEvent& event) {
    mailbox->post([on_event, event] { on_event(to_dict(event)); });
  };
  return callbacks;
}

std::string_view to_string(TuningVerdict verdict) {
  switch (verdict) {
    case TuningVerdict::Kept:
      return "kept";
    case TuningVerdict::TakenBack:
      return "taken back";
    case TuningVerdict::Unknown:
      return "unknown";
    case TuningVerdict::Left:
      return "left";
    case TuningVerdict::NotMade:
      return "not made";
  }
  return "";
}

nb::object apply_and_watch(ClientHandle& handle, const std::map<std::string, std::string>& values,
                           const std::string& reason, const TuningWatchOptions& options, nb::handle on_event) {
  const std::shared_ptr<Client> client = handle.use_connected();
  const auto mailbox = std::make_shared<Mailbox>();
  const TuningCallbacks callbacks = callbacks_to(mailbox, on_event);
  // The call cannot be stopped: after an exception it continues without its caller, until the verdict.
  return to_str(to_string(value_of(
      handle.run([client, values, reason, options,
                  callbacks] { return client->admin().tuning().apply_and_watch(values, reason, options, callbacks); },
                 {nullptr, mailbox}))));
}

void run_tuner(ClientHandle& handle, AutoTuneOptions options, nb::handle on_event) {
  const std::shared_ptr<Client> client = handle.use_connected();
  const auto mailbox = std::make_shared<Mailbox>();
  const TuningCallbacks callbacks = callbacks_to(mailbox, on_event);
  std::stop_source stop;
  options.stop = stop.get_token();
  check(handle.run([client, options, callbacks] { return client->admin().tuning().run(options, callbacks); },
                   {&stop, mailbox}));
}

void set_controllers(AutoTuneOptions& options, const std::map<std::string, std::string>& modes) {
  const std::vector<std::string_view> names = tuner::AutoTuner::loop_names();
  for (const auto& [name, mode] : modes) {
    const bool is_mode = mode == "off" || mode == "advise" || mode == "on";
    if (std::find(names.begin(), names.end(), name) == names.end() || !is_mode) {
      raise(Status(StatusCode::InvalidArgument, fmt::format("controllers: {}={}: expected off, advise or on for {}",
                                                            name, mode, fmt::join(names, ", "))));
    }
    options.tuner.modes[name] = mode == "on" ? ControlMode::On : mode == "off" ? ControlMode::Off : ControlMode::Advise;
  }
}

void bind_watching(nb::module_& module) {
  nb::class_<TuningWatchOptions>(module, "TuningWatchOptions")
      .def(nb::init<>())
      .def_rw("metrics", &TuningWatchOptions::metrics)
      .def_rw("target", &TuningWatchOptions::target_s)
      .def_rw("scan_share", &TuningWatchOptions::scan_share)
      .def_prop_rw("period", &get_nothing<TuningWatchOptions>, &set_period<TuningWatchOptions>);
  nb::class_<AutoTuneOptions>(module, "AutoTuneOptions")
      .def(nb::init<>())
      .def_rw("metrics", &AutoTuneOptions::metrics)
      .def_rw("periods", &AutoTuneOptions::periods)
      .def_prop_rw("period", &get_nothing<AutoTuneOptions>, &set_period<AutoTuneOptions>)
      .def_prop_rw("controllers", &get_nothing<AutoTuneOptions>, &set_controllers)
      .def_prop_rw("target", &get_nothing<AutoTuneOptions>,
                   [](AutoTuneOptions& self, double seconds) { self.tuner.target_s = seconds; });
}

}  // namespace

void bind_tuning(nb::module_& module) {
  bind_watching(module);
  module.def("tuning_apply_and_watch", &apply_and_watch, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  module.def("tuning_run", &run_tuner, nb::arg(), nb::arg(), nb::arg().none());
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
