// Single documents.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "bindings.h"
#include "client_handle.h"
#include "completions.h"
#include "errors.h"
#include "fjord/client/operations.h"
#include "fjord/document/json.h"
#include "fjord/library/detail/client_core.h"
#include "options.h"
#include "start_get.h"
#include "values.h"

namespace fjord::python {

namespace {

constexpr std::size_t kGetsAtOnce = 2048;

/// Waits for the result of an operation, or returns a future for it if the caller has an event loop.
template <typename T, typename Convert>
nb::object finish(ClientHandle& handle, Completions* completions, Pending<T> pending, Convert convert) {
  if (completions != nullptr) return completions->future_of(std::move(pending), std::move(convert));
  return convert(handle.wait(std::move(pending)));
}

std::string text_argument(nb::handle value, std::string_view name) { return std::string(view_of(value.ptr(), name)); }

// --- Reading

ReadOptions read_options(nb::handle fields, nb::handle consistency, nb::handle priority, nb::handle timeout) {
  ReadOptions options;
  options.fields = text_argument(fields, "fields");
  options.consistency = to_consistency(view_of(consistency.ptr(), "consistency"));
  options.priority = to_priority(view_of(priority.ptr(), "priority"));
  options.timeout = duration_argument(timeout);
  return options;
}

nb::object get(ClientHandle& handle, nb::handle id, nb::handle fields, nb::handle consistency, nb::handle priority,
               nb::handle timeout, Completions* completions) {
  const std::shared_ptr<Client> client = handle.use();
  return finish(handle, completions,
                start_get(*client, text_argument(id, "id"), read_options(fields, consistency, priority, timeout)),
                [](const GetAnswer& answer) { return to_python(answer); });
}

/// Returns the documents in the order of their ids; None for one that is not there.
nb::list get_many(ClientHandle& handle, nb::handle ids, nb::handle fields, nb::handle consistency, nb::handle priority,
                  nb::handle timeout) {
  const std::shared_ptr<Client> client = handle.use();
  const ReadOptions options = read_options(fields, consistency, priority, timeout);
  nb::list documents;
  std::vector<Pending<GetAnswer>> started;
  const auto collect = [&] {
    for (auto& one : started) {
      const GetAnswer answer = handle.wait(std::move(one));
      documents.append(answer.status.code() == StatusCode::NotFound ? nb::none() : to_python(answer));
    }
    started.clear();
  };
  for_each(iterable_argument(ids, "ids", "an iterable of str"), [&](nb::handle id) {
    started.push_back(start_get(*client, text_argument(id, "id"), options));
    if (started.size() == kGetsAtOnce) collect();
  });
  collect();
  return documents;
}

// --- Writing

/// The arguments of put, update and remove that a write may have.
struct WriteArguments {
  nb::handle condition;
  nb::handle required_version;
  nb::handle create;
  nb::handle durability;
  nb::handle priority;
  nb::handle idempotency_key;
  nb::handle timeout;
};

bool flag_argument(nb::handle value, std::string_view name) {
  if (!PyBool_Check(value.ptr())) raise_wrong_type(name, "bool", value);
  return value.ptr() == Py_True;
}

std::optional<Timestamp> version_argument(nb::handle value) {
  if (value.is_none()) return std::nullopt;
  unsigned long long version = 0;
  if (PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr()))
    version = PyLong_AsUnsignedLongLong(value.ptr());
  else
    raise_wrong_type("required_version", "int", value);
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    raise_wrong_type("required_version", "int from 0 to 2**64 - 1", value);
  }
  return Timestamp{version};
}

