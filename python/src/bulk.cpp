// Writes to all documents that a selection matches.
#include "fjord/library/bulk.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "client_handle.h"
#include "errors.h"
#include "options.h"
#include "summary.h"
#include "values.h"

namespace fjord::python {

namespace {

nb::dict to_dict(const BulkSummary& summary) {
  nb::dict result;
  result["has_more"] = summary.has_more;
  result["matched"] = summary.matched;
  result["applied"] = summary.applied;
  result["skipped"] = summary.skipped;
  result["in_doubt"] = summary.in_doubt;
  result["failed"] = summary.failed_total();
  result["failed_by_code"] = counts_to_dict(summary.failed);
  result["seconds"] = summary.seconds;
  result["cursor"] = to_str(summary.cursor);
  return result;
}

/// The functions of the program. They are called on its thread, with the interpreter lock; None: not.
struct BulkCallbacks {
  nb::handle on_progress;
  nb::handle on_cursor;
  nb::handle on_failure;
};

void add_callbacks(BulkOptions& options, const BulkCallbacks& callbacks, const std::shared_ptr<Mailbox>& mailbox) {
  if (!callbacks.on_progress.is_none()) {
    options.on_progress = [mailbox, f = callbacks.on_progress](const BulkProgress& progress) {
      mailbox->post([f, progress] { f(fraction_or_none(progress.fraction_done), progress.written); });
    };
  }
  if (!callbacks.on_cursor.is_none()) {
    options.on_cursor = [mailbox, f = callbacks.on_cursor](const std::string& cursor) {
      const bool has_run = mailbox->call([f, cursor] { f(to_str(cursor)); });
      return has_run ? Status::ok() : Status(StatusCode::Cancelled, "the cursor was not stored");
    };
  }
  if (!callbacks.on_failure.is_none()) {
    options.on_failure = [mailbox, f = callbacks.on_failure](const std::string& id, const Status& error) {
      mailbox->post([f, id, error] { f(to_str(id), to_exception(error)); });
    };
  }
}

/// `changes` is None for removes.
nb::dict run_bulk(ClientHandle& handle, std::string selection, nb::handle changes, BulkOptions options,
                  nb::handle on_progress, nb::handle on_cursor, nb::handle on_failure) {
  const std::shared_ptr<Client> client = handle.use_connected();
  std::optional<std::string> json;
  if (!changes.is_none()) json = to_json(changes.ptr());
  const auto mailbox = std::make_shared<Mailbox>();
  add_callbacks(options, {on_progress, on_cursor, on_failure}, mailbox);
  std::stop_source stop;
  options.stop = stop.get_token();
  const BulkSummary summary = handle.run(
      [client, selection, json, options] {
        return json ? client->update_where(selection, *json, options) : client->remove_where(selection, options);
      },
      {&stop, mailbox});
  check(summary.status);
  return to_dict(summary);
}

void set_time_limit(BulkOptions& options, double seconds) { options.time_limit = to_duration(seconds, "time_limit"); }

}  // namespace

nb::dict counts_to_dict(const std::map<StatusCode, std::uint64_t>& counts) {
  nb::dict result;
  for (const auto& [code, count] : counts) result[to_str(to_string(code))] = count;
  return result;
}

nb::object fraction_or_none(double fraction) { return fraction < 0 ? nb::none() : nb::object(nb::float_(fraction)); }

void bind_bulk(nb::module_& module) {
  nb::class_<BulkOptions>(module, "BulkOptions")
      .def(nb::init<>())
      .def_rw("type", &BulkOptions::type)
      .def_rw("all_types", &BulkOptions::all_types)
      .def_rw("dry_run", &BulkOptions::dry_run)
      .def_rw("resume", &BulkOptions::resume)
      .def_rw("in_flight", &BulkOptions::in_flight)
      .def_prop_rw("slice", &get_slice<BulkOptions>, &set_slice<BulkOptions>)
      .def_prop_rw("timeout", &get_nothing<BulkOptions>, &set_timeout<BulkOptions>)
      .def_prop_rw("time_limit", &get_nothing<BulkOptions>, &set_time_limit);
  module.def("bulk", &run_bulk, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none(), nb::arg().none(),
             nb::arg().none());
}

}  // namespace fjord::python
