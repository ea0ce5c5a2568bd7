// Visits, imports and schemas as the Arrow C stream interface.
#include "fjord/library/arrow.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "arrow_capsule.h"
#include "arrow_visit_state.h"
#include "bindings.h"
#include "client_handle.h"
#include "errors.h"
#include "options.h"
#include "record.h"
#include "summary.h"
#include "values.h"

namespace fjord::python {

namespace {

constexpr const char* kStreamName = "arrow_array_stream";
constexpr const char* kSchemaName = "arrow_schema";

template <typename T>
void delete_interface(PyObject* capsule, const char* name) {
  auto* interface = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
  if (interface == nullptr) return PyErr_WriteUnraisable(capsule);
  if (interface->release != nullptr) {
    const Unlocked unlocked;
    interface->release(interface);
  }
  delete interface;
}

void delete_stream(PyObject* capsule) { delete_interface<ArrowArrayStream>(capsule, kStreamName); }
void delete_schema(PyObject* capsule) { delete_interface<ArrowSchema>(capsule, kSchemaName); }

/// Calls `object`.`method`() and takes the interface out of the capsule that it returns. Raises WrongType for an object
/// without the method.
template <typename T>
T take_interface(nb::handle object, const char* method, const char* name, const char* argument, const char* expected) {
  if (!nb::hasattr(object, method)) raise_wrong_type(argument, expected, object);
  const nb::object capsule = run_python([&]() -> nb::object { return object.attr(method)(); });
  auto* interface = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (interface == nullptr) throw nb::python_error();
  T taken = *interface;
  interface->release = nullptr;
  return taken;
}

/// The class _core.ArrowVisit. Threading: the interpreter lock; its stream is read without it. Lifetime: `handle`
/// outlives it (nb::keep_alive).
class ArrowVisitObject {
 public:
  ArrowVisitObject(ClientHandle& handle, std::shared_ptr<ArrowVisit> visit)
      : handle_(handle), state_(std::make_shared<ArrowVisitState>(std::move(visit))) {
    handle.stop_with_client(state_);
  }
  ArrowVisitObject(const ArrowVisitObject&) = delete;
  ArrowVisitObject& operator=(const ArrowVisitObject&) = delete;
  ~ArrowVisitObject() {
    const Unlocked unlocked;
    state_.reset();
  }

  static std::unique_ptr<ArrowVisitObject> open(ClientHandle& handle, const VisitOptions& visit,
                                                const ArrowVisitOptions& options) {
    const std::shared_ptr<Client> client = handle.use_connected();
    auto opened = handle.run([client, visit, options] { return ArrowVisit::open(client, visit, options); });
    return std::make_unique<ArrowVisitObject>(handle, value_of(std::move(opened)));
  }

  nb::object stream() const {
    auto stream = std::make_unique<ArrowArrayStream>();
    check(ArrowVisitState::export_to(state_, stream.get()));
    return to_capsule(std::move(stream));
  }
  nb::object schema() const {
    auto schema = std::make_unique<ArrowSchema>();
    visit().schema(schema.get());
    return to_capsule(std::move(schema));
  }
  void stop() const { state_->stop(); }
  std::string cursor() const { return visit().cursor(); }
  nb::object fraction_done() const { return fraction_or_none(visit().statistics().fraction_done()); }
  nb::dict statistics() const { return statistics_to_dict(visit().statistics()); }
  void check_end() const { state_->check_end(handle_); }

 private:
  /// Raises ForkedProcess in a process that was forked later.
  ArrowVisit& visit() const {
    if (!state_->is_own_process()) state_->check_end(handle_);
    return state_->visit();
  }

