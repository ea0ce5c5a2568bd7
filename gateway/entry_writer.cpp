#include "entry_writer.h"

#include <fmt/format.h>

#include "fjord/library/detail/client_core.h"

namespace fjord::gateway {

EntryWriter::EntryWriter(Client& client, std::shared_ptr<const DocumentTypeRepo> types,
                         const std::vector<std::string>& fields)
    : client_(client), types_(std::move(types)) {
  for (const std::string& name : fields) {
    if (name.find_first_of("[:") == std::string::npos) names_.push_back(name);
  }
}

Result<DocumentView> EntryWriter::view_of(const EntryView& entry) {
  auto view = DocumentView::open(*types_, entry.header, entry.body);
  if (view && view->type() == nullptr) {
    FJORD_TRY(client_.core().refresh());
    by_type_.clear();
    types_ = client_.core().types();
    view = DocumentView::open(*types_, entry.header, entry.body);
  }
  if (view && view->type() == nullptr) {
    return Status(StatusCode::UnknownType, fmt::format("the schema of {} is not known here", view->id()));
  }
  return view;
}

Status EntryWriter::write(const EntryView& entry, std::string& id, std::string& json) {
  if (entry.removed) {
    id = std::string(entry.id);
    return Status::ok();
  }
  FJORD_TRY_ASSIGN(const DocumentView view, view_of(entry));
  id = std::string(view.id());
  FJORD_TRY_ASSIGN(json, to_json_document(view, fields_of(*view.type())));
  return Status::ok();
}

Status EntryWriter::append(const EntryView& entry, std::string_view name, JsonLines& to) {
  if (entry.removed) {
    to.append("{\"remove\":");
    to.append_string(entry.id);
    to.append("}");
    return Status::ok();
  }
  FJORD_TRY_ASSIGN(const DocumentView view, view_of(entry));
  const std::size_t begin = to.size();
  to.append("{\"");
  to.append(name);
  to.append("\":");
  to.append_string(view.id());
  to.append(",\"fields\":");
  const Status status = to.append_content(view, fields_of(*view.type()));
  if (!status) {
    to.cut_to(begin);
    return status;
  }
  to.append("}");
  return Status::ok();
}

std::span<const Field* const> EntryWriter::fields_of(const DocumentType& type) {
  const auto [at, is_new] = by_type_.try_emplace(&type);
  if (is_new) {
    for (const std::string& name : names_) {
      if (const Field* field = type.field(name)) at->second.push_back(field);
    }
  }
  return at->second;
}

}  // namespace fjord::gateway
