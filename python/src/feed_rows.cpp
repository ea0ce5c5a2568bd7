#include "feed_rows.h"

#include <fmt/format.h>

#include "errors.h"
#include "fjord/library/detail/client_core.h"
#include "values.h"

namespace fjord::python {

namespace {

constexpr std::string_view kRowForm = "(id, fields), a Document or a dict with put, update or remove";

nb::object document_class() {
  static PyObject* const found = nb::object(nb::module_::import_("fjord.documents").attr("Document")).release().ptr();
  return nb::borrow(found);
}

/// Returns the member of a mapping; null if there is none.
nb::object member(nb::handle row, const char* name) {
  PyObject* const found = PyMapping_GetItemString(row.ptr(), name);
  if (found == nullptr) PyErr_Clear();
  return nb::steal(found);
}

void check_members(nb::handle row, std::string_view kind) {
  const nb::object keys = nb::steal(PyMapping_Keys(row.ptr()));
  if (!keys.is_valid()) throw nb::python_error();
  for (const nb::handle key : keys) {
    const std::string_view name = view_of(key.ptr(), "a member of a row");
    const bool is_known = name == kind || name == "condition" || (name == "fields" && kind != "remove") ||
                          (name == "create" && kind != "remove");
    if (!is_known) raise(Status(StatusCode::InvalidArgument, fmt::format("a row to {} has no member {}", kind, name)));
  }
}

}  // namespace

const DocumentType& FeedRows::type_of(const DocumentId& id) {
  if (type_ != nullptr && type_->name() == id.type()) return *type_;
  const std::shared_ptr<Client> client = handle_.use();
  if (types_ == nullptr || types_->find(id.type()) == nullptr) {
    types_ = value_of(handle_.run([client, type = std::string(id.type())] { return client->core().types_with(type); }));
  }
  type_ = types_->find(id.type());
  return *type_;
}

rpc::Operation FeedRows::put(nb::handle id, nb::handle fields, std::string& text) {
  text = view_of(id.ptr(), "id");
  DocumentId parsed = value_of(DocumentId::parse(text));
  const DocumentType& type = type_of(parsed);
  const Document document = to_document(type, std::move(parsed), fields.ptr());
  return put_operation(text, encode(document));
}

rpc::Operation FeedRows::of_mapping(nb::handle row, std::string& id) {
  rpc::Operation operation;
  if (const nb::object put_id = member(row, "put"); put_id.is_valid()) {
    check_members(row, "put");
    const nb::object fields = member(row, "fields");
    operation = put(put_id, fields.is_valid() ? fields : nb::object(nb::dict()), id);
  } else if (const nb::object update_id = member(row, "update"); update_id.is_valid()) {
    check_members(row, "update");
    id = view_of(update_id.ptr(), "id");
    const nb::object fields = member(row, "fields");
    operation = update_json_operation(id, to_json(fields.is_valid() ? fields.ptr() : nb::dict().ptr()));
  } else if (const nb::object remove_id = member(row, "remove"); remove_id.is_valid()) {
    check_members(row, "remove");
    id = view_of(remove_id.ptr(), "id");
    operation = remove_operation(id);
  } else {
    raise_wrong_type("row", kRowForm, row);
  }
  if (const nb::object condition = member(row, "condition"); condition.is_valid() && !condition.is_none()) {
    operation.condition = view_of(condition.ptr(), "condition");
  }
  if (const nb::object create = member(row, "create"); create.is_valid() && !create.is_none()) {
    if (!PyBool_Check(create.ptr())) raise_wrong_type("create", "bool", create);
    operation.create = create.ptr() == Py_True;
  }
  return operation;
}

rpc::Operation FeedRows::to_operation(nb::handle row, std::string& id) {
  PyObject* const object = row.ptr();
  if (PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 2) {
    return put(PyTuple_GET_ITEM(object, 0), PyTuple_GET_ITEM(object, 1), id);
  }
  if (PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(document_class().ptr()))) {
    return put(row.attr("id"), row, id);
  }
  if (PyDict_Check(object)) return of_mapping(row, id);
  raise_wrong_type("row", kRowForm, row);
}

}  // namespace fjord::python
