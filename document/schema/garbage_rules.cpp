#include "fjord/document/garbage_rules.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord {

GarbageRules::GarbageRules(const DocumentTypeRepo& types, std::int64_t now_seconds) {
  for (const auto& type : types.types()) {
    if (type->keep_while().empty()) continue;
    const Result<Selection> keep = Selection::parse(type->keep_while(), types);
    if (!keep) continue;  // Fjord does not parse the selection any more: keep all documents.
    if (!keep->is_trivial()) keep_by_type_.emplace(type->id(), keep->with_now(now_seconds));
  }
}

Status GarbageRules::check(const DocumentTypeRepo& types) {
  for (const auto& type : types.types()) {
    const Result<Selection> keep = Selection::parse(type->keep_while(), types);
    if (keep) continue;
    return {StatusCode::InvalidArgument,
            fmt::format("schema, keep_while of document type {}: {}", type->name(), keep.error().message())};
  }
  return Status::ok();
}

bool GarbageRules::needs_body() const {
  return std::any_of(keep_by_type_.begin(), keep_by_type_.end(), [](const auto& of) { return of.second.needs_body(); });
}

bool GarbageRules::is_garbage(const DocumentView& document, std::uint64_t* steps) const {
  const auto keep = keep_by_type_.find(document.type_id());
  return keep != keep_by_type_.end() && keep->second.evaluate(document, steps) == Match::False;
}

std::string GarbageRules::condition(const DocumentType& type) {
  return type.keep_while().empty() ? "" : "not (" + type.keep_while() + ")";
}

}  // namespace fjord
