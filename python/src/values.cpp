#include "values.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "errors.h"

namespace fjord::python {

namespace {

/// Holds a reference to a new object. nb::object is the same; this one raises if there is none.
nb::object owned(PyObject* object) {
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

/// Returns what a type is called in Python.
std::string expected_name(const DataType& type) {
  switch (type.tag()) {
    case TypeTag::String:
      return "str";
    case TypeTag::Int:
    case TypeTag::Long:
    case TypeTag::Byte:
      return fmt::format("int ({})", type.name());
    case TypeTag::Float:
    case TypeTag::Double:
      return fmt::format("float ({})", type.name());
    case TypeTag::Bool:
      return "bool";
    case TypeTag::Raw:
      return "bytes";
    case TypeTag::Array:
      return fmt::format("list ({})", type.name());
    case TypeTag::WeightedSet:
    case TypeTag::Map:
      return fmt::format("dict ({})", type.name());
    case TypeTag::Struct:
      return fmt::format("dict (struct {})", type.name());
    case TypeTag::None:
      break;
  }
  return type.name();
}

[[noreturn]] void misfit(PyObject* value, const DataType& type, const Place& place) {
  raise_wrong_type(place.to_string(), expected_name(type), value);
}

FieldValue to_text(PyObject* value, const DataType& type, const Place& place) {
  if (!PyUnicode_Check(value)) misfit(value, type, place);
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
  if (text == nullptr) {  // surrogates
    PyErr_Clear();
    raise_wrong_type(place.to_string(), "str without surrogates", value);
  }
  return std::string(text, static_cast<std::size_t>(size));
}

template <typename T>
FieldValue to_integer(PyObject* value, const DataType& type, const Place& place) {
  if (truth_of(value) || !PyIndex_Check(value)) misfit(value, type, place);
  const nb::object number = PyLong_Check(value) ? nb::borrow(value) : owned(PyNumber_Index(value));
  int overflow = 0;
  const long long found = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (found == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (overflow != 0 || found < std::numeric_limits<T>::min() || found > std::numeric_limits<T>::max()) {
    raise_wrong_type(place.to_string(),
                     fmt::format("int from {} to {} ({})", std::numeric_limits<T>::min(), std::numeric_limits<T>::max(),
                                 type.name()),
                     value);
  }
  return static_cast<T>(found);
}

bool is_another_number(PyObject* integer, double number) {
  const nb::object other = owned(PyFloat_FromDouble(number));
  const int is_same = PyObject_RichCompareBool(integer, other.ptr(), Py_EQ);
  if (is_same < 0) throw nb::python_error();
  return is_same == 0;
}

[[noreturn]] void out_of_range(PyObject* value, const DataType& type, const Place& place) {
  raise_wrong_type(place.to_string(), fmt::format("a number within the range of {}", type.name()), value);
}

/// Returns the value of T that is nearest to the digits of a decimal.Decimal.
template <typename T>
T decimal_to(PyObject* value, const DataType& type, const Place& place) {
  const std::string digits = decimal_text(value);
  T found = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), found);
  if (error == std::errc::result_out_of_range) out_of_range(value, type, place);
  if (error != std::errc() || end != digits.data() + digits.size()) misfit(value, type, place);
  return found;
}

/// Returns the value of T, float or double, that is nearest to a number; an integer has to stay the same, and what is
/// neither infinite nor 0 must not become so.
template <typename T>
T to_floating(PyObject* value, const DataType& type, const Place& place) {
  if (!is_number(value)) misfit(value, type, place);
  if (is_decimal(value)) return decimal_to<T>(value, type, place);
  const double found = PyFloat_AsDouble(value);
  if (found == -1.0 && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw nb::python_error();
    PyErr_Clear();
    out_of_range(value, type, place);
  }
  const T narrowed = static_cast<T>(found);
  if (PyIndex_Check(value) && is_another_number(value, narrowed)) {
    raise_wrong_type(place.to_string(), fmt::format("an integer that {} holds without rounding it", type.name()),
                     value);
  }
  const bool is_extreme = std::isinf(narrowed) || narrowed == 0;
  if (is_extreme && is_another_number(value, narrowed)) out_of_range(value, type, place);
  return narrowed;
}

FieldValue to_raw(PyObject* value, const DataType& type, const Place& place) {
  if (PyBytes_Check(value)) {
    return RawValue{std::string(PyBytes_AS_STRING(value), static_cast<std::size_t>(PyBytes_GET_SIZE(value)))};
  }
  Py_buffer buffer;
  if (PyUnicode_Check(value) || PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) != 0) {
    PyErr_Clear();
    misfit(value, type, place);
  }
  RawValue raw{std::string(static_cast<const char*>(buffer.buf), static_cast<std::size_t>(buffer.len))};
  PyBuffer_Release(&buffer);
  return raw;
}

FieldValue to_array(PyObject* value, const DataType& type, const Place& place) {
  // A text and a mapping are sequences, too, but surely not what was meant.
  if (PyUnicode_Check(value) || PyBytes_Check(value) || PyDict_Check(value)) misfit(value, type, place);
  nb::object sequence = nb::steal(PySequence_Fast(value, "not a sequence"));
  if (!sequence.is_valid()) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
    PyErr_Clear();
    misfit(value, type, place);
  }
  ArrayValue array;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence.ptr());
  array.elements.reserve(static_cast<std::size_t>(size));
  for (Py_ssize_t i = 0; i < size && i < PySequence_Fast_GET_SIZE(sequence.ptr()); ++i) {
    const nb::object element = nb::borrow(PySequence_Fast_GET_ITEM(sequence.ptr(), i));
    array.elements.push_back(to_field_value(element.ptr(), *type.element(), Place{&place, {}, i}));
  }
  return array;
}

