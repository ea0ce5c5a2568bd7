// What a program gets: values of Python from the bytes of documents, and JSON from values of Python.
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <unordered_map>

#include "bindings.h"
#include "errors.h"
#include "fjord/document/json.h"
#include "fjord/document/validate_fields.h"
#include "gil.h"
#include "values.h"

namespace fjord::python {

namespace {

/// Objects that are made once and used for every document. They stay until the process ends.
struct Names {
  PyObject* document = nullptr;  ///< The class fjord.Document.
  PyObject* id = nullptr;
  PyObject* version = nullptr;
  std::unordered_map<std::string, PyObject*> fields;
};

Names& names() {
  static Names all;
  if (all.document == nullptr) {
    all.id = PyUnicode_InternFromString("id");
    all.version = PyUnicode_InternFromString("version");
    all.document = nb::object(nb::module_::import_("fjord.documents").attr("Document")).release().ptr();
  }
  return all;
}

nb::object made(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

PyObject* name_object(const std::string& name) {
  PyObject*& object = names().fields[name];
  if (object == nullptr) object = PyUnicode_InternFromString(name.c_str());
  if (object == nullptr) throw nb::python_error();
  return object;
}

[[noreturn]] void raise_corrupt(std::string_view what) {
  raise(Status(StatusCode::Corruption, fmt::format("a value of a document is malformed: {}", what)));
}

void put(const nb::object& dict, PyObject* key, const nb::object& value) {
  if (PyDict_SetItem(dict.ptr(), key, value.ptr()) != 0) throw nb::python_error();
}

nb::object to_list(const FieldSlice& slice, const DataType& type) {
  nb::object list = made(PyList_New(0));
  ElementCursor at(slice);
  while (at.next()) {
    const nb::object element = to_python(at.value(), *type.element());
    if (PyList_Append(list.ptr(), element.ptr()) != 0) throw nb::python_error();
  }
  if (!at.ok()) raise_corrupt(type.name());
  return list;
}

nb::object to_dict(const FieldSlice& slice, const DataType& type) {
  nb::object dict = made(PyDict_New());
  const bool is_map = type.tag() == TypeTag::Map;
  ElementCursor at(slice);
  while (at.next()) {
    const nb::object key = to_python(at.key(), is_map ? *type.key() : *type.element());
    put(dict, key.ptr(),
        is_map ? to_python(at.value(), *type.element()) : made(PyLong_FromLongLong(at.value().as_int64())));
  }
  if (!at.ok()) raise_corrupt(type.name());
  return dict;
}

nb::object to_members(const FieldSlice& slice, const DataType& type) {
  nb::object dict = made(PyDict_New());
  FieldCursor at(slice.bytes);
  while (at.next()) {
    const Field* const field = type.field_by_id(at.field_id());
    if (field == nullptr || !is_value_of(*field->type, at.slice())) continue;
    put(dict, name_object(field->name), to_python(at.slice(), *field->type));
  }
  if (!at.ok()) raise_corrupt(type.name());
  return dict;
}

void put_fields(const nb::object& document, const DocumentType& type, std::string_view fields,
                std::span<const std::string> only) {
  FieldCursor at(fields);
  while (at.next()) {
    const Field* const field = type.field_by_id(at.field_id());
    if (field == nullptr || !is_value_of(*field->type, at.slice())) continue;
    if (!only.empty() && std::find(only.begin(), only.end(), field->name) == only.end()) continue;
    put(document, name_object(field->name), to_python(at.slice(), *field->type));
  }
  if (!at.ok()) raise_corrupt(type.name());
}

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

void write_text(JsonWriter& out, std::string_view text) {
  out.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

/// Writes numbers that JSON has no form for as the texts that stand for them (document/FEED.md).
void write_floating(JsonWriter& out, double number) {
  if (std::isnan(number)) return write_text(out, "NaN");
  if (std::isinf(number)) return write_text(out, number > 0 ? "Infinity" : "-Infinity");
  out.Double(number);
}

void write_number(JsonWriter& out, PyObject* value) {
  if (PyFloat_Check(value)) return write_floating(out, PyFloat_AS_DOUBLE(value));
  if (is_decimal(value)) {
    const std::string digits = decimal_text(value);
    const bool is_finite =
        std::isdigit(static_cast<unsigned char>(digits.back())) != 0 && digits.find('N') == digits.npos;
    if (is_finite) return static_cast<void>(out.RawValue(digits.data(), digits.size(), rapidjson::kNumberType));
    return write_text(out, digits);
  }
  if (!PyIndex_Check(value)) return write_floating(out, nb::cast<double>(made(PyNumber_Float(value))));
  const nb::object number = made(PyNumber_Index(value));
  int overflow = 0;
  const long long found = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0) raise_wrong_type("value", "int of 64 bits", value);
  out.Int64(found);
}

void write(JsonWriter& out, PyObject* value);

void write_object(JsonWriter& out, PyObject* value) {
  out.StartObject();
  const nb::object items = made(PyMapping_Items(value));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.ptr()); ++i) {
    PyObject* const item = PyList_GET_ITEM(items.ptr(), i);
    PyObject* const key = PyTuple_GET_ITEM(item, 0);
    const nb::object text = PyUnicode_Check(key) ? nb::borrow(key) : made(PyObject_Str(key));
    const std::string_view name = view_of(text.ptr(), "a key");
    out.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
    write(out, PyTuple_GET_ITEM(item, 1));
  }
  out.EndObject();
}

void write(JsonWriter& out, PyObject* value) {
  if (Py_EnterRecursiveCall(" while a value becomes JSON") != 0) throw nb::python_error();
  struct Leave {
    ~Leave() { Py_LeaveRecursiveCall(); }
  } const leave;
  if (value == Py_None) {
    out.Null();
  } else if (const auto truth = truth_of(value)) {
    out.Bool(*truth);
  } else if (PyUnicode_Check(value)) {
    write_text(out, view_of(value, "value"));
  } else if (is_number(value)) {
    write_number(out, value);
  } else if (PyBytes_Check(value)) {
    write_text(out, base64_encode({PyBytes_AS_STRING(value), static_cast<std::size_t>(PyBytes_GET_SIZE(value))}));
  } else if (PyDict_Check(value) || PyObject_HasAttrString(value, "keys") != 0) {
    write_object(out, value);
  } else if (PyList_Check(value) || PyTuple_Check(value)) {
    out.StartArray();
    const nb::object sequence = made(PySequence_Fast(value, "a list"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.ptr()); ++i) {
      write(out, PySequence_Fast_GET_ITEM(sequence.ptr(), i));
    }
    out.EndArray();
  } else {
    raise_wrong_type("value", "None, bool, int, float, str, bytes, list or dict", value);
  }
}

}  // namespace

