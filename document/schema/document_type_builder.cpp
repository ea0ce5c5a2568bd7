// Makes document types from parsed schemas: resolves and checks names, and adds inherited fields.

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>

#include "fjord/document/document_format.h"
#include "fjord/document/document_type.h"
#include "sd_parser.h"

namespace fjord {
namespace {

Status error_at(const SdPosition& at, std::string what) {
  return {StatusCode::InvalidArgument, fmt::format("{}: {}", at.to_string(), what)};
}

/// The text of a type as in a schema.
std::string describe(const SdType& type) {
  if (type.arguments.empty()) return type.name;
  std::string arguments;
  for (const SdType& argument : type.arguments) arguments += (arguments.empty() ? "" : ", ") + describe(argument);
  return fmt::format("{}<{}>", type.name, arguments);
}

/// True for types of other systems' schemas whose values Fjord does not store.
bool is_unsupported(const SdType& type) {
  for (std::string_view name : {"tensor", "predicate", "reference", "annotationreference"}) {
    if (type.name == name) return true;
  }
  return std::any_of(type.arguments.begin(), type.arguments.end(), is_unsupported);
}

std::optional<TypeTag> primitive_named(std::string_view name) {
  for (auto tag = TypeTag::String; tag <= TypeTag::Raw; tag = static_cast<TypeTag>(static_cast<int>(tag) + 1)) {
    if (to_string(tag) == name) return tag;
  }
  if (name == "uri" || name == "url") return TypeTag::String;
  return std::nullopt;
}

std::shared_ptr<const DataType> position_type() {
  const auto coordinate = DataType::primitive(TypeTag::Int);
  return DataType::struct_of("position",
                             {{"x", stable_id("x"), coordinate, false}, {"y", stable_id("y"), coordinate, false}});
}

/// A type and the nesting depth of its values.
struct ResolvedType {
  std::shared_ptr<const DataType> type;
  int depth = 0;
};

enum class Progress { Untouched, Running, Done };

class TypeBuilder {
 public:
  TypeBuilder(std::vector<SdDocument> declared, SdWarnings& warnings)
      : declared_(std::move(declared)), warnings_(warnings) {}

  Result<std::vector<std::unique_ptr<const DocumentType>>> build() {
    for (const SdDocument& document : declared_) {
      DocumentScope& scope = scopes_[document.name];
      if (scope.declared != nullptr) {
        return error_at(document.at, fmt::format("document type {} is already declared at {}", document.name,
                                                 scope.declared->at.to_string()));
      }
      scope.declared = &document;
    }
    std::vector<std::unique_ptr<const DocumentType>> types;
    for (const SdDocument& document : declared_) {
      DocumentScope& scope = scopes_[document.name];
      FJORD_TRY(resolve_document(scope));
      types.push_back(
          std::make_unique<DocumentType>(document.name, scope.fields, scope.ancestors,
                                         DocumentType::Compression{scope.header_compression.value_or(PartCompression()),
                                                                   scope.body_compression.value_or(PartCompression())},
                                         scope.keep_while.value_or("")));
    }
    return types;
  }

 private:
  struct StructScope {
    const SdStruct* declared = nullptr;
    Progress progress = Progress::Untouched;
    ResolvedType resolved;
  };
  struct DocumentScope {
    const SdDocument* declared = nullptr;
    Progress progress = Progress::Untouched;
    std::vector<std::string> ancestors;
    std::vector<DocumentScope*> parents;
    std::unordered_map<std::string, StructScope> structs;
    std::vector<Field> fields;
    std::optional<PartCompression> header_compression;
    std::optional<PartCompression> body_compression;
    std::optional<std::string> keep_while;
  };

  Status resolve_document(DocumentScope& scope) {
    if (scope.progress == Progress::Done) return Status::ok();
    const SdDocument& document = *scope.declared;
    if (scope.progress == Progress::Running) {
      return error_at(document.at, fmt::format("document type {} inherits itself", document.name));
    }
    scope.progress = Progress::Running;
    scope.header_compression = document.header_compression;
    scope.body_compression = document.body_compression;
    scope.keep_while = document.keep_while;
    for (const std::string& name : document.inherits) {
      if (name == "document" && !scopes_.contains(name)) continue;  // a type of other systems; Fjord has none
      const auto parent = scopes_.find(name);
      if (parent == scopes_.end()) {
        return error_at(document.at, fmt::format("document type {} inherits unknown type {}", document.name, name));
      }
      FJORD_TRY(resolve_document(parent->second));
      if (!scope.header_compression) scope.header_compression = parent->second.header_compression;
      if (!scope.body_compression) scope.body_compression = parent->second.body_compression;
      if (!scope.keep_while) scope.keep_while = parent->second.keep_while;
      scope.parents.push_back(&parent->second);
      scope.ancestors.push_back(name);
      for (const std::string& ancestor : parent->second.ancestors) {
        if (std::find(scope.ancestors.begin(), scope.ancestors.end(), ancestor) == scope.ancestors.end()) {
          scope.ancestors.push_back(ancestor);
        }
      }
      for (const Field& field : parent->second.fields) FJORD_TRY(add_field(scope.fields, field, document.at));
    }
    FJORD_TRY(resolve_structs(scope));
    FJORD_TRY(resolve_fields(scope, document.fields, scope.fields, nullptr));
    FJORD_TRY(check_index(document, scope.fields));
    scope.progress = Progress::Done;
    return Status::ok();
  }

