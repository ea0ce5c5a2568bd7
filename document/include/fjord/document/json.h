#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_update.h"

namespace fjord {

/// One operation of a feed.
struct FeedOperation {
  enum class Kind { Put, Remove, Update };

  Kind kind = Kind::Put;
  DocumentId id;
  std::optional<EncodedDocument> document;  ///< Set for Put.
  std::optional<DocumentUpdate> update;     ///< Set for Update; lives as long as the repo.
  std::string condition;           ///< A selection that must hold for the document as it is stored; empty: none.
  bool create_if_missing = false;  ///< Put and Update: go on if there is no document, whatever the condition.
};

/// Objects and arrays within one another, at most.
inline constexpr int kJsonDepthMax = 64;

/// Reads {"put": "<id>", "fields": {...}}, {"update": "<id>", "fields": {...}} or {"remove": "<id>"}, members in any
/// order. Each may have a "condition", whose text is not looked at here; put and update may have "create": true. The id
/// names the document type; for ids of the old schemes, which name none, a member "type" does.
/// Errors, each with the offset in `json` and the path of the field: InvalidArgument (not JSON, not UTF-8, nested too
/// deep, unknown members of the operation), InvalidId, UnknownType, InvalidField (unknown field, value of another kind
/// or out of range).
Result<FeedOperation> parse_feed_operation(const DocumentTypeRepo& repo, std::string_view json);

/// The document of `type` whose fields are the JSON object `json_object` ({"title": "x", ...}). Errors as above.
Result<EncodedDocument> fields_from_json(const DocumentType& type, const DocumentId& id, std::string_view json_object);

/// {"title": "x", ...}: the fields that are set, in the order that the type declares them; if `only` is not empty,
/// those of them. Infinite and undefined floating-point numbers become null, which JSON cannot tell apart. Errors:
/// UnknownType; Corruption.
Result<std::string> to_json_fields(const DocumentView& view, std::span<const Field* const> only = {});
/// {"put":"<id>","fields":{...}} in one line, with "type" for ids that name none: what parse_feed_operation() reads.
Result<std::string> to_json_document(const DocumentView& view, std::span<const Field* const> only = {});

/// Standard base64 with padding: how raw fields look in JSON.
std::string base64_encode(std::string_view bytes);
/// Empty if `text` is not base64; padding may be absent.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace fjord
