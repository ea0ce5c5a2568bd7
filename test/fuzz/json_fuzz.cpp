#include <cstdint>
#include <string_view>

#include "fjord/document/document.h"
#include "fjord/document/json.h"
#include "fuzz_schema.h"

/// Operations as JSON: a document that was read, written and read again is equal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fjord::DocumentTypeRepo& types = *fjord::testing::fuzz_types();
  const std::string_view json(reinterpret_cast<const char*>(data), size);
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
