#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/document/document.h"
#include "fjord/document/json.h"
#include "fuzz_schema.h"

namespace {

/// The fields of a document are encoded while they are read; those of an operation, after all of it was read. Both are
/// equal.
void check_fields(const fjord::DocumentTypeRepo& types, std::string_view json) {
  const auto id = fjord::DocumentId::parse("id:fuzz:item::x");
  FJORD_CHECK(id.has_value());
  const fjord::DocumentType& type = *types.find("item");
  const auto fields = fjord::fields_from_json(type, *id, json);
  if (!fields) return;
  const std::string put = "{\"put\":\"id:fuzz:item::x\",\"fields\":" + std::string(json) + "}";
  const auto operation = fjord::parse_feed_operation(types, put);
  FJORD_CHECK_MSG(operation.has_value(), put);
  FJORD_CHECK_MSG(operation->document == fields.value(), put);
  const auto view = fjord::DocumentView::open(types, fields->header, fields->body);
  FJORD_CHECK(view.has_value());
  fjord::JsonLines lines;
  FJORD_CHECK(lines.append_content(*view).is_ok());
  const std::string text = lines.take();
  FJORD_CHECK_MSG(fjord::fields_from_json(type, *id, text).has_value(), text);
}

}  // namespace

/// Operations as JSON: a document that was read, written and read again is equal. Fields alone as well.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fjord::DocumentTypeRepo& types = *fjord::testing::fuzz_types();
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  check_fields(types, json);
  const auto operation = fjord::parse_feed_operation(types, json);
  if (!operation || !operation->document) return 0;
  const auto view = fjord::DocumentView::open(types, operation->document->header, operation->document->body);
  FJORD_CHECK(view.has_value());
  const auto text = fjord::to_json_document(*view);
  FJORD_CHECK(text.has_value());
  const auto again = fjord::parse_feed_operation(types, *text);
  FJORD_CHECK_MSG(again.has_value(), *text);
  return 0;
}
