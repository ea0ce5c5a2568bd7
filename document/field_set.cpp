#include "fjord/document/field_set.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>

#include "text.h"
#include "wire.h"

namespace fjord {
namespace {

/// "a, b, c and 4 more", for errors that list valid names.
template <typename Names>
std::string some_of(const Names& names) {
  constexpr std::size_t kNamed = 20;
  std::string text;
  std::size_t count = 0;
  for (const auto& each : names) {
    if (++count <= kNamed) text += (text.empty() ? "" : ", ") + each;
  }
  if (count > kNamed) text += fmt::format(" and {} more", count - kNamed);
  return text.empty() ? "none" : text;
}

std::vector<std::string> names_of(const std::vector<Field>& fields) {
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.name);
  return names;
}

}  // namespace

class FieldSetParser {
 public:
  FieldSetParser(const DocumentTypeRepo& repo, std::string_view text) : repo_(repo), text_(text) {}

  Result<FieldSet> parse() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') {
      FJORD_TRY(parse_keyword());
      return std::move(set_);
    }
    const std::size_t type_at = at_;
    const std::string_view name = take_name();
    if (name.empty() || at_ == text_.size() || text_[at_] != ':') {
      return error(StatusCode::InvalidArgument, at_, "expected [all], [document], [id], [none] or <type>:<fields>");
    }
    const DocumentType* type = repo_.find(name);
    if (type == nullptr) return error(StatusCode::UnknownType, type_at, unknown_type(name));
    ++at_;
    FJORD_TRY_ASSIGN(const std::vector<const Field*> fields, parse_fields(*type));
    finish(*type, fields);
    return std::move(set_);
  }

 private:
  Status error(StatusCode code, std::size_t at, std::string_view what) const {
    return {code, fmt::format("field set {}, byte {}: {}", quoted(text_), at, what)};
  }

  std::string unknown_type(std::string_view name) const {
    std::vector<std::string> known;
    for (const auto& type : repo_.types()) known.push_back(type->name());
    return fmt::format("unknown document type {}; there are {}", quoted(name), some_of(known));
  }

  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view take_name() {
    skip_space();
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(" ,:[]", at_), text_.size());
    const std::string_view name = text_.substr(begin, at_ - begin);
    skip_space();
    return name;
  }

  Status expect_end() {
    skip_space();
    if (at_ == text_.size()) return Status::ok();
    return error(StatusCode::InvalidArgument, at_, "expected nothing more");
  }

  /// Skips `word`, e.g. "[document]", if it is at the current position.
  bool take_keyword(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Status parse_keyword() {
    if (take_keyword("[all]") || take_keyword("[document]")) {
      set_.kind_ = FieldSet::Kind::All;
      set_.text_ = "[all]";
    } else if (take_keyword("[id]")) {
      set_.kind_ = FieldSet::Kind::Id;
      set_.text_ = "[id]";
    } else if (take_keyword("[none]")) {
      set_.kind_ = FieldSet::Kind::None;
      set_.text_ = "[none]";
    } else {
      return error(StatusCode::InvalidArgument, at_, "expected [all], [document], [id] or [none]");
    }
    return expect_end();
  }

  Result<std::vector<const Field*>> parse_fields(const DocumentType& type) {
    set_.text_ = type.name() + ":";
    std::vector<const Field*> fields;
    skip_space();
    if (take_keyword("[document]")) {
      FJORD_TRY(expect_end());
      set_.text_ += "[document]";
      for (const Field& field : type.fields()) fields.push_back(&field);
      return fields;
    }
    while (true) {
      skip_space();
      const std::size_t begin = at_;
      const std::string_view name = take_name();
      const Field* field = type.field(name);
      if (name.empty()) return error(StatusCode::InvalidArgument, begin, "expected the name of a field or [document]");
      if (field == nullptr) {
        return error(StatusCode::InvalidField, begin,
                     fmt::format("document type {} has no field {}; it has {}", type.name(), quoted(name),
                                 some_of(names_of(type.fields()))));
      }
      if (std::find(fields.begin(), fields.end(), field) == fields.end()) {
        set_.text_ += (fields.empty() ? "" : ",") + field->name;
        fields.push_back(field);
      }
      if (at_ == text_.size()) return fields;
      if (text_[at_] != ',') return error(StatusCode::InvalidArgument, at_, "expected ',' between fields");
      ++at_;
    }
  }

  void finish(const DocumentType& named, const std::vector<const Field*>& fields) {
    set_.kind_ = FieldSet::Kind::Fields;
    std::vector<std::uint32_t> ids;
    for (const Field* field : fields) ids.push_back(field->id);
    std::sort(ids.begin(), ids.end());
    for (const auto& type : repo_.types()) {
      if (!type->is_a(named.name())) continue;
      set_.types_.push_back({type->id(), ids});
      // A type may store an inherited field in another part (header or body) than its base type does.
      for (const Field* field : fields) {
        const Field* declared = type->field_by_id(field->id);
        if (declared == nullptr) continue;
        (declared->in_header ? set_.needs_header_fields_ : set_.needs_body_) = true;
      }
    }
    std::sort(set_.types_.begin(), set_.types_.end(),
              [](const auto& a, const auto& b) { return a.type_id < b.type_id; });
  }

  const DocumentTypeRepo& repo_;
  std::string_view text_;
  std::size_t at_ = 0;
  FieldSet set_;
};

