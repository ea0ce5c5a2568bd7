#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fjord/document/value.h"

/// Constants of the wire form of documents, which document/FORMAT.md describes.
namespace fjord {

inline constexpr std::uint8_t kDocumentFormatVersion = 1;

/// Offset of the id's length in a header part: after the version and the type id.
inline constexpr std::size_t kDocumentIdLengthOffset = 1 + 4;

/// Maximum nesting depth of collections and structs.
inline constexpr int kValueDepthMax = 32;

/// Size in bytes of a value of a fixed-size kind (Int, Long, Float, Double, Bool, Byte); 0 for other kinds.
constexpr std::size_t fixed_size(TypeTag tag) {
  switch (tag) {
    case TypeTag::Byte:
    case TypeTag::Bool:
      return 1;
    case TypeTag::Int:
    case TypeTag::Float:
      return 4;
    case TypeTag::Long:
    case TypeTag::Double:
      return 8;
    default:
      return 0;
  }
}

/// The document id in a header part; empty if the header is malformed.
std::string_view document_id_of_header(std::string_view header);

}  // namespace fjord
