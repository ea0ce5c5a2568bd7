#include "fjord/document/schema_change.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

namespace fjord {
namespace {

using Kind = SchemaProblem::Kind;

class ChangeChecker {
 public:
  ChangeChecker(const DocumentTypeRepo& from, const DocumentTypeRepo& to, const SchemaChangeOptions& options)
      : from_(from), to_(to), options_(options) {}

  std::vector<SchemaProblem> check() {
    for (const auto& before : from_.types()) {
      const DocumentType* after = to_.find(before->name());
      if (after == nullptr) {
        check_removed_type(*before);
      } else {
        check_type(*before, *after);
      }
    }
    return std::move(problems_);
  }

 private:
  void add(Kind kind, std::string place, std::string why, std::string instead) {
    problems_.push_back({kind, std::move(place), std::move(why), std::move(instead)});
  }

  bool may_drop(const std::string& place) const {
    return std::find(options_.may_drop.begin(), options_.may_drop.end(), place) != options_.may_drop.end();
  }

  void check_removed_type(const DocumentType& before) {
    if (const DocumentType* other = to_.find(before.id())) {
      add(Kind::IdTaken, before.name(),
          fmt::format("it is removed, and {} has the same id, so its documents would be taken for those of {}",
                      other->name(), other->name()),
          fmt::format("give {} another name", other->name()));
    } else if (!may_drop(before.name())) {
      add(Kind::TypeRemoved, before.name(), "it is removed, and stored documents of it could not be read any more",
          fmt::format("remove the documents first, then allow the loss: fjord schema deploy --allow-drop {}",
                      before.name()));
    }
  }

  void check_type(const DocumentType& before, const DocumentType& after) {
    compared_.clear();
    for (const std::string& ancestor : before.ancestors()) {
      const std::string place = fmt::format("{} inherits {}", before.name(), ancestor);
      if (after.is_a(ancestor) || may_drop(place)) continue;
      add(Kind::InheritanceRemoved, place,
          fmt::format("selections and field sets that name {} would leave out its stored documents", ancestor),
          fmt::format("keep inheriting it, or allow the loss: fjord schema deploy --allow-drop '{}'", place));
    }
    check_fields(before.name(), before.fields(), after.fields());
    for (const Field& field : before.fields()) {
      const Field* kept = after.field(field.name);
      if (kept == nullptr || field.in_header || !kept->in_header) continue;
      add(Kind::FieldMoved, fmt::format("{}.{}", before.name(), field.name),
          "it moves from the body to the header, where readers of headers alone would miss it in stored documents",
          "add a field with another name to the header and copy the values");
    }
  }

  void check_fields(const std::string& owner, const std::vector<Field>& before, const std::vector<Field>& after) {
    const auto find = [&](auto matches) {
      const auto at = std::find_if(after.begin(), after.end(), matches);
      return at == after.end() ? nullptr : &*at;
    };
    for (const Field& field : before) {
      const std::string place = fmt::format("{}.{}", owner, field.name);
      if (const Field* kept = find([&](const Field& f) { return f.name == field.name; })) {
        check_data_type(owner, place, *field.type, *kept->type);
      } else if (const Field* other = find([&](const Field& f) { return f.id == field.id; })) {
        add(Kind::IdTaken, place,
            fmt::format("it is removed, and {} has the same id, so its stored values would be taken for those of {}",
                        other->name, other->name),
            fmt::format("give {} another name", other->name));
      } else if (!may_drop(place)) {
        add(Kind::FieldRemoved, place, "it is removed, and stored documents that have it could not be read whole",
            fmt::format("keep it, or clear it in all documents and allow the loss: fjord schema deploy --allow-drop {}",
                        place));
      }
    }
  }

  /// Compares the structure of types, not their names.
  void check_data_type(const std::string& owner, const std::string& place, const DataType& before,
                       const DataType& after) {
    if (before.tag() != after.tag()) {
      add(Kind::TypeChanged, place,
          fmt::format("its type changes from {} to {}, and stored values of it could not be read", before.name(),
                      after.name()),
          "add a field with another name and copy the values");
      return;
    }
    if (before.tag() == TypeTag::Struct) {
      check_struct(owner, before, after);
      return;
    }
    if (before.key() != nullptr) check_data_type(owner, place + ", its keys", *before.key(), *after.key());
    if (before.element() != nullptr) {
      check_data_type(owner, place + ", its elements", *before.element(), *after.element());
    }
  }

  /// Compares each pair of structs once, even if many fields have it.
  void check_struct(const std::string& owner, const DataType& before, const DataType& after) {
    if (!compared_.emplace(before.name(), after.name()).second) return;
    const std::string type_name = owner.substr(0, owner.find('.'));
    check_fields(fmt::format("{}.{}", type_name, before.name()), before.fields(), after.fields());
  }

  const DocumentTypeRepo& from_;
  const DocumentTypeRepo& to_;
  const SchemaChangeOptions& options_;
  std::set<std::pair<std::string, std::string>> compared_;  // pairs of old and new structs of the current document type
  std::vector<SchemaProblem> problems_;
};

}  // namespace

std::string SchemaProblem::to_string() const { return fmt::format("{}: {}; {}", place, why, instead); }

std::vector<SchemaProblem> schema_problems(const DocumentTypeRepo& from, const DocumentTypeRepo& to,
                                           const SchemaChangeOptions& options) {
  return ChangeChecker(from, to, options).check();
}

Status check_schema_change(const DocumentTypeRepo& from, const DocumentTypeRepo& to,
                           const SchemaChangeOptions& options) {
  constexpr std::size_t kListed = 20;
  const std::vector<SchemaProblem> problems = schema_problems(from, to, options);
  if (problems.empty()) return Status::ok();
  std::string text = "the new schema does not fit what is stored";
  for (std::size_t i = 0; i < problems.size() && i < kListed; ++i) text += "\n" + problems[i].to_string();
  if (problems.size() > kListed) text += fmt::format("\nand {} more", problems.size() - kListed);
  return {StatusCode::InvalidArgument, std::move(text)};
}

}  // namespace fjord