WriteOptions write_options(const WriteArguments& arguments) {
  WriteOptions options;
  options.condition = text_argument(arguments.condition, "condition");
  options.required_version = version_argument(arguments.required_version);
  options.create = flag_argument(arguments.create, "create");
  options.durability = to_durability(view_of(arguments.durability.ptr(), "durability"));
  options.priority = to_priority(view_of(arguments.priority.ptr(), "priority"));
  const nb::object key =
      nb::steal(PyUnicode_AsEncodedString(arguments.idempotency_key.ptr(), "utf-8", "surrogateescape"));
  if (!key.is_valid()) {
    PyErr_Clear();
    raise_wrong_type("idempotency_key", "str", arguments.idempotency_key);
  }
  options.idempotency_key.assign(PyBytes_AS_STRING(key.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(key.ptr())));
  options.timeout = duration_argument(arguments.timeout);
  return options;
}

nb::object to_written(const WriteResult& result) {
  if (!result) raise_object(to_exception(result));
  static PyObject* const written = nb::object(nb::module_::import_("fjord.documents").attr("Written")).release().ptr();
  return run_python([&] { return nb::handle(written)(result.version.us, result.existed); });
}

nb::object finish_write(ClientHandle& handle, Completions* completions, Pending<WriteResult> pending) {
  return finish(handle, completions, std::move(pending), [](const WriteResult& result) { return to_written(result); });
}

/// Returns document types that have the type of `id`. Raises UnknownType; with an event loop also if the client has not
/// got the type yet, as the loop must not wait.
std::shared_ptr<const DocumentTypeRepo> types_for(ClientHandle& handle, const DocumentId& id, bool may_wait) {
  const std::shared_ptr<Client> client = handle.use();
  std::string type(id.type());
  if (handle.is_connected()) {
    std::shared_ptr<const DocumentTypeRepo> types = client->core().types();
    if (types->find(type) != nullptr) return types;
  }
  if (!may_wait) raise(Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"", type)));
  return value_of(handle.run([client, type] { return client->core().types_with(type); }));
}

nb::object put(ClientHandle& handle, nb::handle id, nb::handle fields, const WriteArguments& arguments,
               Completions* completions) {
  const std::shared_ptr<Client> client = handle.use();
  const WriteOptions options = write_options(arguments);
  DocumentId parsed = value_of(DocumentId::parse(view_of(id.ptr(), "id")));
  const auto types = types_for(handle, parsed, completions == nullptr);
  const DocumentType& type = *types->find(parsed.type());
  const Document document = to_document(type, std::move(parsed), fields.ptr());
  return finish_write(handle, completions, client->put(document, options));
}

nb::object update(ClientHandle& handle, nb::handle id, nb::handle changes, const WriteArguments& arguments,
                  Completions* completions) {
  const std::shared_ptr<Client> client = handle.use();
  const WriteOptions options = write_options(arguments);
  std::string json = to_json(changes.ptr());
  return finish_write(handle, completions, client->update_json(text_argument(id, "id"), std::move(json), options));
}

nb::object remove(ClientHandle& handle, nb::handle id, const WriteArguments& arguments, Completions* completions) {
  const std::shared_ptr<Client> client = handle.use();
  return finish_write(handle, completions, client->remove(text_argument(id, "id"), write_options(arguments)));
}

// --- The client

ClientHandle* new_client(std::string addresses, double timeout, std::string_view priority, std::string_view consistency,
                         const RetryPolicy& retry) {
  ClientSettings settings;
  settings.retry = retry;
  settings.timeout = to_duration(timeout);
  settings.priority = to_priority(priority);
  settings.consistency = to_consistency(consistency);
  return new ClientHandle(std::move(addresses), settings);
}

/// Returns the fields of each document type: {"music": {"title": "string"}}.
nb::dict types(ClientHandle& handle) {
  const std::shared_ptr<Client> client = handle.use_connected();
  check(handle.run([client] { return client->core().refresh(); }));
  nb::dict all;
  const auto known = client->core().types();
  for (const auto& type : known->types()) {
    nb::dict fields;
    for (const Field& field : type->fields()) fields[to_str(field.name)] = to_str(field.type->name());
    all[to_str(type->name())] = fields;
  }
  return all;
}

