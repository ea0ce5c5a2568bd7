// Aggregations.
#include "fjord/library/aggregate.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrow_capsule.h"
#include "bindings.h"
#include "client_handle.h"
#include "errors.h"
#include "fjord/library/arrow.h"
#include "fjord/library/detail/aggregate_run.h"
#include "job_records.h"
#include "options.h"
#include "record.h"

namespace fjord::python {

namespace {

nb::list rows_of(const AggregateResult& result) {
  nb::list rows;
  for (const auto& row : result.rows) {
    nb::list cells;
    for (const Cell& cell : row) cells.append(to_python(cell));
    rows.append(nb::tuple(cells));
  }
  return rows;
}

nb::object stream_of(const AggregateResult& result) {
  auto stream = std::make_unique<ArrowArrayStream>();
  aggregate_to_arrow(result, stream.get());
  return to_capsule(std::move(stream));
}

AggregateResult run(ClientHandle& handle, AggregateRequest request, nb::handle on_progress) {
  const std::shared_ptr<Client> client = handle.use_connected();
  const auto mailbox = std::make_shared<Mailbox>();
  std::stop_source stop;
  request.on_progress = progress_to(mailbox, on_progress);
  request.stop = stop.get_token();
  AggregateResult result =
      handle.run([client, request] { return run_aggregate(client->core(), request); }, {&stop, mailbox});
  check(result.status);
  return result;
}

/// Returns the rows of a job of aggregations as those of an aggregation. `passes` is the JSON of
/// mapreduce::AggregateJob, `rows` are the keys and texts of the results.
AggregateResult result_of_job(ClientHandle& handle, const std::string& passes,
                              std::vector<mapreduce::KeyedResult> rows) {
  const std::shared_ptr<Client> client = handle.use_connected();
  mapreduce::AggregateJob job = value_of(mapreduce::AggregateJob::from_json(passes));
  const auto plans = value_of(job.compile(client->core().types()));
  check(plans.back()->arrange(rows));
  AggregateResult result;
  set_columns(*plans.back(), result);
  result.rows = value_of(cells_of(*plans.back(), rows));
  return result;
}

}  // namespace

void bind_aggregate(nb::module_& module) {
  nb::class_<AggregateRequest>(module, "AggregateRequest")
      .def(nb::init<>())
      .def_rw("type", &AggregateRequest::type)
      .def_rw("selection", &AggregateRequest::selection)
      .def_rw("group_by", &AggregateRequest::group_by)
      .def_rw("aggregates", &AggregateRequest::aggregates)
      .def_rw("having", &AggregateRequest::having)
      .def_rw("order_by", &AggregateRequest::order_by)
      .def_rw("limit", &AggregateRequest::limit)
      .def_rw("into", &AggregateRequest::into)
      .def_rw("into_namespace", &AggregateRequest::into_namespace)
      .def_rw("name", &AggregateRequest::name)
      .def_rw("incremental", &AggregateRequest::incremental)
      .def_rw("settings", &AggregateRequest::settings)
      .def_prop_rw("timeout", &get_nothing<AggregateRequest>, &set_timeout<AggregateRequest>);
  nb::class_<AggregateResult>(module, "AggregateResult")
      .def_ro("columns", &AggregateResult::columns)
      .def("rows", &rows_of)
      .def("stream", &stream_of)
      .def_ro("job_id", &AggregateResult::job_id)
      .def_ro("documents_read", &AggregateResult::documents_read)
      .def_ro("documents_put", &AggregateResult::documents_put)
      .def_ro("documents_removed", &AggregateResult::documents_removed)
      .def_ro("dead_letters", &AggregateResult::dead_letters);
  module.def("result_of_job", &result_of_job);
  module.def("aggregate", &run, nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace fjord::python
