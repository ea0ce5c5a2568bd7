#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_update.h"
#include "fjord/document/json_conversion.h"
#include "json_tree.h"

/// Conversion of parts of documents and updates from and to JSON.
namespace fjord {

/// The document whose fields are the members of `object`. Errors: as fields_from_json().
Result<EncodedDocument> encode_json_fields(const JsonTree& tree, const JsonNode& object, const DocumentType& type,
                                           const DocumentId& id, std::size_t size_hint, JsonValues values);

/// Reads one value. Errors: InvalidField with the offset; `place` is then the position in the value, e.g. "[1].name".
Result<FieldValue> value_from_json(const JsonTree& tree, const JsonNode& node, const DataType& type, std::string& place,
                                   JsonValues values);

/// The update whose changes are the members of `object`. Errors: as DocumentUpdate::from_json_fields().
Result<DocumentUpdate> update_from_json(const JsonTree& tree, const JsonNode& object, const DocumentType& type,
                                        const DocumentId& id, JsonValues values);

/// Writes one value as JSON; numbers that are not finite become the texts of json_node.h. Errors: Corruption.
Result<std::string> value_to_json(const DataType& type, const FieldSlice& slice);

}  // namespace fjord