  ClientHandle& handle_;
  std::shared_ptr<ArrowVisitState> state_;
};

void add_callbacks(ArrowImportOptions& options, const std::shared_ptr<Mailbox>& mailbox, nb::handle on_failure,
                   nb::handle on_warning) {
  if (!on_failure.is_none()) {
    options.on_failure = [mailbox, on_failure](const ArrowRowFailure& failure) {
      mailbox->post([on_failure, failure] {
        on_failure(failure.row, to_exception(failure.status, {.is_in_doubt = failure.in_doubt}));
      });
    };
  }
  if (!on_warning.is_none()) {
    options.on_warning = [mailbox, on_warning](const std::string& warning) {
      mailbox->post([on_warning, warning] { on_warning(to_str(warning)); });
    };
  }
}

nb::dict run_import(ClientHandle& handle, nb::handle table, ArrowImportOptions options, nb::handle on_failure,
                    nb::handle on_warning) {
  const std::shared_ptr<Client> client = handle.use_connected();
  auto stream =
      take_interface<ArrowArrayStream>(table, "__arrow_c_stream__", kStreamName, "table",
                                       "a table, a stream of batches or another object with __arrow_c_stream__");
  const auto mailbox = std::make_shared<Mailbox>();
  add_callbacks(options, mailbox, on_failure, on_warning);
  std::stop_source stop;
  options.stop = stop.get_token();
  const ImportSummary summary = handle.run(
      [client, stream, options]() mutable { return import_arrow(*client, &stream, options); }, {&stop, mailbox});
  check(summary.status);
  return import_to_dict(summary);
}

/// Returns the schema of a schema, a table, a data frame or a stream of batches.
ArrowSchema schema_of(nb::handle columns) {
  constexpr const char* kExpected = "a schema, a table or a data frame, with __arrow_c_schema__ or __arrow_c_stream__";
  if (nb::hasattr(columns, "__arrow_c_schema__")) {
    return take_interface<ArrowSchema>(columns, "__arrow_c_schema__", kSchemaName, "columns", kExpected);
  }
  ArrowArrayStream stream =
      take_interface<ArrowArrayStream>(columns, "__arrow_c_stream__", kStreamName, "columns", kExpected);
  ArrowSchema schema{};
  const int code = stream.get_schema(&stream, &schema);
  stream.release(&stream);
  if (code != 0) raise(Status(StatusCode::IoError, "the table gives no schema"));
  return schema;
}

nb::object sd_of_schema(nb::handle columns, nb::handle type) {
  const std::string name(view_of(type.ptr(), "type"));
  ArrowSchema taken = schema_of(columns);
  const auto fit = sd_of_arrow_schema(taken, name);
  taken.release(&taken);
  const ArrowSchemaFit found = value_of(fit);
  return nb::make_tuple(to_str(found.sd), Record::convert(found.problems));
}

nb::object schema_of_sd(const std::vector<std::string>& schemas, const std::string& type) {
  const auto types = value_of(DocumentTypeRepo::build(schemas));
  const DocumentType* found = types->find(type);
  if (found == nullptr) raise(Status(StatusCode::UnknownType, "the schemas declare no document type \"" + type + "\""));
  auto schema = std::make_unique<ArrowSchema>();
  arrow_schema_of(*found, schema.get());
  return to_capsule(std::move(schema));
}

}  // namespace

nb::object to_capsule(std::unique_ptr<ArrowArrayStream> stream) {
  return nb::steal(PyCapsule_New(stream.release(), kStreamName, delete_stream));
}
nb::object to_capsule(std::unique_ptr<ArrowSchema> schema) {
  return nb::steal(PyCapsule_New(schema.release(), kSchemaName, delete_schema));
}

void bind_arrow(nb::module_& module) {
  nb::class_<ArrowVisitOptions>(module, "ArrowVisitOptions")
      .def(nb::init<>())
      .def_rw("batch_rows", &ArrowVisitOptions::batch_rows)
      .def_rw("batch_bytes", &ArrowVisitOptions::batch_bytes)
      .def_rw("version", &ArrowVisitOptions::version);
  nb::class_<ArrowImportOptions>(module, "ArrowImportOptions")
      .def(nb::init<>())
      .def_rw("type", &ArrowImportOptions::type)
      .def_rw("id_column", &ArrowImportOptions::id_column)
      .def_rw("id_namespace", &ArrowImportOptions::id_namespace)
      .def_rw("create_only", &ArrowImportOptions::create_only)
      .def_rw("in_flight", &ArrowImportOptions::in_flight)
      .def_prop_rw("timeout", &get_nothing<ArrowImportOptions>, &set_timeout<ArrowImportOptions>)
      .def_prop_rw("priority", &get_nothing<ArrowImportOptions>, &set_priority<ArrowImportOptions>);
  nb::class_<ArrowVisitObject>(module, "ArrowVisit")
      .def("stream", &ArrowVisitObject::stream)
      .def("schema", &ArrowVisitObject::schema)
      .def("stop", &ArrowVisitObject::stop)
      .def("check_end", &ArrowVisitObject::check_end)
      .def_prop_ro("cursor", &ArrowVisitObject::cursor)
      .def_prop_ro("fraction_done", &ArrowVisitObject::fraction_done)
      .def_prop_ro("statistics", &ArrowVisitObject::statistics);
  module.def("visit_arrow", &ArrowVisitObject::open, nb::keep_alive<0, 1>());
  module.def("import_arrow", &run_import, nb::arg(), nb::arg().none(), nb::arg(), nb::arg().none(), nb::arg().none());
  module.def("sd_of_arrow_schema", &sd_of_schema, nb::arg().none(), nb::arg().none());
  module.def("arrow_schema_of_sd", &schema_of_sd);
}

}  // namespace fjord::python
