#include <cstdint>
#include <string>

#include "fjord/document/document_type.h"

/// Parses the input as a schema.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(fjord::DocumentTypeRepo::build(std::span(&text, 1)).has_value());
  return 0;
}
