#pragma once

#include <memory>
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
  std::string condition;                    ///< Selection that the stored document must match; empty: none.
  bool create_if_missing = false;           ///< Put and Update: applied if there is no document, even with a condition.
};

/// Maximum nesting depth of objects and arrays.
inline constexpr int kJsonDepthMax = 64;

/// Returns OK if the text is one value of JSON and nothing more. Takes no more stack than kJsonDepthMax levels need, so
/// the text may come from anyone. Errors: InvalidArgument with the offset: not JSON, not UTF-8, a zero byte or text
/// after the value, nesting deeper than kJsonDepthMax.
Status check_json(std::string_view json);

/// Reads {"put": "<id>", "fields": {...}}, {"update": "<id>", "fields": {...}} or {"remove": "<id>"}, members in any
/// order. Each may have a "condition", whose text is not checked here; put and update may have "create": true. The id
/// names the document type; ids of the old schemes name none and need a member "type". Errors, each with the offset in
/// `json` and the path of the field: InvalidArgument (not JSON, not UTF-8, nested too deep, unknown members of the
/// operation), InvalidId, UnknownType, InvalidField (unknown field, value of another kind or out of range).
Result<FeedOperation> parse_feed_operation(const DocumentTypeRepo& repo, std::string_view json);

/// The document of `type` with the fields of a JSON object ({"title": "x", ...}). Errors: as parse_feed_operation().
Result<EncodedDocument> fields_from_json(const DocumentType& type, const DocumentId& id, std::string_view json_object);

/// {"title": "x", ...}: the fields that are set, in the order of the type's declaration, or only those of them in
/// `only` if it is not empty. Infinite and undefined floating-point numbers become null, because JSON has no form for
/// them. Errors: UnknownType; Corruption.
Result<std::string> to_json_fields(const DocumentView& view, std::span<const Field* const> only = {});
/// {"put":"<id>","fields":{...}} in one line, with "type" for ids that name none. parse_feed_operation() reads this
/// form.
Result<std::string> to_json_document(const DocumentView& view, std::span<const Field* const> only = {});

/// A text of many documents, whose memory is used again after take(). Threading: one thread at a time.
class JsonLines {
 public:
  JsonLines();
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  /// Appends text as it is.
  void append(std::string_view text);
  /// Appends a JSON string. `text` has to be UTF-8.
  void append_string(std::string_view text);
  /// Appends what to_json_fields() returns, without fields that are an empty string, array, map, set or struct.
  /// Appends nothing after an error.
  Status append_content(const DocumentView& view, std::span<const Field* const> only = {});
  std::size_t size() const;
  /// Drops what was appended since size() was `size`.
  void cut_to(std::size_t size);
  /// Returns the text and begins an empty one.
  std::string take();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Standard base64 with padding, the form of raw fields in JSON.
std::string base64_encode(std::string_view bytes);
/// Decodes base64; the padding may be absent. Empty if `text` is not base64.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace fjord
