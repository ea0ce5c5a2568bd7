// Exports to files and imports from them.
#include "fjord/library/files.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "client_handle.h"
#include "errors.h"
#include "options.h"
#include "summary.h"
#include "values.h"

namespace fjord::python {

namespace {

void set_mode(ExportOptions& options, std::string_view name) {
  if (name == "new")
    options.mode = ExportMode::New;
  else if (name == "replace")
    options.mode = ExportMode::Replace;
  else if (name == "resume")
    options.mode = ExportMode::Resume;
  else
    raise(Status(StatusCode::InvalidArgument, "mode: expected new, replace or resume"));
}

void set_is_feed(ImportOptions& options, bool is_feed) {
  options.format = is_feed ? ImportFormat::Feed : ImportFormat::ByName;
}

nb::dict run_export(ClientHandle& handle, std::string path, ExportOptions options, nb::handle on_progress) {
  const std::shared_ptr<Client> client = handle.use_connected();
  const auto mailbox = std::make_shared<Mailbox>();
  if (!on_progress.is_none()) {
    options.on_progress = [mailbox, on_progress](const ExportProgress& progress) {
      mailbox->post(
          [on_progress, progress] { on_progress(fraction_or_none(progress.fraction_done), progress.documents); });
    };
  }
  std::stop_source stop;
  options.stop = stop.get_token();
  const ExportSummary summary =
      handle.run([client, path, options] { return client->export_to(path, options); }, {&stop, mailbox});
  check(summary.status);
  nb::dict result;
  result["documents"] = summary.documents;
  result["bytes"] = summary.bytes;
  result["seconds"] = summary.seconds;
  return result;
}

nb::dict run_import(ClientHandle& handle, std::vector<std::string> paths, ImportOptions options, nb::handle on_progress,
                    nb::handle on_failure, nb::handle on_warning) {
  const std::shared_ptr<Client> client = handle.use_connected();
  const auto mailbox = std::make_shared<Mailbox>();
  if (!on_progress.is_none()) {
    options.on_progress = [mailbox, on_progress](const ImportProgress& progress) {
      mailbox->post([on_progress, progress] {
        on_progress(fraction_or_none(progress.fraction_done), progress.stored, progress.failed);
      });
    };
  }
  if (!on_failure.is_none()) {
    options.on_failure = [mailbox, on_failure](const ImportFailure& failure) {
      mailbox->post([on_failure, failure] {
        on_failure(to_str(failure.file), failure.line, to_exception(failure.status, {.is_in_doubt = failure.in_doubt}));
      });
    };
  }
  if (!on_warning.is_none()) {
    options.on_warning = [mailbox, on_warning](const std::string& warning) {
      mailbox->post([on_warning, warning] { on_warning(to_str(warning)); });
    };
  }
  std::stop_source stop;
  options.stop = stop.get_token();
  const ImportSummary summary =
      handle.run([client, paths, options] { return client->import_from(paths, options); }, {&stop, mailbox});
  if (!summary.unreadable_files.empty()) raise(summary.unreadable_files.front());
  check(summary.status);
  return import_to_dict(summary);
}

}  // namespace

nb::dict import_to_dict(const ImportSummary& summary) {
  nb::dict result;
  result["stored"] = summary.stored;
  result["failed"] = summary.failed_total();
  result["failed_by_code"] = counts_to_dict(summary.failed);
  result["in_doubt"] = summary.in_doubt;
  result["retried"] = summary.retried;
  result["bytes"] = summary.bytes;
  result["seconds"] = summary.seconds;
  result["p50"] = summary.latency_p50_seconds;
  result["p99"] = summary.latency_p99_seconds;
  result["replaced"] = summary.replaced;
  result["existing"] = summary.existing;
  return result;
}

void bind_files(nb::module_& module) {
  nb::class_<ExportOptions>(module, "ExportOptions")
      .def(nb::init<>())
      .def_rw("selection", &ExportOptions::selection)
      .def_rw("type", &ExportOptions::type)
      .def_rw("fields", &ExportOptions::fields)
      .def_rw("snapshot", &ExportOptions::snapshot)
      .def_prop_rw("mode", &get_nothing<ExportOptions>, &set_mode)
      .def_prop_rw("slice", &get_slice<ExportOptions>, &set_slice<ExportOptions>)
      .def_prop_rw("since", &get_from<ExportOptions>, &set_from<ExportOptions>)
      .def_prop_rw("until", &get_to<ExportOptions>, &set_to<ExportOptions>)
      .def_prop_rw("priority", &get_nothing<ExportOptions>, &set_priority<ExportOptions>);
  nb::class_<ImportOptions>(module, "ImportOptions")
      .def(nb::init<>())
      .def_rw("type", &ImportOptions::type)
      .def_rw("id_field", &ImportOptions::id_field)
      .def_rw("id_namespace", &ImportOptions::id_namespace)
      .def_rw("ignore_unknown", &ImportOptions::ignore_unknown)
      .def_rw("create_only", &ImportOptions::create_only)
      .def_rw("convert_values", &ImportOptions::convert_values)
      .def_rw("progress_file", &ImportOptions::progress_file)
      .def_rw("in_flight", &ImportOptions::in_flight)
      .def_prop_rw("is_feed", &get_nothing<ImportOptions>, &set_is_feed)
      .def_prop_rw("timeout", &get_nothing<ImportOptions>, &set_timeout<ImportOptions>)
      .def_prop_rw("priority", &get_nothing<ImportOptions>, &set_priority<ImportOptions>);
  module.def("export_to", &run_export, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  module.def("import_from", &run_import, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(),
             nb::arg().none());
}

}  // namespace fjord::python
