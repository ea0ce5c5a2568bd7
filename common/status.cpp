#include "fjord/common/status.h"

#include <array>

namespace fjord {

namespace {

struct NamedCode {
  StatusCode code;
  std::string_view name;
};

constexpr std::array kNames = {
    NamedCode{StatusCode::Unknown, "UNKNOWN"},
    NamedCode{StatusCode::Ok, "OK"},
    NamedCode{StatusCode::Busy, "BUSY"},
    NamedCode{StatusCode::WrongDistribution, "WRONG_DISTRIBUTION"},
    NamedCode{StatusCode::Unavailable, "UNAVAILABLE"},
    NamedCode{StatusCode::NotReady, "NOT_READY"},
    NamedCode{StatusCode::Timeout, "TIMEOUT"},
    NamedCode{StatusCode::InvalidId, "INVALID_ID"},
    NamedCode{StatusCode::UnknownType, "UNKNOWN_TYPE"},
    NamedCode{StatusCode::InvalidField, "INVALID_FIELD"},
    NamedCode{StatusCode::InvalidSelection, "INVALID_SELECTION"},
    NamedCode{StatusCode::TooLarge, "TOO_LARGE"},
    NamedCode{StatusCode::NoSpace, "NO_SPACE"},
    NamedCode{StatusCode::Unauthorized, "UNAUTHORIZED"},
    NamedCode{StatusCode::InvalidArgument, "INVALID_ARGUMENT"},
    NamedCode{StatusCode::TestAndSetFailed, "TEST_AND_SET_FAILED"},
    NamedCode{StatusCode::NotFound, "NOT_FOUND"},
    NamedCode{StatusCode::AlreadyExists, "ALREADY_EXISTS"},
    NamedCode{StatusCode::Corruption, "CORRUPTION"},
    NamedCode{StatusCode::IoError, "IO_ERROR"},
    NamedCode{StatusCode::Cancelled, "CANCELLED"},
    NamedCode{StatusCode::NotImplemented, "NOT_IMPLEMENTED"},
};

}  // namespace

std::string_view to_string(StatusCode code) {
  for (const NamedCode& named : kNames) {
    if (named.code == code) return named.name;
  }
  return "UNKNOWN";  // the code comes from a newer peer
}

StatusCode status_code_from_string(std::string_view name) {
  for (const NamedCode& named : kNames) {
    if (named.name == name) return named.code;
  }
  return StatusCode::Unknown;
}

bool is_transient(StatusCode code) {
  switch (code) {
    case StatusCode::Busy:
    case StatusCode::WrongDistribution:
    case StatusCode::Unavailable:
    case StatusCode::NotReady:
      return true;
    default:
      return false;
  }
}

Status::Status(StatusCode code, std::string message) : Status(code, std::move(message), {}) {}

Status::Status(StatusCode code, std::string message, ErrorDetails details) : code_(code) {
  if (code == StatusCode::Ok) details = {};
  if (message.empty() && details == ErrorDetails{}) return;
  about_ = std::make_shared<const About>(std::move(message), std::move(details));
}

const std::string& Status::message() const {
  static const std::string none;
  return about_ != nullptr ? about_->message : none;
}

const ErrorDetails& Status::details() const {
  static const ErrorDetails none;
  return about_ != nullptr ? about_->details : none;
}

std::string Status::to_string() const {
  std::string text(fjord::to_string(code_));
  if (!message().empty()) text.append(": ").append(message());
  return text;
}

Status Status::with_context(std::string_view context) const {
  if (is_ok()) return *this;
  return Status(code_, std::string(context).append(": ").append(message()), details());
}

Status Status::with_details(ErrorDetails more) const {
  if (is_ok()) return *this;
  const ErrorDetails& known = details();
  if (!known.node.empty()) more.node = known.node;
  if (!known.limit.empty()) more.limit = known.limit;
  if (!known.setting.empty()) more.setting = known.setting;
  if (!known.idempotency_key.empty()) more.idempotency_key = known.idempotency_key;
  return Status(code_, message(), std::move(more));
}

}  // namespace fjord
