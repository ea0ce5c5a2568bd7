#include "conditional_write.h"

#include <algorithm>
#include <fmt/core.h>

#include "fjord/storage/spi/token_entry.h"

namespace fjord::distributor {
namespace {

constexpr std::size_t kConditionShown = 200;

}  // namespace

ConditionalWrite::ConditionalWrite(const rpc::Operation& operation, GlobalId gid,
                                   std::shared_ptr<const DocumentTypeRepo> types)
    : operation_(operation), gid_(gid), types_(std::move(types)) {}

Result<std::unique_ptr<ConditionalWrite>> ConditionalWrite::parse(const rpc::Operation& operation, const DocumentId& id,
                                                                  std::shared_ptr<const DocumentTypeRepo> types) {
  if (operation.token.size() > rpc::kTokenBytesMax) {
    return Status(StatusCode::InvalidArgument, fmt::format("a token of {} bytes; at most {} are allowed",
                                                           operation.token.size(), rpc::kTokenBytesMax));
  }
  std::unique_ptr<ConditionalWrite> write(new ConditionalWrite(operation, id.gid(), std::move(types)));
  if (!operation.token.empty()) write->token_gid_ = spi::token_gid(id.gid(), operation.token);
  if (!operation.condition.empty()) {
    FJORD_TRY_ASSIGN(write->condition_, Selection::parse(operation.condition, *write->types_));
  }
  if (operation.kind != rpc::OperationKind::Update) return write;
  if (operation.json.empty()) {
    FJORD_TRY_ASSIGN(write->update_, DocumentUpdate::decode(*write->types_, operation.update));
    if (write->update_->id() != id) {
      return Status(StatusCode::InvalidId, "the update names another id than the operation, " + operation.id);
    }
  } else {
    const DocumentType* type = write->types_->find(id.type());
    if (type == nullptr) {
      return Status(StatusCode::UnknownType, "there is no document type '" + std::string(id.type()) + "'");
    }
    FJORD_TRY_ASSIGN(write->update_, DocumentUpdate::from_json_fields(*type, id, operation.json));
  }
  if (operation.create) write->update_->set_create_if_missing(true);
  return write;
}

std::optional<ConditionalWrite::Decision> ConditionalWrite::look_at_token(const rpc::OperationResult& stored,
                                                                          std::uint64_t sent_timestamp_us) const {
  if (!operation_.token.empty()) {
    const std::optional<spi::TokenEntry> entry = spi::TokenEntry::parse(stored.token_entry);
    if (!entry || !entry->is_of(operation_.token) || entry->state == spi::TokenEntry::State::Cancelled) return {};
    return Decision{.kind = Decision::Kind::AlreadyApplied,
                    .status = Status::ok(),
                    .timestamp_us = stored.token_timestamp_us,
                    .existed = entry->state == spi::TokenEntry::State::Existed};
  }
  if (sent_timestamp_us == 0 || stored.timestamp_us < sent_timestamp_us) return {};
  if (stored.timestamp_us == sent_timestamp_us) {
    return Decision{.kind = Decision::Kind::AlreadyApplied,
                    .status = Status::ok(),
                    .timestamp_us = sent_timestamp_us,
                    .existed = content_.existed};
  }
  return Decision{.kind = Decision::Kind::Unknown,
                  .status = Status(StatusCode::Timeout,
                                   "it was sent before, and a newer version is there now; a token would tell whether "
                                   "it was applied")};
}

Status ConditionalWrite::check_version(std::uint64_t version_us) const {
  if (!operation_.required_version || *operation_.required_version == version_us) return Status::ok();
  const std::string required =
      *operation_.required_version == 0
          ? std::string("that there is none is required")
          : fmt::format("version {} of {} is required", *operation_.required_version, operation_.id);
  const std::string found = version_us == 0 ? fmt::format("there is no document {}", operation_.id)
                                            : fmt::format("the document {} has version {}", operation_.id, version_us);
  return Status(StatusCode::TestAndSetFailed, fmt::format("{}, and {}", found, required));
}

Status ConditionalWrite::check_condition(const DocumentView* view, std::int64_t now_seconds) const {
  if (!condition_) return Status::ok();
  const std::string text = operation_.condition.substr(0, kConditionShown);
  if (view == nullptr) {
    const bool create = operation_.create || (update_ && update_->create_if_missing());
    if (create && operation_.kind != rpc::OperationKind::Remove) return Status::ok();
    return Status(StatusCode::TestAndSetFailed,
                  fmt::format("there is no document {} for the condition {}", operation_.id, text));
  }
  FJORD_TRY_ASSIGN(const Match match, condition_->needs_now() ? condition_->with_now(now_seconds).try_evaluate(*view)
                                                              : condition_->try_evaluate(*view));
  if (match == Match::True) return Status::ok();
  return Status(StatusCode::TestAndSetFailed, fmt::format("the condition {} is {} for {}", text,
                                                          match == Match::False ? "false" : "invalid", operation_.id));
}

Status ConditionalWrite::make_content(const DocumentView* view) {
  content_.remove = operation_.kind == rpc::OperationKind::Remove;
  if (update_) {
    FJORD_TRY_ASSIGN(EncodedDocument document, update_->apply_to(view));
    content_.header = std::move(document.header);
    content_.body = std::move(document.body);
  } else if (!content_.remove) {
    content_.header = operation_.header;
    content_.body = operation_.body;
  }
  return Status::ok();
}

ConditionalWrite::Decision ConditionalWrite::decide(const rpc::OperationResult& stored, std::uint64_t sent_timestamp_us,
                                                    std::int64_t now_seconds) {
  if (std::optional<Decision> known = look_at_token(stored, sent_timestamp_us)) return *known;
  Decision decision;
  std::optional<DocumentView> view;
  if (stored.status) {
    Result<DocumentView> opened = DocumentView::open(*types_, stored.header, stored.body);
    if (!opened) {
      decision.status = opened.error();
      return decision;
    }
    view = *opened;
    decision.version_us = stored.timestamp_us;
  }
  const DocumentView* existing = view ? &*view : nullptr;
  decision.status = check_version(decision.version_us);
  if (!decision.status) return decision;
  decision.status = check_condition(existing, now_seconds);
  if (!decision.status) {
    if (existing != nullptr && decision.status.code() == StatusCode::TestAndSetFailed) {
      decision.status = Status(StatusCode::TestAndSetFailed,
                               fmt::format("{}, version {}", decision.status.message(), stored.timestamp_us));
    }
    return decision;
  }
  decision.status = make_content(existing);
  if (!decision.status) return decision;
  decision.kind = Decision::Kind::Write;
  content_.existed = existing != nullptr;
  content_.read_us = stored.timestamp_us;
  content_.newer_than_us = std::max({stored.timestamp_us, stored.token_timestamp_us, sent_timestamp_us});
  if (!operation_.token.empty()) {
    content_.token_entry = spi::TokenEntry::of(gid_, operation_.token, content_.existed).id();
  }
  return decision;
}

}  // namespace fjord::distributor
