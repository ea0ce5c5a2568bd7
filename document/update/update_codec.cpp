// The form in which updates travel. Format: FORMAT.md.

#include <fmt/format.h>

#include "fjord/document/document_update.h"
#include "update_target.h"
#include "wire.h"

namespace fjord {
namespace {

constexpr std::uint8_t kUpdateFormatVersion = 1;
constexpr std::uint8_t kFlagCreate = 1;

Status corrupt(std::string_view what) { return {StatusCode::Corruption, fmt::format("update: {}", what)}; }

/// Writes the tag too, so that a value is never read as one of another type of the same size.
void append_tagged(std::string& out, const DataType& type, const FieldValue& value) {
  append_tag(out, type.tag());
  append_value(out, type, value);
}

void append_step(std::string& out, const DataType& type, const UpdateStep& step) {
  out.push_back(static_cast<char>(step.kind));
  if (step.kind == UpdateStep::Kind::Key) {
    LengthPrefix length(out);
    append_tagged(out, *key_type_of(type), step.key);
    length.finish();
  } else if (step.kind == UpdateStep::Kind::Index) {
    put_varint(out, step.number);
  } else {
    put_fixed(out, step.number);
  }
}

void append_operand(std::string& out, const DataType& target, const FieldUpdate& update) {
  LengthPrefix length(out);
  if (update.action == UpdateAction::Assign || update.action == UpdateAction::Add) {
    append_tagged(out, target, update.operand);
  } else if (update.action == UpdateAction::Remove) {
    // The array type refers to the schema's element type through a shared_ptr without ownership; it is used only in
    // this call.
    const DataType* key = key_type_of(target);
    const std::shared_ptr<const DataType> element(std::shared_ptr<void>(), key == nullptr ? target.element() : key);
    append_tagged(out, *DataType::array_of(element), update.operand);
  } else if (is_arithmetic(update.action)) {
    append_tagged(out, *DataType::primitive(update.operand.tag()), update.operand);
  }
  length.finish();
}

/// Decodes a value; add() checks whether it fits the change.
Result<FieldValue> tagged_value(std::string_view bytes) {
  if (bytes.empty()) return corrupt("a value without tag");
  return FieldSlice{static_cast<TypeTag>(bytes[0]), bytes.substr(1)}.value();
}

class UpdateDecoder {
 public:
  UpdateDecoder(const DocumentTypeRepo& repo, std::string_view bytes) : repo_(repo), reader_(bytes) {}

  Result<DocumentUpdate> decode() {
    const auto version = reader_.fixed<std::uint8_t>();
    if (!reader_.ok()) return corrupt("no bytes");
    if (version != kUpdateFormatVersion) return corrupt(fmt::format("unknown version {}", version));
    const std::string_view id_text = reader_.string();
    const auto type_id = reader_.fixed<std::uint32_t>();
    const auto flags = reader_.fixed<std::uint8_t>();
    const std::uint64_t count = reader_.varint();
    if (!reader_.ok() || (flags & ~kFlagCreate) != 0) return corrupt("malformed start");
    FJORD_TRY_ASSIGN(DocumentId id, DocumentId::parse(id_text));
    const DocumentType* type = repo_.find(type_id);
    if (type == nullptr) {
      return Status(StatusCode::UnknownType,
                    fmt::format("update of document {}: no document type with id {}", id.str(), type_id));
    }
    if (!id.type().empty() && id.type() != type->name()) {
      return Status(StatusCode::InvalidId,
                    fmt::format("update of document {}: its type is {}", id.str(), type->name()));
    }
    DocumentUpdate update(*type, std::move(id));
    update.set_create_if_missing((flags & kFlagCreate) != 0);
    for (std::uint64_t i = 0; i < count; ++i) {
      FJORD_TRY_ASSIGN(FieldUpdate each, take_update(*type));
      FJORD_TRY(update.add(std::move(each)));
    }
    if (!reader_.at_end()) return corrupt("bytes after the last change");
    return update;
  }

 private:
  Result<FieldUpdate> take_update(const DocumentType& type) {
    const auto field_id = reader_.fixed<std::uint32_t>();
    const auto action = static_cast<UpdateAction>(reader_.fixed<std::uint8_t>());
    const std::uint64_t steps = reader_.varint();
    if (!reader_.ok() || steps > static_cast<std::uint64_t>(kValueDepthMax)) return corrupt("malformed change");
    FieldUpdate update;
    update.action = action;
    update.field = type.field_by_id(field_id);
    if (update.field == nullptr) {
      return Status(StatusCode::InvalidField,
                    fmt::format("update: document type {} has no field with id {}", type.name(), field_id));
    }
    const DataType* target = update.field->type.get();
    for (std::uint64_t i = 0; i < steps; ++i) {
      FJORD_TRY_ASSIGN(UpdateStep step, take_step());
      FJORD_TRY_ASSIGN(target, step_into(*target, step));
      update.path.push_back(std::move(step));
    }
    const std::string_view operand = reader_.string();
    if (!reader_.ok()) return corrupt("truncated operand");
    if (!operand.empty()) {
      FJORD_TRY_ASSIGN(update.operand, tagged_value(operand));
    }
    return update;
  }

  Result<UpdateStep> take_step() {
    UpdateStep step{static_cast<UpdateStep::Kind>(reader_.fixed<std::uint8_t>()), 0, {}};
    switch (step.kind) {
      case UpdateStep::Kind::Member:
        step.number = reader_.fixed<std::uint32_t>();
        break;
      case UpdateStep::Kind::Index: {
        const std::uint64_t index = reader_.varint();
        if (index > UINT32_MAX) return corrupt("a position beyond 32 bits");
        step.number = static_cast<std::uint32_t>(index);
        break;
      }
      case UpdateStep::Kind::Key: {
        const std::string_view bytes = reader_.string();
        if (reader_.ok()) {
          FJORD_TRY_ASSIGN(step.key, tagged_value(bytes));
        }
        break;
      }
      default:
        return corrupt("an unknown kind of step");
    }
    if (!reader_.ok()) return corrupt("truncated path");
    return step;
  }

  const DocumentTypeRepo& repo_;
  ByteReader reader_;
};

}  // namespace

std::string DocumentUpdate::encode() const {
  std::string out;
  put_fixed(out, kUpdateFormatVersion);
  put_string(out, id_.str());
  put_fixed(out, type_->id());
  put_fixed(out, static_cast<std::uint8_t>(create_if_missing_ ? kFlagCreate : 0));
  put_varint(out, updates_.size());
  for (const FieldUpdate& update : updates_) {
    put_fixed(out, update.field->id);
    put_fixed(out, static_cast<std::uint8_t>(update.action));
    put_varint(out, update.path.size());
    const DataType* target = update.field->type.get();
    for (const UpdateStep& step : update.path) {
      append_step(out, *target, step);
      target = step_into(*target, step).value();
    }
    append_operand(out, *target, update);
  }
  return out;
}

Result<DocumentUpdate> DocumentUpdate::decode(const DocumentTypeRepo& repo, std::string_view bytes) {
  return UpdateDecoder(repo, bytes).decode();
}

std::string_view DocumentUpdate::id_of(std::string_view bytes) {
  ByteReader reader(bytes);
  if (reader.fixed<std::uint8_t>() != kUpdateFormatVersion) return {};
  const std::string_view id = reader.string();
  return reader.ok() ? id : std::string_view();
}

}  // namespace fjord