Result<FieldSet> FieldSet::parse(const DocumentTypeRepo& repo, std::string_view text) {
  return FieldSetParser(repo, text).parse();
}

namespace {

/// The fields of `part` whose ids are in `ids`, after the bytes `prefix` that precede the part and are always kept.
/// Returns a view of the input if the kept fields are one run from its start, else of `out`.
Result<std::string_view> keep_fields(std::string_view prefix, std::string_view part, std::span<const std::uint32_t> ids,
                                     std::string& out) {
  bool copied = false;
  const char* kept_end = part.data();  // end of the kept fields while nothing is copied
  const char* field_begin = part.data();
  std::size_t next = 0;
  FieldCursor at(part);
  while (at.next()) {
    const char* field_end = at.slice().bytes.data() + at.slice().bytes.size();
    while (next < ids.size() && ids[next] < at.field_id()) ++next;
    if (next < ids.size() && ids[next] == at.field_id()) {
      if (!copied && field_begin != kept_end) {
        out.assign(prefix.data(), static_cast<std::size_t>(kept_end - prefix.data()));
        copied = true;
      }
      if (copied) out.append(field_begin, static_cast<std::size_t>(field_end - field_begin));
      if (!copied) kept_end = field_end;
    }
    field_begin = field_end;
  }
  if (!at.ok()) return Status(StatusCode::Corruption, "malformed fields");
  if (copied) return std::string_view(out);
  return std::string_view(prefix.data(), static_cast<std::size_t>(kept_end - prefix.data()));
}

}  // namespace

Result<ProjectedDocument> FieldSet::project(std::string_view header, std::string_view body,
                                            EncodedDocument& buffer) const {
  if (kind_ == Kind::All) return ProjectedDocument{header, body};
  if (kind_ == Kind::None) return ProjectedDocument{};
  const auto prefix = read_header_prefix(header);
  if (!prefix) {
    return Status(StatusCode::Corruption, fmt::format("malformed document header of {} bytes", header.size()));
  }
  const std::string_view prefix_bytes = header.substr(0, header.size() - prefix->fields.size());
  const auto type = std::lower_bound(types_.begin(), types_.end(), prefix->type_id,
                                     [](const TypeFields& each, std::uint32_t id) { return each.type_id < id; });
  if (type == types_.end() || type->type_id != prefix->type_id) return ProjectedDocument{prefix_bytes, {}};

  ProjectedDocument projected;
  auto kept = keep_fields(prefix_bytes, prefix->fields, type->field_ids, buffer.header);
  if (kept) {
    projected.header = *kept;
    if (!needs_body_) return projected;
    kept = keep_fields(body.substr(0, 0), body, type->field_ids, buffer.body);
  }
  if (!kept) return kept.error().with_context(fmt::format("document {}", quoted(prefix->id)));
  projected.body = *kept;
  return projected;
}

}  // namespace fjord
