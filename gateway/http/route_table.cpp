#include "http/route_table.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <utility>

namespace fjord::gateway {
namespace {

/// Largest body of a request that is not about a document. It is small because these bodies are kept as values.
constexpr std::size_t kBodyBytesMax = std::size_t{4} << 20;

bool is_variable(const std::string& segment) { return segment.starts_with('{'); }

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> segments;
  path.remove_prefix(1);
  for (;;) {
    const std::size_t slash = path.find('/');
    segments.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

bool matches(const std::vector<std::string>& segments, const std::vector<std::string>& path) {
  return std::equal(segments.begin(), segments.end(), path.begin(), path.end(),
                    [](const std::string& segment, const std::string& given) {
                      return is_variable(segment) ? !given.empty() : segment == given;
                    });
}

}  // namespace

std::string ApiCall::text(const std::string& name) const {
  const std::string* value = query.find(name);
  return value == nullptr ? std::string() : *value;
}

Result<std::uint64_t> ApiCall::count(const std::string& name, std::uint64_t otherwise, std::uint64_t min,
                                     std::uint64_t max) const {
  FJORD_TRY_ASSIGN(const auto given, query.number(name));
  if (!given) return otherwise;
  if (*given >= 0 && static_cast<std::uint64_t>(*given) >= min && static_cast<std::uint64_t>(*given) <= max) {
    return static_cast<std::uint64_t>(*given);
  }
  const std::string limit = fmt::format("{} to {}", min, max);
  return Status(StatusCode::InvalidArgument,
                fmt::format("request property '{}' is {}: expected {}", name, *given, limit), {.limit = limit});
}

Result<std::string> ApiCall::required(const std::string& name) const {
  if (const std::string* value = query.find(name)) return *value;
  return Status(StatusCode::InvalidArgument, fmt::format("request property '{}' is missing", name));
}

Result<Duration> ApiCall::duration(const std::string& name, Duration otherwise) const {
  FJORD_TRY_ASSIGN(const auto given, query.duration_ms(name));
  return given ? Duration(milliseconds(*given)) : otherwise;
}

std::vector<std::string> ApiCall::words(const std::string& name) const {
  const std::string text = this->text(name);
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

namespace {

void write_members(const Status& status, JsonText& json) {
  json.begin_object().member("message", status.message()).member("code", to_string(status.code()));
  if (!status.node().empty()) json.member("node", status.node());
  if (!status.limit().empty()) json.member("limit", status.limit());
  if (!status.setting().empty()) json.member("setting", status.setting());
  json.end_object();
}

}  // namespace

void write_error(std::string_view name, const Status& status, JsonText& json) { write_members(status, json.key(name)); }

std::string error_text(const Status& status) {
  JsonText json;
  write_members(status, json);
  return json.str();
}

void RouteTable::add(std::string_view method, std::string_view path, std::vector<std::string> parameters,
                     Handler handler) {
  Route route{.name = {std::string(method), std::string(path), std::move(parameters)},
              .segments = segments_of(path),
              .handler = std::move(handler),
              .is_stream = false};
  const auto variables = [](const Route& one) {
    return std::count_if(one.segments.begin(), one.segments.end(), is_variable);
  };
  const auto at =
      std::find_if(routes_.begin(), routes_.end(), [&](const Route& one) { return variables(one) > variables(route); });
  routes_.insert(at, std::move(route));
}

RouteTable::Handler RouteTable::on_call_thread(Waiting handler) const {
  return [this, handler = std::move(handler)](ApiCall given, const HttpReply& reply) {
    const auto call = std::make_shared<const ApiCall>(std::move(given));
    const bool is_taken = run_([handler, call, reply] {
      JsonText json;
      const Status status = handler(*call, json);
      reply(status ? HttpAnswer{.status = 200, .body = json.str()} : error_answer(call->request, status));
    });
    if (!is_taken) reply(message_answer(call->request, 429, "too many requests wait for the cluster; try again later"));
  };
}

RouteTable::Handler RouteTable::on_stream_thread(Streaming handler) const {
  return [this, handler = std::move(handler)](ApiCall given, const HttpReply& reply) {
    const auto call = std::make_shared<const ApiCall>(std::move(given));
    if (reply.take_stream() && run_stream_([handler, call, reply] { handler(*call, reply); })) return;
    reply(message_answer(call->request, 429, "too many long answers are in progress; try again later"));
  };
}

void RouteTable::add_waiting(std::string_view method, std::string_view path, std::vector<std::string> parameters,
                             Waiting handler) {
  add(method, path, std::move(parameters), on_call_thread(std::move(handler)));
}

void RouteTable::add_streaming(std::string_view method, std::string_view path, std::vector<std::string> parameters,
                               Streaming handler) {
  add(method, path, std::move(parameters), on_stream_thread(std::move(handler)));
  for (Route& route : routes_) route.is_stream |= route.name.method == method && route.name.path == path;
}

void RouteTable::add_either(std::string_view method, std::string_view path, std::vector<std::string> parameters,
                            std::function<bool(const ApiCall& call)> is_long, Waiting waiting, Streaming streaming) {
  add(method, path, std::move(parameters),
      [is_long = std::move(is_long), waiting = on_call_thread(std::move(waiting)),
       streaming = on_stream_thread(std::move(streaming))](ApiCall call, HttpReply reply) {
        (is_long(call) ? streaming : waiting)(std::move(call), std::move(reply));
      });
}

void RouteTable::handle(const HttpRequest& request, const std::vector<std::string>& path, HttpReply reply) const {
  std::set<std::string> methods;
  const Route* first = nullptr;
  const Route* found = nullptr;
  for (const Route& route : routes_) {
    if (!matches(route.segments, path)) continue;
    // A path of words hides a path with braces that it matches, also for methods that only the latter has.
    if (first != nullptr && route.segments != first->segments) continue;
    first = &route;
    methods.insert(route.name.method);
    if (route.name.method == "GET" && !route.is_stream) methods.insert("HEAD");
    const bool is_head = request.method == "HEAD" && route.name.method == "GET" && !route.is_stream;
    if (route.name.method == request.method || is_head) found = &route;
  }
  if (methods.empty()) {
    return reply(message_answer(request, 404,
                                fmt::format("Nothing at '{}'. Available paths are: /document/v1/, and those of "
                                            "/openapi.yaml",
                                            request.raw_path())));
  }
  if (found == nullptr) return reply(other_method_answer(request, {methods.begin(), methods.end()}));
  if (request.body.size() > kBodyBytesMax) {
    return reply(error_answer(request, {StatusCode::TooLarge,
                                        fmt::format("the body has {} bytes", request.body.size()),
                                        {.limit = std::to_string(kBodyBytesMax)}}));
  }
  auto query = HttpQuery::parse_known(request.target, found->name.parameters);
  if (!query) return reply(error_answer(request, query.error()));
  ApiCall call{.request = request, .path = {}, .query = std::move(*query)};
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::string& segment = found->segments[i];
    if (is_variable(segment)) call.path[segment.substr(1, segment.size() - 2)] = path[i];
  }
  found->handler(std::move(call), std::move(reply));
}

std::vector<RouteTable::Name> RouteTable::names() const {
  std::vector<Name> names;
  for (const Route& route : routes_) names.push_back(route.name);
  return names;
}

}  // namespace fjord::gateway
