// Document types as Python sees them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "errors.h"
#include "fjord/document/document_type.h"
#include "record.h"

namespace fjord::python {

namespace {

nb::object describe(const DataType& type);

nb::list describe(const std::vector<Field>& fields) {
  return records_of(fields,
                    [](const Field& field) { return nb::make_tuple(to_str(field.name), describe(*field.type)); });
}

/// Returns the name of a scalar type, ("array", T), ("weightedset", T), ("map", K, V) or ("struct", name, members).
nb::object describe(const DataType& type) {
  const nb::object tag = to_str(to_string(type.tag()));
  switch (type.tag()) {
    case TypeTag::Array:
    case TypeTag::WeightedSet:
      return nb::make_tuple(tag, describe(*type.element()));
    case TypeTag::Map:
      return nb::make_tuple(tag, describe(*type.key()), describe(*type.element()));
    case TypeTag::Struct:
      return nb::make_tuple(tag, to_str(type.name()), describe(type.fields()));
    default:
      return tag;
  }
}

nb::dict describe_types(const std::vector<std::string>& schemas) {
  const auto types = value_of(DocumentTypeRepo::build(schemas));
  nb::dict described;
  for (const auto& type : types->types()) described[to_str(type->name())] = describe(type->fields());
  return described;
}

}  // namespace

void bind_schema(nb::module_& module) { module.def("describe_types", &describe_types); }

}  // namespace fjord::python