/// Calls `f(key, value)` for each entry of a mapping. The references live as long as the call.
template <typename F>
void for_each_entry(PyObject* mapping, F f) {
  if (PyDict_CheckExact(mapping)) {
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(mapping, &at, &key, &value) != 0) {
      const nb::object held_key = nb::borrow(key);
      const nb::object held_value = nb::borrow(value);
      f(key, value);
    }
    return;
  }
  const nb::object items = owned(PyMapping_Items(mapping));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.ptr()); ++i) {
    PyObject* const item = PyList_GET_ITEM(items.ptr(), i);
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 2)
      raise_wrong_type("items()", "pairs of key and value", item);
    f(PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1));
  }
}

bool is_mapping(PyObject* value) {
  return PyDict_Check(value) || (PyMapping_Check(value) != 0 && PyObject_HasAttrString(value, "keys") != 0);
}

FieldValue to_weighted_set(PyObject* value, const DataType& type, const Place& place) {
  if (!is_mapping(value)) misfit(value, type, place);
  static const std::shared_ptr<const DataType> weight_type = DataType::primitive(TypeTag::Int);
  WeightedSetValue set;
  for_each_entry(value, [&](PyObject* key, PyObject* weight) {
    const Place at{&place, {}, -1, key};
    FieldValue element = to_field_value(key, *type.element(), at);
    const FieldValue number = to_integer<std::int32_t>(weight, *weight_type, at);
    set.elements.emplace_back(std::move(element), *number.get_if<std::int32_t>());
  });
  return set;
}

FieldValue to_map(PyObject* value, const DataType& type, const Place& place) {
  if (!is_mapping(value)) misfit(value, type, place);
  MapValue map;
  for_each_entry(value, [&](PyObject* key, PyObject* entry) {
    const Place at{&place, {}, -1, key};
    FieldValue key_value = to_field_value(key, *type.key(), at);
    map.entries.emplace_back(std::move(key_value), to_field_value(entry, *type.element(), at));
  });
  return map;
}

[[noreturn]] void raise_unknown_field(const std::string& owner, std::string_view name) {
  raise(Status(StatusCode::InvalidField, fmt::format("{} has no field {}", owner, name)));
}

/// Returns the name of a field. Raises WrongType unless it is a str.
std::string_view field_name(PyObject* key) {
  if (!PyUnicode_Check(key)) raise_wrong_type("the name of a field", "str", key);
  return view_of(key, "the name of a field");
}

FieldValue to_struct(PyObject* value, const DataType& type, const Place& place) {
  if (!is_mapping(value)) misfit(value, type, place);
  StructValue members;
  for_each_entry(value, [&](PyObject* key, PyObject* member) {
    const std::string_view name = field_name(key);
    const Field* const field = type.field(name);
    if (field == nullptr) raise_unknown_field(fmt::format("{}: struct {}", place.to_string(), type.name()), name);
    if (member != Py_None) members.set(field->id, to_field_value(member, *field->type, Place{&place, field->name}));
  });
  return members;
}

}  // namespace

