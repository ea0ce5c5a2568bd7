#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/status.h"
#include "http/message.h"

namespace fjord::gateway {

/// Returns the beginning of an answer's body, {"pathId": ..., "id": ..., without its closing brace.
std::string begin_body(const HttpRequest& request, const std::string& id = {});
/// Returns {"pathId": ..., "id": ...}.
HttpAnswer plain_answer(const HttpRequest& request, unsigned http_status, const std::string& id);
/// Returns the answer for an error: {"pathId": ..., "id": ..., "message": ..., "code": "BUSY"}, with node, limit and
/// setting where they are known.
HttpAnswer error_answer(const HttpRequest& request, const Status& status, const std::string& id = {});
/// Returns the answer for an error that has no Status; its code follows from the HTTP status.
HttpAnswer message_answer(const HttpRequest& request, unsigned http_status, std::string_view message,
                          const std::string& id = {});
/// Returns the answer to a method that the path does not have: 204 for OPTIONS, else 405.
HttpAnswer other_method_answer(const HttpRequest& request, const std::vector<std::string>& methods);

}  // namespace fjord::gateway
