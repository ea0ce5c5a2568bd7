#include <cstdint>
#include <string_view>

#include "fjord/document/document.h"
#include "fjord/document/document_update.h"
#include "fuzz_schema.h"

/// Binary updates: a decoded update is encoded, the result has to decode, and it applies or fails.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fjord::DocumentTypeRepo& types = *fjord::testing::fuzz_types();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(fjord::DocumentUpdate::id_of(bytes));
  auto update = fjord::DocumentUpdate::decode(types, bytes);
  if (!update) update = fjord::DocumentUpdate::from_json(types, bytes);
  if (!update) return 0;
  FJORD_CHECK(fjord::DocumentUpdate::decode(types, update->encode()).has_value());
  update->set_create_if_missing(true);
  static_cast<void>(update->apply_to(nullptr).has_value());
  return 0;
}
