#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <rapidjson/document.h>
#include <string>
#include <vector>

#include "fjord/common/check.h"
#include "http/document_path.h"
#include "http/job_request.h"
#include "http/json_shape.h"
#include "http/json_text.h"
#include "http/message.h"
#include "http/visit_wish.h"

namespace {

using namespace fjord::gateway;

/// What the members of an object of a request may be.
struct Members {
  std::string text;
  bool flag = false;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> maybe;
  double number = 0;
  std::vector<std::string> texts;
  std::map<std::string, std::string> map;
  std::string inner;
  std::list<std::string> names;

  fjord::Status read(std::string_view body) {
    return read_json(body, JsonShape()
                               .text("text", text)
                               .flag("flag", flag)
                               .count("count", count)
                               .count("maybe", maybe)
                               .number("number", number)
                               .texts("texts", texts)
                               .text_map("map", map)
                               .object("object", JsonShape().text("inner", inner).required("inner"))
                               .objects("objects", [this] {
                                 return JsonShape().text("name", names.emplace_back()).required("name");
                               }));
  }
  std::string written() const {
    JsonText json;
    json.begin_object().member("text", text).member("flag", flag).member("count", count).member("number", number);
    if (maybe) json.member("maybe", *maybe);
    json.member("texts", texts).member("map", map).key("object").begin_object().member("inner", inner).end_object();
    json.key("objects").begin_array();
    for (const std::string& name : names) json.begin_object().member("name", name).end_object();
    return json.end_array().end_object().str();
  }
};

/// What is read is JSON, and after it was written the same is read again.
void check_members(std::string_view body) {
  Members first;
  if (!first.read(body)) return;
  rapidjson::Document tree;
  tree.Parse<rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseIterativeFlag>(body.data(), body.size());
  FJORD_CHECK(!tree.HasParseError() && tree.IsObject());
  const std::string text = first.written();
  Members second;
  const fjord::Status again = second.read(text);
  FJORD_CHECK_MSG(again, text + ": " + again.to_string());
  FJORD_CHECK_MSG(second.written() == text, text);
}

}  // namespace

/// Reads the input as the target of a request, a line break and its body: as a request of the document API and as JSON
/// of the other paths.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(input.size(), input.find('\n'));
  HttpRequest request{.method = "PUT", .target = std::string(input.substr(0, line)), .body = {}};
  const std::string body(input.substr(std::min(input.size(), line + 1)));
  check_members(body);
  static_cast<void>(read_job(body));
  static_cast<void>(HttpQuery::parse_known(request.target, {"max", "timeout", "cursor", "selection"}));
  const auto segments = split_path(request.raw_path());
  const auto query = HttpQuery::parse(request.target);
  if (!segments || !query || segments->size() < 2) return 0;
  const auto path = parse_document_path(request, *segments);
  if (!path) return 0;
  if (const auto wish = read_visit_wish(*path, *query)) FJORD_CHECK(wish->documents > 0);
  static_cast<void>(read_selection_wish(request, *path, *query));
  static_cast<void>(query->duration_ms("timeout"));
  return 0;
}
