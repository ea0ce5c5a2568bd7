#pragma once

#include <memory>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "selection_node.h"

namespace fjord::selection {

/// Recursive descent over the grammar of document/SELECTION.md. Errors: as Selection::parse().
Result<std::unique_ptr<Condition>> parse(std::string_view text, const DocumentTypeRepo& repo);

}  // namespace fjord::selection
