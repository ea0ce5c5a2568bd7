#include <cstdint>
#include <string_view>

#include "fjord/document/document.h"
#include "fjord/document/document_limits.h"
#include "fjord/document/field_set.h"
#include "fjord/document/json.h"
#include "fuzz_schema.h"

/// The wire form of documents; the first byte is the length of the header.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const fjord::DocumentTypeRepo& types = *fjord::testing::fuzz_types();
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t split = bytes.size() * data[0] / 255;
  const std::string_view header = bytes.substr(0, split);
  const std::string_view body = bytes.substr(split);
  static_cast<void>(fjord::check_limits({}, "id:ns:item::x", header, body));
  fjord::EncodedDocument buffer;
  const auto fields = fjord::FieldSet::parse(types, "item:title,tags");
  FJORD_CHECK(fields.has_value());
  static_cast<void>(fields->project(header, body, buffer).has_value());
  const auto view = fjord::DocumentView::open(types, header, body);
  if (view) static_cast<void>(fjord::to_json_document(*view).has_value());
  return 0;
}