nb::object to_python(const FieldSlice& slice, const DataType& type) {
  switch (type.tag()) {
    case TypeTag::String:
      return to_str(slice.bytes);
    case TypeTag::Int:
    case TypeTag::Long:
    case TypeTag::Byte:
      return made(PyLong_FromLongLong(slice.as_int64()));
    case TypeTag::Float:
    case TypeTag::Double:
      return made(PyFloat_FromDouble(slice.as_double()));
    case TypeTag::Bool:
      return nb::bool_(slice.as_bool());
    case TypeTag::Raw:
      return made(PyBytes_FromStringAndSize(slice.bytes.data(), static_cast<Py_ssize_t>(slice.bytes.size())));
    case TypeTag::Array:
      return to_list(slice, type);
    case TypeTag::WeightedSet:
    case TypeTag::Map:
      return to_dict(slice, type);
    case TypeTag::Struct:
      return to_members(slice, type);
    case TypeTag::None:
      break;
  }
  raise_corrupt(type.name());
}

nb::object to_python(const DocumentView& view, Timestamp version, std::span<const std::string> only) {
  const Names& all = names();
  nb::object document = made(run_python([&] { return PyObject_CallObject(all.document, nullptr); }));
  put_fields(document, *view.type(), view.header_fields(), only);
  put_fields(document, *view.type(), view.body_fields(), only);
  const nb::object id = to_str(view.id());
  const nb::object number = made(PyLong_FromUnsignedLongLong(version.us));
  if (PyObject_SetAttr(document.ptr(), all.id, id.ptr()) != 0) throw nb::python_error();
  if (PyObject_SetAttr(document.ptr(), all.version, number.ptr()) != 0) throw nb::python_error();
  return document;
}

nb::object to_python(const Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return made(PyLong_FromLongLong(*integer));
  if (const auto* number = std::get_if<double>(&cell)) return made(PyFloat_FromDouble(*number));
  if (const auto* text = std::get_if<std::string>(&cell)) return to_str(*text);
  if (const auto* truth = std::get_if<bool>(&cell)) return nb::bool_(*truth);
  if (const auto* json = std::get_if<Json>(&cell)) {
    return run_python([&]() -> nb::object { return nb::module_::import_("json").attr("loads")(to_str(json->text)); });
  }
  return nb::none();
}

std::string to_json(PyObject* value) {
  rapidjson::StringBuffer buffer;
  JsonWriter out(buffer);
  write(out, value);
  return {buffer.GetString(), buffer.GetSize()};
}

void bind_documents(nb::module_& module) {
  module.def(
      "_to_json", [](const nb::object& value) { return to_str(to_json(value.ptr())); }, nb::arg("value").none());
}

}  // namespace fjord::python
