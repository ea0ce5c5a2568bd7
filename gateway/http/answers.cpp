#include "http/answers.h"

#include <fmt/format.h>

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
  HttpAnswer answer{.status = http_status, .body = begin_body(request, id) + ",\"message\":"};
  append_json_string(answer.body, message);
  answer.body += '}';
  if (http_status == 429 || http_status == 503) answer.retry_after_seconds = kRetryAfterSeconds;
  return answer;
}

HttpAnswer error_answer(const HttpRequest& request, const Status& status, const std::string& id) {
  HttpAnswer answer = message_answer(request, http_status_of(status.code()), status.message(), id);
  answer.body.pop_back();
  const std::pair<std::string_view, std::string_view> members[] = {{"code", to_string(status.code())},
                                                                   {"node", status.node()},
                                                                   {"limit", status.limit()},
                                                                   {"setting", status.setting()}};
  for (const auto& [name, value] : members) {
    if (value.empty()) continue;
    answer.body += fmt::format(",\"{}\":", name);
    append_json_string(answer.body, value);
  }
  answer.body += '}';
  return answer;
}

}  // namespace fjord::gateway
