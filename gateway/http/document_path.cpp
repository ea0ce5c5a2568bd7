#include "http/document_path.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>

namespace fjord::gateway {
namespace {

constexpr const char* kAvailablePaths =
    "Available paths are: /document/v1/, /document/v1/{namespace}/{documentType}/docid/{*}, "
    "/document/v1/{namespace}/{documentType}/number/{number}/{*}, "
    "/document/v1/{namespace}/{documentType}/group/{group}/{*}";

/// A word in paths that says where an id's documents lie, and the beginning of that part of the id. An empty one stands
/// for ids without a location.
struct LocationKind {
  std::string_view word;
  std::string_view prefix;
};
constexpr LocationKind kLocationKinds[] = {{"docid", ""}, {"number", "n="}, {"group", "g="}};

/// Refuses a character that would end this part of the id: the id would name another document than the path does.
Status check_part(std::string_view part, std::string_view name) {
  if (part.empty()) return {StatusCode::InvalidArgument, fmt::format("the {} is empty", name)};
  if (part.find(':') == std::string_view::npos) return Status::ok();
  return {StatusCode::InvalidArgument, fmt::format("the {} '{}' contains ':'", name, part)};
}

/// Returns the number in its shortest form, as ids have it: 01 and 1 are one number.
Result<std::string> read_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end) return std::to_string(number);
  return Status(StatusCode::InvalidArgument, fmt::format("'{}' is not a number of 64 bits", text));
}

}  // namespace

Result<DocumentPath> parse_document_path(const HttpRequest& request, const std::vector<std::string>& path) {
  const Status absent(StatusCode::NotFound, fmt::format("Nothing at '{}'. {}", request.raw_path(), kAvailablePaths));
  DocumentPath parsed;
  const std::size_t segments = path.back().empty() && path.size() <= 7 ? path.size() - 1 : path.size();
  if (segments == 2) {
    parsed.is_root = true;
    return parsed;
  }
  if (segments < 5) return absent;
  parsed.space = path[2];
  parsed.type = path[3];
  FJORD_TRY(check_part(parsed.space, "namespace"));
  FJORD_TRY(check_part(parsed.type, "document type"));
  const auto* const kind = std::find_if(std::begin(kLocationKinds), std::end(kLocationKinds),
                                        [&](const LocationKind& one) { return one.word == path[4]; });
  if (kind == std::end(kLocationKinds)) return absent;
  std::size_t next = 5;
  if (!kind->prefix.empty()) {
    if (segments < 6) return absent;
    FJORD_TRY(check_part(path[5], path[4]));
    FJORD_TRY_ASSIGN(const std::string value, kind->prefix == "n=" ? read_number(path[5]) : path[5]);
    parsed.location.append(kind->prefix).append(value);
    next = 6;
  }
  for (std::size_t i = next; i < path.size(); ++i) parsed.user += (i > next ? "/" : "") + path[i];
  return parsed;
}

std::vector<std::string> document_paths(PathForm form) {
  if (form == PathForm::Root) return {"/document/v1/"};
  std::vector<std::string> paths;
  for (const LocationKind& kind : kLocationKinds) {
    const std::string value = kind.prefix.empty() ? std::string() : fmt::format("/{{{}}}", kind.word);
    paths.push_back(fmt::format("/document/v1/{{namespace}}/{{type}}/{}{}/{}", kind.word, value,
                                form == PathForm::Document ? "{user}" : ""));
  }
  return paths;
}

Status check_cluster(const std::string& cluster) {
  if (cluster == kContentCluster) return Status::ok();
  return {StatusCode::InvalidArgument,
          fmt::format("Your Vespa deployment has no content cluster '{}', only '{}'", cluster, kContentCluster)};
}

}  // namespace fjord::gateway
