// Visits: documents that a selection matches.
#include "fjord/library/visit.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "options.h"
#include "stream.h"
#include "summary.h"
#include "visit_object.h"

namespace fjord::python {

VisitObject::VisitObject(ClientHandle& handle, std::shared_ptr<Client> client, std::unique_ptr<Visit> visit,
                         std::vector<std::string> only)
    : stream_(handle, std::move(client), std::move(visit)), only_(std::move(only)) {}

std::unique_ptr<VisitObject> VisitObject::open(ClientHandle& handle, const VisitOptions& options) {
  const std::shared_ptr<Client> client = handle.use_connected();
  // shared_ptr: the result of a call that is not waited for any more is destroyed with the call.
  auto visit = handle.run([client, options] { return std::make_unique<Visit>(client->visit(options)); });
  check(visit->status());
  // The storage nodes choose the fields of a type. Without one, they send the fields of all types that have one of
  // these.
  return std::make_unique<VisitObject>(handle, client, std::move(visit),
                                       options.type.empty() ? options.fields : std::vector<std::string>());
}

nb::object VisitObject::to_object(const EntryView& entry) {
  if (!entry.removed) return stream_.to_document(entry, only_);
  return run_python([&]() -> nb::object {
    return nb::module_::import_("fjord.documents").attr("Removed")(to_str(entry.id), entry.timestamp.us);
  });
}

nb::object VisitObject::try_next() {
  const Stream<Visit>::Use use(stream_);
  if (stream_.is_over()) return nb::none();
  while (const auto entry = stream_.source().try_next_entry()) {
    if (!entry->removed && entry->header.empty()) continue;
    return to_object(*entry);
  }
  return nb::none();
}

nb::object VisitObject::next() {
  while (true) {
    nb::object object = try_next();
    if (!object.is_none()) return object;
    const Stream<Visit>::Use use(stream_);
    if (stream_.is_over()) {
      stream_.check_end();
      throw nb::stop_iteration();
    }
    stream_.wait();
  }
}

namespace {

std::optional<double> fraction_done(VisitObject& visit) {
  const double fraction = visit.stream().source().statistics().fraction_done();
  return fraction < 0 ? std::nullopt : std::optional<double>(fraction);
}

void bind_options(nb::module_& module) {
  nb::class_<VisitOptions>(module, "VisitOptions")
      .def(nb::init<>())
      .def_rw("selection", &VisitOptions::selection)
      .def_rw("type", &VisitOptions::type)
      .def_rw("fields", &VisitOptions::fields)
      .def_rw("ids_only", &VisitOptions::ids_only)
      .def_rw("include_removed", &VisitOptions::include_removed)
      .def_rw("snapshot", &VisitOptions::snapshot)
      .def_rw("slices", &VisitOptions::slices)
      .def_rw("resume", &VisitOptions::resume)
      .def_rw("buffer_bytes", &VisitOptions::buffer_bytes)
      .def_rw("visitors_per_node", &VisitOptions::visitors_per_node)
      .def_rw("buckets_per_visitor", &VisitOptions::buckets_per_visitor)
      .def_rw("buckets_at_once", &VisitOptions::buckets_at_once)
      .def_rw("visitor", &VisitOptions::visitor)
      .def_rw("parameters", &VisitOptions::parameters)
      .def_prop_rw("slice", &get_slice<VisitOptions>, &set_slice<VisitOptions>)
      .def_prop_rw("since", &get_from<VisitOptions>, &set_from<VisitOptions>)
      .def_prop_rw("until", &get_to<VisitOptions>, &set_to<VisitOptions>)
      .def_prop_rw("priority", &get_nothing<VisitOptions>, &set_priority<VisitOptions>)
      .def_prop_rw("no_progress_limit", &get_nothing<VisitOptions>, &set_no_progress_limit<VisitOptions>);
}

}  // namespace

nb::dict statistics_to_dict(const VisitStatistics& statistics) {
  nb::dict result;
  result["buckets_total"] = statistics.buckets_total;
  result["buckets_done"] = statistics.buckets_done;
  result["buckets_done_before"] = statistics.buckets_skipped_as_done;
  result["buckets_repeated"] = statistics.buckets_repeated;
  result["documents_read"] = statistics.documents_read;
  result["documents_matched"] = statistics.documents_matched;
  result["bytes"] = statistics.bytes;
  return result;
}

void bind_visit(nb::module_& module) {
  bind_options(module);
  nb::class_<VisitObject>(module, "Visit")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &VisitObject::next)
      .def("try_next", &VisitObject::try_next)
      .def_prop_ro("is_over", [](VisitObject& self) { return self.stream().is_over(); })
      .def("check_end", [](VisitObject& self) { self.stream().check_end(); })
      .def("ready", [](VisitObject& self, Completions& completions) { return self.stream().ready(completions); })
      .def("stop", [](VisitObject& self) { self.stream().stop(); })
      .def_prop_ro("cursor", [](VisitObject& self) { return self.stream().source().cursor(); })
      .def_prop_ro("bucket_cursor", [](VisitObject& self) { return self.stream().source().bucket_cursor(); })
      .def_prop_ro("fraction_done", &fraction_done)
      .def_prop_ro("statistics",
                   [](VisitObject& self) { return statistics_to_dict(self.stream().source().statistics()); });
  module.def("visit", &VisitObject::open, nb::keep_alive<0, 1>());
}

}  // namespace fjord::python