void bind_writes(nb::class_<ClientHandle>& client) {
  const nb::arg none = nb::arg().none();  // The functions say themselves what they expect.
  client.def(
      "put",
      [](ClientHandle& self, nb::handle id, nb::handle fields, nb::handle condition, nb::handle version,
         nb::handle create, nb::handle durability, nb::handle priority, nb::handle key, nb::handle timeout,
         Completions* completions) {
        return put(self, id, fields, {condition, version, create, durability, priority, key, timeout}, completions);
      },
      none, none, none, none, none, none, none, none, none, none);
  client.def(
      "update",
      [](ClientHandle& self, nb::handle id, nb::handle changes, nb::handle condition, nb::handle version,
         nb::handle create, nb::handle durability, nb::handle priority, nb::handle key, nb::handle timeout,
         Completions* completions) {
        return update(self, id, changes, {condition, version, create, durability, priority, key, timeout}, completions);
      },
      none, none, none, none, none, none, none, none, none, none);
  client.def(
      "remove",
      [](ClientHandle& self, nb::handle id, nb::handle condition, nb::handle version, nb::handle durability,
         nb::handle priority, nb::handle key, nb::handle timeout, Completions* completions) {
        return remove(self, id, {condition, version, nb::handle(Py_False), durability, priority, key, timeout},
                      completions);
      },
      none, none, none, none, none, none, none, none);
}

}  // namespace

void bind_client(nb::module_& module) {
  nb::class_<Completions>(module, "Completions")
      .def(nb::init<nb::object>())
      .def("fileno", &Completions::fd)
      .def("drain", &Completions::drain);
  nb::class_<RetryPolicy>(module, "RetryPolicy")
      .def(nb::init<>())
      .def_prop_rw("attempt_timeout", &get_nothing<RetryPolicy>,
                   [](RetryPolicy& self, double seconds) {
                     self.attempt_timeout = to_duration(seconds, "retry.attempt_timeout");
                   })
      .def_prop_rw(
          "backoff_min", &get_nothing<RetryPolicy>,
          [](RetryPolicy& self, double seconds) { self.backoff_min = to_duration(seconds, "retry.backoff_min"); })
      .def_prop_rw(
          "backoff_max", &get_nothing<RetryPolicy>,
          [](RetryPolicy& self, double seconds) { self.backoff_max = to_duration(seconds, "retry.backoff_max"); })
      .def_rw("budget_percent", &RetryPolicy::budget_percent)
      .def_rw("budget_per_second", &RetryPolicy::budget_per_second)
      .def_rw("budget_burst", &RetryPolicy::budget_burst);
  nb::class_<StopRequest>(module, "Stop")
      .def(nb::init<>())
      .def("stop", &StopRequest::stop)
      .def("run", [](StopRequest& self, nb::handle call) {
        const StopRequest::Scope scope(self);
        return run_python([&]() -> nb::object { return call(); });
      });
  const nb::arg none = nb::arg().none();
  nb::class_<ClientHandle> client(module, "Client");
  client.def(nb::new_(&new_client))
      .def("ping", [](ClientHandle& self) { self.use_connected(); })
      .def("load_types",
           [](ClientHandle& self, nb::handle id) {
             types_for(self, value_of(DocumentId::parse(view_of(id.ptr(), "id"))), true);
           })
      .def("types", &types)
      .def("close", &ClientHandle::close)
      .def_prop_ro("is_closed", &ClientHandle::is_closed)
      .def_prop_ro("is_connected", &ClientHandle::is_connected)
      .def_prop_ro("addresses", &ClientHandle::addresses)
      .def_prop_ro("state_version", &ClientHandle::state_version)
      .def("get", &get, none, none, none, none, none, none)
      .def("get_many", &get_many, none, none, none, none, none);
  bind_writes(client);
  module.def("_close_all", &ClientHandle::close_all);
}

}  // namespace fjord::python
