#include "selection_id.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include "fjord/document/document_id.h"

namespace fjord::selection {
namespace {

constexpr std::string_view kPartNames[] = {"id",       "id.scheme",   "id.namespace", "id.type",  "id.user",
                                           "id.group", "id.specific", "id.gid",       "id.bucket"};

/// The parts that need the parsed id with its hashes.
Value hashed_part_of(std::string_view id, IdPart part, Scratch& scratch) {
  const Result<DocumentId> parsed = DocumentId::parse(id);
  if (!parsed) return Value::invalid();
  if (part == IdPart::Bucket) return Value::of_bucket(parsed->bucket(BucketId::kUsedBitsMax));
  const std::string gid = parsed->gid().to_string();
  char* const copy = scratch.take(gid.size());
  if (copy == nullptr) return Value::invalid();
  std::memcpy(copy, gid.data(), gid.size());
  return Value::of_string({copy, gid.size()});
}

constexpr unsigned kLocationBits = 32;

}  // namespace

std::string_view to_string(IdPart part) { return kPartNames[static_cast<std::size_t>(part)]; }

std::optional<IdPart> find_id_part(std::string_view name) {
  std::string lower = "id.";
  for (const char c : name) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  const auto* const at = std::find(std::begin(kPartNames), std::end(kPartNames), lower);
  if (at == std::end(kPartNames)) return std::nullopt;
  return static_cast<IdPart>(at - std::begin(kPartNames));
}

std::optional<IdParts> IdParts::split(std::string_view id) {
  const auto take = [&id]() -> std::optional<std::string_view> {
    const std::size_t colon = id.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string_view part = id.substr(0, colon);
    id.remove_prefix(colon + 1);
    return part;
  };
  const auto number = [](std::string_view text) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
  };
  IdParts parts;
  const auto scheme = take();
  const auto namespace_name = take();
  if (!scheme || !namespace_name) return std::nullopt;
  parts.scheme = *scheme;
  parts.namespace_name = *namespace_name;
  if (parts.scheme == "id") {
    const auto type = take();
    const auto modifier = take();
    if (!type || !modifier) return std::nullopt;
    parts.type = *type;
    if (modifier->starts_with("n=")) parts.user = number(modifier->substr(2));
    if (modifier->starts_with("g=")) parts.group = modifier->substr(2);
  } else if (parts.scheme == "userdoc") {
    const auto user = take();
    if (!user) return std::nullopt;
    parts.user = number(*user);
  } else if (parts.scheme == "groupdoc") {
    parts.group = take();
    if (!parts.group) return std::nullopt;
  } else if (parts.scheme != "doc") {
    return std::nullopt;
  }
  parts.specific = id;
  return parts;
}

Value id_part_of(std::string_view id, IdPart part, Scratch& scratch) {
  if (part == IdPart::Whole) return Value::of_string(id);
  if (part == IdPart::Gid || part == IdPart::Bucket) return hashed_part_of(id, part, scratch);
  const std::optional<IdParts> parts = IdParts::split(id);
  if (!parts) return Value::invalid();
  switch (part) {
    case IdPart::Scheme:
      return Value::of_string(parts->scheme);
    case IdPart::Namespace:
      return Value::of_string(parts->namespace_name);
    // Invalid and not Absent: a document with an id of an old scheme has a type, but the id does not name it.
    case IdPart::Type:
      return parts->type ? Value::of_string(*parts->type) : Value::invalid();
    case IdPart::User:
      return parts->user ? Value::of(static_cast<std::int64_t>(*parts->user)) : Value::absent();
    case IdPart::Group:
      return parts->group ? Value::of_string(*parts->group) : Value::absent();
    default:
      return Value::of_string(parts->specific);
  }
}

BucketSet buckets_with(IdPart part, CompareOp op, const Value& value) {
  if (op != CompareOp::Equal && op != CompareOp::Glob) return BucketSet::all();
  const bool is_text = value.kind == Value::Kind::String;
  if (part == IdPart::User && value.kind == Value::Kind::Integer) {
    return BucketSet::of({BucketId(kLocationBits, static_cast<std::uint64_t>(value.integer))});
  }
  if (part == IdPart::Bucket && value.kind == Value::Kind::Integer) {
    const BucketId bucket(static_cast<std::uint64_t>(value.integer));
    return bucket.is_valid() ? BucketSet::of({bucket}) : BucketSet::of({});
  }
  if (!is_text || (op == CompareOp::Glob && value.string.find_first_of("*?") != std::string_view::npos)) {
    return BucketSet::all();
  }
  if (part == IdPart::Whole) {
    const Result<DocumentId> id = DocumentId::parse(value.string);
    return id ? BucketSet::of({id->bucket(BucketId::kUsedBitsMax)}) : BucketSet::all();
  }
  if (part == IdPart::Group) {
    // All ids of a group share the location; this is the shortest such id.
    const Result<DocumentId> id = DocumentId::parse("id:x:x:g=" + std::string(value.string) + ":");
    if (id && id->group() == value.string) return BucketSet::of({id->bucket(kLocationBits)});
  }
  return BucketSet::all();
}

}  // namespace fjord::selection
