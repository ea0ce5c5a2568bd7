#include "http/answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "http/json_body.h"

namespace fjord::gateway {
namespace {

constexpr int kRetryAfterSeconds = 1;

unsigned http_status_of(StatusCode code) {
  switch (code) {
    case StatusCode::Ok:
      return 200;
    case StatusCode::InvalidId:
    case StatusCode::UnknownType:
    case StatusCode::InvalidField:
    case StatusCode::InvalidSelection:
    case StatusCode::InvalidArgument:
      return 400;
    case StatusCode::Unauthorized:
      return 403;
    case StatusCode::NotFound:
      return 404;
    case StatusCode::TestAndSetFailed:
    case StatusCode::AlreadyExists:
      return 412;
    case StatusCode::TooLarge:
      return 413;
    case StatusCode::Busy:
      return 429;
    case StatusCode::NotImplemented:
      return 501;
    case StatusCode::WrongDistribution:
    case StatusCode::Unavailable:
    case StatusCode::NotReady:
    case StatusCode::Cancelled:
      return 503;
    case StatusCode::Timeout:
      return 504;
    case StatusCode::NoSpace:
      return 507;
    default:
      return 500;
  }
}

/// Returns the code of an error that has no Status.
StatusCode code_of(unsigned http_status) {
  switch (http_status) {
    case 403:
      return StatusCode::Unauthorized;
    case 404:
      return StatusCode::NotFound;
    case 405:
    case 417:
      return StatusCode::NotImplemented;
    case 408:  // The request did not arrive, so that nothing was done.
      return StatusCode::NotReady;
    case 413:
    case 431:
      return StatusCode::TooLarge;
    case 429:
      return StatusCode::Busy;
    case 500:
      return StatusCode::Unknown;
    case 503:
      return StatusCode::Unavailable;
    default:
      return StatusCode::InvalidArgument;
  }
}

HttpAnswer answer_of(const HttpRequest& request, unsigned http_status, const Status& status, const std::string& id) {
  HttpAnswer answer{.status = http_status, .body = begin_body(request, id)};
  const std::pair<std::string_view, std::string_view> members[] = {{"message", status.message()},
                                                                   {"code", to_string(status.code())},
                                                                   {"node", status.node()},
                                                                   {"limit", status.limit()},
                                                                   {"setting", status.setting()}};
  for (const auto& [name, value] : members) {
    if (value.empty() && name != "message") continue;
    answer.body += fmt::format(",\"{}\":", name);
    append_json_string(answer.body, value);
  }
  answer.body += '}';
  if (http_status == 429 || http_status == 503) answer.retry_after_seconds = kRetryAfterSeconds;
  return answer;
}

}  // namespace

std::string begin_body(const HttpRequest& request, const std::string& id) {
  std::string body = "{\"pathId\":";
  append_json_string(body, request.raw_path());
  if (!id.empty()) {
    body += ",\"id\":";
    append_json_string(body, id);
  }
  return body;
}

HttpAnswer plain_answer(const HttpRequest& request, unsigned http_status, const std::string& id) {
  return {.status = http_status, .body = begin_body(request, id) + "}"};
}

HttpAnswer message_answer(const HttpRequest& request, unsigned http_status, std::string_view message,
                          const std::string& id) {
  return answer_of(request, http_status, {code_of(http_status), std::string(message)}, id);
}

HttpAnswer other_method_answer(const HttpRequest& request, const std::vector<std::string>& methods) {
  const bool asks_for_methods = request.method == "OPTIONS";
  HttpAnswer answer = asks_for_methods
                          ? HttpAnswer{.status = 204, .body = {}}
                          : message_answer(request, 405,
                                           fmt::format("'{}' not allowed at '{}'. Allowed methods are: {}",
                                                       request.method, request.raw_path(), fmt::join(methods, ", ")));
  answer.allow = fmt::format("{}", fmt::join(methods, ","));
  return answer;
}

HttpAnswer error_answer(const HttpRequest& request, const Status& status, const std::string& id) {
  return answer_of(request, http_status_of(status.code()), status, id);
}

}  // namespace fjord::gateway
