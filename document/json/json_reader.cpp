// Converts JSON to the wire form without a Document in between.

#include <fmt/format.h>

#include "fjord/document/json.h"
#include "json_encoder.h"
#include "json_events.h"
#include "json_tree.h"
#include "json_value.h"
#include "text.h"
#include "wire.h"

namespace fjord {
namespace {

EncodedDocument empty_document(const DocumentType& type, const DocumentId& id, std::size_t size_hint) {
  EncodedDocument document;
  document.header.reserve(id.str().size() + 64);
  document.body.reserve(size_hint);
  append_header_prefix(document.header, type, id.str());
  return document;
}

Status in_document(const DocumentId& id, const JsonEncoder& encoder) {
  const std::string place = encoder.path().empty() ? "" : fmt::format(", field {}", encoder.path());
  return encoder.status().with_context(fmt::format("document {}{}", quoted(id.str()), place));
}

/// Tells the encoder about a value that has been read. The recursion is as deep as the JSON, at most kJsonDepthMax.
bool tell(const JsonTree& tree, const JsonNode& node, JsonEncoder& encoder) {
  const bool is_object = node.kind == JsonNode::Kind::Object;
  if (!is_object && node.kind != JsonNode::Kind::Array) return encoder.scalar(node);
  if (!encoder.start(node)) return false;
  for (std::uint32_t i = tree.first(node); i != node.next; i = tree.at(i).next) {
    if (is_object && !encoder.key(tree.at(i).key)) return false;
    if (!tell(tree, tree.at(i), encoder)) return false;
  }
  return encoder.end();
}

/// Takes any value.
struct AnyValue {
  static bool key(std::string_view) { return true; }
  static bool scalar(const JsonNode&) { return true; }
  static bool start(const JsonNode&) { return true; }
  static bool end() { return true; }
};

}  // namespace

Status check_json(std::string_view json) {
  FJORD_TRY_ASSIGN(std::vector<char> text, json_in_situ(json));
  AnyValue any;
  return JsonEvents(any, text).read();
}

Result<EncodedDocument> encode_json_fields(const JsonTree& tree, const JsonNode& object, const DocumentType& type,
                                           const DocumentId& id, std::size_t size_hint, JsonValues values) {
  JsonEncoder encoder(type, size_hint, values);
  if (!tell(tree, object, encoder)) return in_document(id, encoder);
  EncodedDocument document = empty_document(type, id, size_hint);
  encoder.finish(document);
  return document;
}

Result<FieldValue> value_from_json(const JsonTree& tree, const JsonNode& node, const DataType& type, std::string& place,
                                   JsonValues values) {
  JsonEncoder encoder(type, values);
  if (!tell(tree, node, encoder)) {
    place = encoder.path();
    return encoder.status();
  }
  const std::string bytes = encoder.take();
  return FieldSlice{type.tag(), bytes}.value();
}

Result<EncodedDocument> fields_from_json(const DocumentType& type, const DocumentId& id, std::string_view json_object) {
  return fields_from_json(type, id, json_object, JsonValues::Exact);
}

Result<EncodedDocument> fields_from_json(const DocumentType& type, const DocumentId& id, std::string_view json_object,
                                         JsonValues values) {
  if (!id.type().empty() && id.type() != type.name()) {
    return Status(StatusCode::InvalidId, fmt::format("document {} is not of type {}", quoted(id.str()), type.name()));
  }
  FJORD_TRY_ASSIGN(std::vector<char> text, json_in_situ(json_object));
  JsonEncoder encoder(type, json_object.size(), values);
  FJORD_TRY(JsonEvents(encoder, text).read());
  if (!encoder.status()) return in_document(id, encoder);
  EncodedDocument document = empty_document(type, id, json_object.size());
  encoder.finish(document);
  return document;
}

}  // namespace fjord
