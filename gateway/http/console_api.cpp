// The paths of the console: the page that the build has made, and what it asks of its gateway.

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

#include "fjord/console/assets.h"
#include "fjord/version/version.h"
#include "http/own_api.h"
#include "http/transport/answer_body.h"

namespace fjord::gateway {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{16} << 20;

/// No other host may be asked, no other page may show this one in a frame, and no text becomes a script.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

std::vector<HttpHeader> page_headers(const char* cache_control) {
  return {{"Cache-Control", cache_control},
          {"Content-Security-Policy", kPolicy},
          {"Referrer-Policy", "no-referrer"},
          {"X-Content-Type-Options", "nosniff"}};
}

/// Returns true if a header If-None-Match names the contents, or any.
bool is_known(std::string_view if_none_match, std::string_view etag) {
  return if_none_match == "*" || (!if_none_match.empty() && if_none_match.find(etag) != std::string_view::npos);
}

HttpAnswer file_answer(const HttpRequest& request, const console::Asset& file) {
  HttpAnswer answer{.status = 200, .content_type = std::string(file.content_type)};
  answer.headers = page_headers(file.is_immutable ? "public, max-age=31536000, immutable" : "no-cache");
  answer.headers.push_back({"ETag", std::string(file.etag)});
  answer.headers.push_back({"Vary", "Accept-Encoding"});
  if (is_known(request.header("if-none-match"), file.etag)) {
    answer.status = 304;
    return answer;
  }
  if (accepts_gzip(request.header("accept-encoding"))) {
    answer.headers.push_back({"Content-Encoding", "gzip"});
    answer.body = file.gzip;
    return answer;
  }
  auto text = gunzip(file.gzip, kFileBytesMax, [](std::size_t) { return true; });
  if (!text) return error_answer(request, text.error());
  answer.body = std::move(*text);
  return answer;
}

/// Says how to get a console; also to a program that asks for a file of it.
HttpAnswer missing_answer() {
  HttpAnswer answer{.status = 404, .content_type = "text/html; charset=UTF-8"};
  answer.headers = page_headers("no-store");
  answer.body = fmt::format(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Fjord</title>\n"
      "<h1>This gateway has no console</h1>\n"
      "<p>It was left out of the build, as {}.</p>\n"
      "<p>Install Node.js and npm (Debian: <code>apt-get install nodejs npm</code>), see to it that the npm registry "
      "can\n"
      "be reached, and build again. <code>fjord status</code> shows the state of the cluster on the command "
      "line.</p>\n",
      console::why_missing());
  return answer;
}

HttpAnswer answer_file(const HttpRequest& request, std::string_view name) {
  const auto files = console::assets();
  if (files.empty()) return missing_answer();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const console::Asset& file) { return file.name == name; });
  if (found != files.end()) return file_answer(request, *found);
  return message_answer(request, 404, fmt::format("the console has no file \"{}\"", name));
}

std::string about_text(const OwnApiOptions& options) {
  JsonText json;
  json.begin_object().member("version", version()).member("revision", revision());
  json.member("gateway", options.node).member("edits", options.console_edits).end_object();
  return json.str();
}

}  // namespace

void add_console_routes(RouteTable& routes, const OwnApiOptions& options) {
  routes.add("GET", "/console", {}, [](const ApiCall&, const HttpReply& reply) {
    reply({.status = 308, .content_type = "text/plain", .headers = {{"Location", "/console/"}}});
  });
  routes.add("GET", "/console/", {},
             [](const ApiCall& call, const HttpReply& reply) { reply(answer_file(call.request, "index.html")); });
  routes.add("GET", "/console/about.json", {}, [about = about_text(options)](const ApiCall&, const HttpReply& reply) {
    reply({.status = 200, .body = about, .headers = {{"Cache-Control", "no-store"}}});
  });
  routes.add("GET", "/console/{file}", {},
             [](const ApiCall& call, const HttpReply& reply) { reply(answer_file(call.request, call.part("file"))); });
}

}  // namespace fjord::gateway