  static Status check_index(const SdDocument& document, const std::vector<Field>& fields) {
    const Field* first = nullptr;
    for (const Field& field : fields) {
      if (field.index == IndexRole::None) continue;
      if (field.type->tag() != TypeTag::String) {
        return error_at(document.at, fmt::format("field {} has an index and is of type {}; only strings have one",
                                                 field.name, field.type->name()));
      }
      if (first != nullptr) {
        return error_at(document.at, fmt::format("fields {} and {} have an index; one field of a document has one",
                                                 first->name, field.name));
      }
      first = &field;
    }
    return Status::ok();
  }

  Status resolve_structs(DocumentScope& scope) {
    for (const SdStruct& declared : scope.declared->structs) {
      if (primitive_named(declared.name) || declared.name == "position") {
        return error_at(declared.at, fmt::format("a struct cannot be called {}", declared.name));
      }
      if (!scope.structs.try_emplace(declared.name, StructScope{&declared, Progress::Untouched, {}}).second) {
        return error_at(declared.at, fmt::format("struct {} is declared twice", declared.name));
      }
    }
    for (const SdStruct& declared : scope.declared->structs) {
      FJORD_TRY_ASSIGN(ResolvedType ignored, resolve_struct(scope, scope.structs[declared.name]));
    }
    return Status::ok();
  }

  Result<ResolvedType> resolve_struct(DocumentScope& scope, StructScope& entry) {
    if (entry.progress == Progress::Done) return entry.resolved;
    const SdStruct& declared = *entry.declared;
    if (entry.progress == Progress::Running) {
      return error_at(declared.at, fmt::format("struct {} contains or inherits itself", declared.name));
    }
    entry.progress = Progress::Running;
    std::vector<Field> fields;
    int depth = 1;
    for (const std::string& name : declared.inherits) {
      FJORD_TRY_ASSIGN(auto parent, find_struct(scope, name));
      if (!parent) {
        return error_at(declared.at, fmt::format("struct {} inherits unknown struct {}", declared.name, name));
      }
      for (const Field& field : parent->type->fields()) FJORD_TRY(add_field(fields, field, declared.at));
      depth = std::max(depth, parent->depth);
    }
    FJORD_TRY(resolve_fields(scope, declared.fields, fields, &depth));
    entry.resolved = {DataType::struct_of(declared.name, std::move(fields)), depth};
    entry.progress = Progress::Done;
    return entry.resolved;
  }

  /// Finds a struct of this document type or of one that it inherits.
  Result<std::optional<ResolvedType>> find_struct(DocumentScope& scope, const std::string& name) {
    if (const auto own = scope.structs.find(name); own != scope.structs.end()) {
      FJORD_TRY_ASSIGN(ResolvedType resolved, resolve_struct(scope, own->second));
      return std::optional(std::move(resolved));
    }
    for (DocumentScope* parent : scope.parents) {
      FJORD_TRY_ASSIGN(auto resolved, find_struct(*parent, name));
      if (resolved) return resolved;
    }
    return std::optional<ResolvedType>();
  }

  /// Appends `declared` to `fields`. `struct_depth` is null for the fields of a document.
  Status resolve_fields(DocumentScope& scope, const std::vector<SdField>& declared, std::vector<Field>& fields,
                        int* struct_depth) {
    std::vector<std::string_view> seen;
    for (const SdField& each : declared) {
      if (std::find(seen.begin(), seen.end(), each.name) != seen.end()) {
        return error_at(each.at, fmt::format("field {} is declared twice", each.name));
      }
      seen.push_back(each.name);
      if (is_unsupported(each.type) || scopes_.contains(each.type.name)) {
        warnings_.add(each.at, fmt::format("field {} is left out: values of type {} are not stored", each.name,
                                           describe(each.type)));
        continue;
      }
      FJORD_TRY_ASSIGN(ResolvedType resolved, resolve_type(scope, each.type));
      if (struct_depth != nullptr) {
        if (each.index != IndexRole::None) return error_at(each.at, "a field of a struct has no index");
        *struct_depth = std::max(*struct_depth, resolved.depth + 1);
        if (*struct_depth > kValueDepthMax) {
          return error_at(each.at, fmt::format("more than {} types nested", kValueDepthMax));
        }
      }
      FJORD_TRY(
          add_field(fields, {each.name, stable_id(each.name), resolved.type, each.in_header, each.index}, each.at));
    }
    return Status::ok();
  }

