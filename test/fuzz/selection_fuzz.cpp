#include <cstdint>
#include <string>

#include "fjord/document/document.h"
#include "fjord/document/selection.h"
#include "fuzz_schema.h"

/// Reads the input as a selection. If it parses, its evaluation has to work on any document.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const fjord::Result<fjord::Selection> selection = fjord::Selection::parse(text, *fjord::testing::fuzz_types());
  if (!selection) return 0;
  fjord::Document document(*fjord::testing::fuzz_types()->find("item"), *fjord::DocumentId::parse("id:ns:item:n=5:x"));
  FJORD_CHECK(document.set("title", "some title").is_ok());
  FJORD_CHECK(document.set("size", std::int32_t{7}).is_ok());
  const fjord::EncodedDocument encoded = fjord::encode(document);
  const auto view = fjord::DocumentView::open(*fjord::testing::fuzz_types(), encoded.header, encoded.body);
  FJORD_CHECK(view.has_value());
  static_cast<void>(selection->with_now(1000).evaluate(*view));
  static_cast<void>(selection->possible_buckets());
  return 0;
}
