#include "errors.h"

#include <string>

#include "gil.h"

namespace fjord::python {

namespace {

nb::object text_or_none(const std::string& text) {
  if (text.empty()) return nb::none();
  return nb::str(text.c_str(), text.size());
}

/// A key of idempotency may have any bytes, also such as are no UTF-8.
nb::object key_or_none(const std::string& key) {
  if (key.empty()) return nb::none();
  return nb::steal(PyUnicode_DecodeUTF8(key.data(), static_cast<Py_ssize_t>(key.size()), "surrogateescape"));
}

}  // namespace

nb::object to_exception(const Status& status, const ErrorContext& context) {
  const std::string_view code = to_string(status.code());
  nb::object version = nb::none();
  if (context.current_version) version = nb::int_(*context.current_version);
  const std::string& message = status.message();
  return run_python([&]() -> nb::object {
    return nb::module_::import_("fjord.errors")
        .attr("_make")(
            nb::str(code.data(), code.size()),
            nb::steal(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace")),
            text_or_none(status.node()), text_or_none(status.limit()), text_or_none(status.setting()),
            key_or_none(status.idempotency_key()), context.is_in_doubt, version);
  });
}

nb::object to_exception(const WriteResult& result) {
  ErrorContext context;
  context.is_in_doubt = result.outcome == WriteOutcome::InDoubt;
  if (result.status.code() == StatusCode::TestAndSetFailed) context.current_version = result.current_version.us;
  return to_exception(result.status, context);
}

void raise_object(const nb::object& exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

void raise(const Status& status, const ErrorContext& context) { raise_object(to_exception(status, context)); }

void check(const Status& status) {
  if (!status) raise(status);
}

nb::object iterable_argument(nb::handle value, std::string_view name, std::string_view expected) {
  // The letters of a text are not meant.
  const bool is_text = PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr());
  if (is_text || (Py_TYPE(value.ptr())->tp_iter == nullptr && PySequence_Check(value.ptr()) == 0)) {
    raise_wrong_type(name, expected, value);
  }
  nb::object iterator = run_python([&] { return nb::steal(PyObject_GetIter(value.ptr())); });
  if (!iterator.is_valid()) throw nb::python_error();
  return iterator;
}

void raise_wrong_type(std::string_view field, std::string_view expected, nb::handle got) {
  raise_object(run_python([&]() -> nb::object {
    return nb::module_::import_("fjord.errors")
        .attr("_make_wrong_type")(nb::str(field.data(), field.size()), nb::str(expected.data(), expected.size()), got);
  }));
}

}  // namespace fjord::python
