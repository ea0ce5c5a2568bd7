#include "entry_writer.h"

#include <fmt/format.h>

#include "fjord/document/json.h"
#include "fjord/library/detail/client_core.h"

namespace fjord::gateway {

EntryWriter::EntryWriter(Client& client, std::shared_ptr<const DocumentTypeRepo> types,
                         const std::vector<std::string>& fields)
    : client_(client), types_(std::move(types)) {
  for (const std::string& name : fields) {
    if (name.find_first_of("[:") == std::string::npos) names_.push_back(name);
  }
}

Status EntryWriter::write(const EntryView& entry, std::string& id, std::string& json) {
  if (entry.removed) {
    id = std::string(entry.id);
    return Status::ok();
  }
  auto view = DocumentView::open(*types_, entry.header, entry.body);
  if (view && view->type() == nullptr) {
    FJORD_TRY(client_.core().refresh());
    by_type_.clear();
    types_ = client_.core().types();
    view = DocumentView::open(*types_, entry.header, entry.body);
  }
  if (!view) return view.error();
  id = fmt::format("{}", view->id());
  if (view->type() == nullptr) return {StatusCode::UnknownType, fmt::format("the schema of {} is not known here", id)};
  FJORD_TRY_ASSIGN(json, to_json_document(*view, fields_of(*view->type())));
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
