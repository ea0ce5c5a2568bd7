#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "selection_limits.h"
#include "selection_scratch.h"
#include "selection_value.h"

namespace fjord::selection {

/// The parts of a document id, as views into it. The hash of the id is not computed.
struct IdParts {
  std::string_view scheme;
  std::string_view namespace_name;
  std::optional<std::string_view> type;
  std::optional<std::uint64_t> user;
  std::optional<std::string_view> group;
  std::string_view specific;

  /// Empty if `id` is no document id.
  static std::optional<IdParts> split(std::string_view id);
};

enum class IdPart : std::uint8_t { Whole, Scheme, Namespace, Type, User, Group, Specific, Gid, Bucket };

/// "id", "id.user", ...
std::string_view to_string(IdPart part);
/// Finds a part by its name after "id.", in upper or lower case.
std::optional<IdPart> find_id_part(std::string_view name);

Value id_part_of(std::string_view id, IdPart part, Scratch& scratch);

/// The buckets of all documents whose `part` equals `value`, or matches it as a glob; all buckets if they cannot be
/// derived.
BucketSet buckets_with(IdPart part, CompareOp op, const Value& value);

}  // namespace fjord::selection