  /// A field may be inherited several times or declared again if its type is the same. The last declaration decides in
  /// which part it is stored.
  static Status add_field(std::vector<Field>& fields, const Field& field, const SdPosition& at) {
    for (Field& other : fields) {
      if (other.name == field.name) {
        if (other.type->name() != field.type->name()) {
          return error_at(at, fmt::format("field {} has type {} here and {} where it is inherited from", field.name,
                                          field.type->name(), other.type->name()));
        }
        other.in_header = field.in_header;
        other.index = field.index;
        return Status::ok();
      }
      if (other.id == field.id) {
        return error_at(at, fmt::format("fields {} and {} have the same id; rename one", other.name, field.name));
      }
    }
    fields.push_back(field);
    return Status::ok();
  }

  Status want_arguments(const SdType& type, std::size_t count) {
    if (type.arguments.size() == count) return Status::ok();
    return error_at(type.at, fmt::format("{} takes {} types in <>, found {}", type.name, count, type.arguments.size()));
  }

  Result<ResolvedType> resolve_key(DocumentScope& scope, const SdType& type) {
    FJORD_TRY_ASSIGN(ResolvedType key, resolve_type(scope, type));
    switch (key.type->tag()) {
      case TypeTag::String:
      case TypeTag::Int:
      case TypeTag::Long:
      case TypeTag::Byte:
      case TypeTag::Bool:
        return key;
      default:
        return error_at(type.at,
                        fmt::format("expected string, int, long, byte or bool for what must be distinct, found {}",
                                    describe(type)));
    }
  }

  Result<ResolvedType> resolve_type(DocumentScope& scope, const SdType& type) {
    ResolvedType resolved;
    if (type.name == "array") {
      FJORD_TRY(want_arguments(type, 1));
      FJORD_TRY_ASSIGN(ResolvedType element, resolve_type(scope, type.arguments[0]));
      resolved = {DataType::array_of(element.type), element.depth + 1};
    } else if (type.name == "weightedset") {
      FJORD_TRY(want_arguments(type, 1));
      FJORD_TRY_ASSIGN(ResolvedType element, resolve_key(scope, type.arguments[0]));
      resolved = {DataType::weighted_set_of(element.type), 1};
    } else if (type.name == "map") {
      FJORD_TRY(want_arguments(type, 2));
      FJORD_TRY_ASSIGN(ResolvedType key, resolve_key(scope, type.arguments[0]));
      FJORD_TRY_ASSIGN(ResolvedType element, resolve_type(scope, type.arguments[1]));
      resolved = {DataType::map_of(key.type, element.type), element.depth + 1};
    } else {
      FJORD_TRY(want_arguments(type, 0));
      FJORD_TRY_ASSIGN(resolved, resolve_simple(scope, type));
    }
    if (resolved.depth > kValueDepthMax) {
      return error_at(type.at, fmt::format("more than {} types nested", kValueDepthMax));
    }
    return resolved;
  }

  Result<ResolvedType> resolve_simple(DocumentScope& scope, const SdType& type) {
    if (const auto tag = primitive_named(type.name)) return ResolvedType{DataType::primitive(*tag), 0};
    if (type.name == "position") return ResolvedType{position_type(), 1};
    FJORD_TRY_ASSIGN(auto found, find_struct(scope, type.name));
    if (!found) return error_at(type.at, fmt::format("unknown type {}", type.name));
    return std::move(*found);
  }

  std::vector<SdDocument> declared_;
  SdWarnings& warnings_;
  std::unordered_map<std::string, DocumentScope> scopes_;
};

/// Returns how messages call each text: one text needs no name, and users do not know the order of several.
std::vector<std::string> source_names(std::span<const std::string> sd_texts) {
  if (sd_texts.size() == 1) return {"schema"};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sd_texts.size(); ++i) {
    const Result<std::string> type = schema_name(sd_texts[i]);
    names.push_back(type ? "the schema of " + *type : fmt::format("schema {}", i + 1));
  }
  return names;
}

}  // namespace

Result<std::shared_ptr<const DocumentTypeRepo>> DocumentTypeRepo::build(std::span<const std::string> sd_texts,
                                                                        std::vector<SchemaWarning>* warnings) {
  SdWarnings passed_over;
  std::vector<SdDocument> declared;
  const std::vector<std::string> names = source_names(sd_texts);
  for (std::size_t i = 0; i < sd_texts.size(); ++i) {
    FJORD_TRY_ASSIGN(std::vector<SdDocument> documents, parse_sd(sd_texts[i], {i, names[i]}, passed_over));
    std::move(documents.begin(), documents.end(), std::back_inserter(declared));
  }
  FJORD_TRY_ASSIGN(auto types, TypeBuilder(std::move(declared), passed_over).build());
  if (warnings != nullptr) *warnings = passed_over.all();
  FJORD_TRY_ASSIGN(const std::shared_ptr<DocumentTypeRepo> repo, make(std::move(types)));
  repo->schemas_.assign(sd_texts.begin(), sd_texts.end());
  return std::shared_ptr<const DocumentTypeRepo>(repo);
}

}  // namespace fjord
