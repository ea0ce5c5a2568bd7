#pragma once

#include <memory>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "selection_node.h"

namespace fjord::selection {

/// Recursive descent over the grammar of document/SELECTION.md. With a `type`, its fields may be named without it.
/// Errors: as Selection::parse().
Result<std::unique_ptr<Condition>> parse(std::string_view text, const DocumentTypeRepo& repo,
                                         const DocumentType* type = nullptr);
/// Parses a `sum` of that grammar; fields of `type` may be named without it. Errors: as Selection::parse().
Result<std::unique_ptr<Expression>> parse_value(std::string_view text, const DocumentTypeRepo& repo,
                                                const DocumentType& type);

}  // namespace fjord::selection
