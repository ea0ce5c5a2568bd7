#include "fjord/document/document_type.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

#include "fjord/common/hash.h"
#include "text.h"
#include "wire.h"

namespace fjord {

std::uint32_t stable_id(std::string_view name) {
  const auto id = static_cast<std::uint32_t>(hash64(name) & 0x7fffffffU);
  return id == 0 ? 1 : id;
}

std::shared_ptr<const DataType> DataType::primitive(TypeTag tag) {
  // One object for each tag, shared by all schemas, so types can be compared by address. Immutable, so the static is
  // safe.
  static const auto types = [] {
    std::array<std::shared_ptr<const DataType>, static_cast<std::size_t>(TypeTag::Raw) + 1> made;
    for (std::size_t i = 1; i < made.size(); ++i) {
      const auto each = static_cast<TypeTag>(i);
      made[i].reset(new DataType(each, std::string(to_string(each))));
    }
    return made;
  }();
  FJORD_CHECK(tag >= TypeTag::String && tag <= TypeTag::Raw);
  return types[static_cast<std::size_t>(tag)];
}

std::shared_ptr<const DataType> DataType::array_of(std::shared_ptr<const DataType> element) {
  std::shared_ptr<DataType> type(new DataType(TypeTag::Array, fmt::format("array<{}>", element->name())));
  type->element_ = std::move(element);
  return type;
}

std::shared_ptr<const DataType> DataType::weighted_set_of(std::shared_ptr<const DataType> element) {
  std::shared_ptr<DataType> type(new DataType(TypeTag::WeightedSet, fmt::format("weightedset<{}>", element->name())));
  type->element_ = std::move(element);
  return type;
}

std::shared_ptr<const DataType> DataType::map_of(std::shared_ptr<const DataType> key,
                                                 std::shared_ptr<const DataType> value) {
  std::shared_ptr<DataType> type(new DataType(TypeTag::Map, fmt::format("map<{}, {}>", key->name(), value->name())));
  type->key_ = std::move(key);
  type->element_ = std::move(value);
  return type;
}

std::shared_ptr<const DataType> DataType::struct_of(std::string name, std::vector<Field> fields) {
  std::shared_ptr<DataType> type(new DataType(TypeTag::Struct, std::move(name)));
  type->fields_ = std::move(fields);
  return type;
}

const Field* DataType::field(std::string_view name) const {
  const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.name == name; });
  return at == fields_.end() ? nullptr : &*at;
}

const Field* DataType::field_by_id(std::uint32_t id) const {
  const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.id == id; });
  return at == fields_.end() ? nullptr : &*at;
}

namespace {

Status misfit(std::string_view where, std::string_view what) {
  return {StatusCode::InvalidField, where.empty() ? std::string(what) : fmt::format("{}: {}", where, what)};
}

/// Refuses duplicate keys. `encoded` is a key's wire form.
Status check_distinct(std::set<std::string>& seen, std::string encoded) {
  if (!seen.insert(std::move(encoded)).second) return {StatusCode::InvalidField, "a key occurs twice"};
  return Status::ok();
}

Status check_keys(const DataType& key_type, const FieldValue& key, std::size_t index, std::set<std::string>& seen) {
  Status status = key_type.check(key);
  if (status) status = check_distinct(seen, encode_value(key_type, key));
  return status ? status : status.with_context(fmt::format("[{}]", index));
}

}  // namespace

