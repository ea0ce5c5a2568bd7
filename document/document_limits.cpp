#include "fjord/document/document_limits.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/document/document.h"
#include "text.h"
#include "wire.h"

namespace fjord {
namespace {

/// Depth and field count of a document's values.
struct Shape {
  std::uint64_t depth = 0;
  std::uint64_t fields = 0;
};

bool is_scalar(TypeTag tag) { return tag < TypeTag::Array; }

/// `depth` is the nesting level of `slice`; a field of the document has level 1.
void measure(const FieldSlice& slice, std::uint64_t depth, Shape& shape) {
  if (is_scalar(slice.tag)) return;
  shape.depth = std::max(shape.depth, depth);
  if (depth > static_cast<std::uint64_t>(kValueDepthMax)) return;  // malformed; limits the recursion
  if (slice.tag == TypeTag::Struct) {
    for (FieldCursor at(slice.bytes); at.next();) {
      ++shape.fields;
      measure(at.slice(), depth + 1, shape);
    }
    return;
  }
  const std::size_t element_tag_at = slice.tag == TypeTag::Map ? 1 : 0;
  if (slice.tag == TypeTag::WeightedSet || slice.bytes.size() <= element_tag_at) return;
  if (is_scalar(static_cast<TypeTag>(slice.bytes[element_tag_at]))) return;
  for (ElementCursor at(slice); at.next();) measure(at.value(), depth + 1, shape);
}

void measure_part(std::string_view fields, Shape& shape) {
  for (FieldCursor at(fields); at.next();) {
    ++shape.fields;
    measure(at.slice(), 1, shape);
  }
}

void compare(std::string_view what, std::uint64_t value, const LimitThreshold& threshold, LimitCheck& check) {
  if (threshold.fail_above != 0 && value > threshold.fail_above) {
    if (check.status) {
      check.status =
          Status(StatusCode::TooLarge, fmt::format("{}: {}; at most {} are allowed", what, value, threshold.fail_above),
                 {.limit = std::to_string(threshold.fail_above)});
    }
  } else if (threshold.warn_above != 0 && value > threshold.warn_above) {
    check.warnings.push_back({what, value, threshold.warn_above});
  }
}

}  // namespace

std::string LimitWarning::to_string() const {
  return fmt::format("{}: {}; more than {} are reported", what, value, warn_above);
}

LimitCheck check_limits(const DocumentLimits& limits, std::string_view id, std::string_view header,
                        std::string_view body) {
  Shape shape;
  if (const auto prefix = read_header_prefix(header)) measure_part(prefix->fields, shape);
  measure_part(body, shape);
  LimitCheck check;
  compare("document bytes", header.size() + body.size(), limits.document_bytes, check);
  compare("id bytes", id.size(), limits.id_bytes, check);
  compare("depth", shape.depth, limits.depth, check);
  compare("fields", shape.fields, limits.fields, check);
  if (!check.status) check.status = check.status.with_context(fmt::format("document {}", quoted(id)));
  return check;
}

}  // namespace fjord