std::string Place::to_string() const {
  std::string text = parent == nullptr ? std::string() : parent->to_string();
  if (!name.empty()) return text.empty() ? std::string(name) : fmt::format("{}.{}", text, name);
  if (key == nullptr) return fmt::format("{}[{}]", text, index);
  // backslashreplace: a key may have half a surrogate pair, which no UTF-8 has.
  nb::object shown = nb::steal(PyObject_Str(key));
  if (shown.is_valid()) shown = nb::steal(PyUnicode_AsEncodedString(shown.ptr(), "utf-8", "backslashreplace"));
  if (!shown.is_valid()) PyErr_Clear();
  return fmt::format("{}{{{}}}", text, shown.is_valid() ? PyBytes_AS_STRING(shown.ptr()) : "?");
}

std::optional<bool> truth_of(PyObject* value) {
  if (PyBool_Check(value)) return value == Py_True;
  // The scalar of NumPy is no subclass of bool. Its type was numpy.bool_ until NumPy 2.
  const std::string_view name = Py_TYPE(value)->tp_name;
  if (name != "numpy.bool" && name != "numpy.bool_") return std::nullopt;
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

bool is_number(PyObject* value) {
  if (PyFloat_Check(value) || PyLong_Check(value)) return !PyBool_Check(value);
  const auto* const methods = Py_TYPE(value)->tp_as_number;
  return methods != nullptr && (methods->nb_float != nullptr || methods->nb_index != nullptr) && !truth_of(value) &&
         // An array of NumPy is no number, though one of a single element would become one.
         PySequence_Check(value) == 0;
}

bool is_decimal(PyObject* value) {
  static PyObject* const decimal = nb::object(nb::module_::import_("decimal").attr("Decimal")).release().ptr();
  const int found = PyObject_IsInstance(value, decimal);
  if (found < 0) throw nb::python_error();
  return found != 0;
}

std::string decimal_text(PyObject* decimal) {
  return std::string(view_of(owned(PyObject_Str(decimal)).ptr(), "value"));
}

FieldValue to_field_value(PyObject* value, const DataType& type, const Place& place) {
  switch (type.tag()) {
    case TypeTag::String:
      return to_text(value, type, place);
    case TypeTag::Int:
      return to_integer<std::int32_t>(value, type, place);
    case TypeTag::Long:
      return to_integer<std::int64_t>(value, type, place);
    case TypeTag::Byte:
      return to_integer<std::int8_t>(value, type, place);
    case TypeTag::Float:
      return to_floating<float>(value, type, place);
    case TypeTag::Double:
      return to_floating<double>(value, type, place);
    case TypeTag::Bool:
      if (const auto truth = truth_of(value)) return *truth;
      misfit(value, type, place);
    case TypeTag::Raw:
      return to_raw(value, type, place);
    case TypeTag::Array:
      return to_array(value, type, place);
    case TypeTag::WeightedSet:
      return to_weighted_set(value, type, place);
    case TypeTag::Map:
      return to_map(value, type, place);
    case TypeTag::Struct:
      return to_struct(value, type, place);
    case TypeTag::None:
      break;
  }
  misfit(value, type, place);
}

Document to_document(const DocumentType& type, DocumentId id, PyObject* fields) {
  if (!is_mapping(fields)) raise_wrong_type("fields", "a mapping of field names", fields);
  Document document(type, std::move(id));
  for_each_entry(fields, [&](PyObject* key, PyObject* value) {
    const std::string_view name = field_name(key);
    const Field* const field = type.field(name);
    if (field == nullptr) raise_unknown_field(fmt::format("document type {}", type.name()), name);
    if (value != Py_None) check(document.set(*field, to_field_value(value, *field->type, Place{nullptr, field->name})));
  });
  return document;
}

std::string_view view_of(PyObject* value, std::string_view name) {
  if (!PyUnicode_Check(value)) raise_wrong_type(name, "str", value);
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value, &size);
  if (text == nullptr) {
    PyErr_Clear();
    raise_wrong_type(name, "str without surrogates", value);
  }
  return {text, static_cast<std::size_t>(size)};
}

nb::object to_str(std::string_view text) {
  return owned(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

}  // namespace fjord::python