Status DataType::check(const FieldValue& value) const {
  if (value.tag() != tag_) {
    return misfit({}, fmt::format("expected {}, found {}", name_, to_string(value.tag())));
  }
  if (const auto* text = value.get_if<std::string>()) {
    return is_utf8(*text) ? Status::ok() : misfit({}, "a string that is not UTF-8");
  }
  if (const auto* array = value.get_if<ArrayValue>()) {
    for (std::size_t i = 0; i < array->elements.size(); ++i) {
      if (Status status = element_->check(array->elements[i]); !status)
        return status.with_context(fmt::format("[{}]", i));
    }
  } else if (const auto* set = value.get_if<WeightedSetValue>()) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < set->elements.size(); ++i) {
      FJORD_TRY(check_keys(*element_, set->elements[i].first, i, seen));
    }
  } else if (const auto* map = value.get_if<MapValue>()) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < map->entries.size(); ++i) {
      FJORD_TRY(check_keys(*key_, map->entries[i].first, i, seen));
      if (Status status = element_->check(map->entries[i].second); !status) {
        return status.with_context(fmt::format("[{}]", i));
      }
    }
  } else if (const auto* members = value.get_if<StructValue>()) {
    std::uint32_t previous = 0;
    for (const auto& [id, member] : members->members) {
      const Field* f = field_by_id(id);
      if (f == nullptr) return misfit({}, fmt::format("struct {} has no field with id {}", name_, id));
      if (id <= previous) return misfit(f->name, "members out of order");
      previous = id;
      if (Status status = f->type->check(member); !status) return status.with_context(f->name);
    }
  }
  return Status::ok();
}

std::string_view to_string(PartCompression::Codec codec) {
  switch (codec) {
    case PartCompression::Codec::Lz4:
      return "lz4";
    case PartCompression::Codec::Zstd:
      return "zstd";
    case PartCompression::Codec::None:
      break;
  }
  return "none";
}

DocumentType::DocumentType(std::string name, std::vector<Field> fields, std::vector<std::string> ancestors)
    : DocumentType(std::move(name), std::move(fields), std::move(ancestors), Compression()) {}

DocumentType::DocumentType(std::string name, std::vector<Field> fields, std::vector<std::string> ancestors,
                           Compression compression, std::string keep_while)
    : name_(std::move(name)),
      id_(stable_id(name_)),
      fields_(std::move(fields)),
      ancestors_(std::move(ancestors)),
      compression_(compression),
      keep_while_(std::move(keep_while)) {
  index_by_id_.reserve(fields_.size());
  for (std::uint32_t i = 0; i < fields_.size(); ++i) {
    index_by_id_.emplace_back(fields_[i].id, i);
    index_by_name_.emplace(fields_[i].name, i);
  }
  std::sort(index_by_id_.begin(), index_by_id_.end());
}

const Field* DocumentType::field(std::string_view name) const {
  const auto at = index_by_name_.find(name);
  return at == index_by_name_.end() ? nullptr : &fields_[at->second];
}

const Field* DocumentType::indexed_field() const {
  const auto at =
      std::find_if(fields_.begin(), fields_.end(), [](const Field& f) { return f.index != IndexRole::None; });
  return at == fields_.end() ? nullptr : &*at;
}

const Field* DocumentType::field_by_id(std::uint32_t id) const {
  const auto at = std::lower_bound(index_by_id_.begin(), index_by_id_.end(), std::pair(id, std::uint32_t{0}));
  return at != index_by_id_.end() && at->first == id ? &fields_[at->second] : nullptr;
}

bool DocumentType::is_a(std::string_view name) const {
  return name == name_ || std::find(ancestors_.begin(), ancestors_.end(), name) != ancestors_.end();
}

Result<std::shared_ptr<const DocumentTypeRepo>> DocumentTypeRepo::of(
    std::vector<std::unique_ptr<const DocumentType>> types) {
  FJORD_TRY_ASSIGN(std::shared_ptr<const DocumentTypeRepo> repo, make(std::move(types)));
  return repo;
}

Result<std::shared_ptr<DocumentTypeRepo>> DocumentTypeRepo::make(
    std::vector<std::unique_ptr<const DocumentType>> types) {
  std::shared_ptr<DocumentTypeRepo> repo(new DocumentTypeRepo);
  for (auto& type : types) {
    if (const auto [at, added] = repo->by_id_.emplace(type->id(), type.get()); !added) {
      const std::string& other = at->second->name();
      return Status(StatusCode::InvalidArgument,
                    other == type->name()
                        ? fmt::format("document type {} is declared twice", other)
                        : fmt::format("document types {} and {} have the same id; rename one", other, type->name()));
    }
    repo->by_name_.emplace(type->name(), type.get());
  }
  repo->types_ = std::move(types);
  return repo;
}

const DocumentType* DocumentTypeRepo::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

const DocumentType* DocumentTypeRepo::find(std::uint32_t id) const {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : at->second;
}

}  // namespace fjord
