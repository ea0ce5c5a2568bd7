#include "fjord/document/selection.h"

#include <fmt/format.h>

#include "selection_lexer.h"
#include "selection_node.h"
#include "selection_parser.h"

namespace fjord {

std::string_view to_string(Match match) {
  switch (match) {
    case Match::False:
      return "False";
    case Match::True:
      return "True";
    case Match::Invalid:
      break;
  }
  return "Invalid";
}

Selection::Selection() : Selection(selection::make_constant(true)) {}

Selection::Selection(std::shared_ptr<const selection::Condition> root) : root_(std::move(root)) {
  const selection::TypeSet types = root_->types().when_true;
  limits_types_ = !types.is_all();
  possible_types_ = types.ids();
  needs_body_ = root_->needs_body();
}

Result<Selection> Selection::parse(std::string_view text, const DocumentTypeRepo& repo) {
  if (text.size() > kBytesMax) {
    return selection::error_at(1, fmt::format("{} bytes are more than the limit of {}", text.size(), kBytesMax));
  }
  FJORD_TRY_ASSIGN(auto root, selection::parse(text, repo));
  return Selection(std::move(root));
}

Match Selection::evaluate(const DocumentView& document) const {
  return root_->evaluate({document.id(), document.type_id(), &document});
}

Match Selection::evaluate_id(std::string_view document_id, std::uint32_t type_id) const {
  if (type_id == 0) {
    const auto parts = selection::IdParts::split(document_id);
    if (parts && parts->type) type_id = stable_id(*parts->type);
  }
  return root_->evaluate({document_id, type_id, nullptr});
}

bool Selection::is_trivial() const { return root_->constant() == Match::True; }

std::string Selection::to_string() const {
  std::string out;
  root_->print(out);
  return out;
}

}  // namespace fjord
