#pragma once

#include <nanobind/nanobind.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fjord/document/document.h"
#include "fjord/document/document_type.h"
#include "fjord/document/timestamp.h"
#include "fjord/library/aggregate.h"

namespace nb = nanobind;

namespace fjord::python {

// Values of Python and of documents. All of these need the interpreter lock.
//
//   string   str          int, long, byte  int        float, double  float        bool  bool        raw  bytes
//   array    list         weightedset      dict of weights       map  dict        struct  dict of its members

/// Where a value is, for messages: links up to the field. Lifetime: on the stack.
struct Place {
  const Place* parent = nullptr;
  std::string_view name = {};  ///< A field or member; empty: `index` or `key`.
  Py_ssize_t index = -1;
  PyObject* key = nullptr;

  /// Returns "credits[0].name".
  std::string to_string() const;
};

/// Returns the value of a bool of Python or NumPy; nothing for other objects.
std::optional<bool> truth_of(PyObject* value);
/// Returns whether an object is a number: of Python, of NumPy, or another one with __float__ or __index__.
bool is_number(PyObject* value);
bool is_decimal(PyObject* value);
/// Returns the digits of a decimal.Decimal, or NaN, Infinity and the like.
std::string decimal_text(PyObject* decimal);

/// Returns the value as one of `type`. Raises WrongType with the place, what was expected and what was there.
FieldValue to_field_value(PyObject* value, const DataType& type, const Place& place);

/// Returns a document with the members of a mapping as its fields. A field that is None is not set. Raises WrongType;
/// InvalidField for a name that is no field of the type.
Document to_document(const DocumentType& type, DocumentId id, PyObject* fields);

/// Returns the value. Raises Corruption.
nb::object to_python(const FieldSlice& slice, const DataType& type);

/// Returns a fjord.Document, a dict of the fields that are set. `only`: the fields to take; empty: all. The view's type
/// is known.
nb::object to_python(const DocumentView& view, Timestamp version, std::span<const std::string> only = {});
nb::object to_python(const Cell& cell);

/// Returns JSON of dicts, lists, strings, numbers, booleans, bytes (as base64) and None. Raises WrongType for anything
/// else.
std::string to_json(PyObject* value);

/// Returns a str. Bytes that are no UTF-8 become surrogates.
nb::object to_str(std::string_view text);
/// Returns the bytes of a str. Raises WrongType with the name of the argument for anything else.
std::string_view view_of(PyObject* value, std::string_view name);

}  // namespace fjord::python
