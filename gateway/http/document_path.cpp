#include "http/document_path.h"

#include <charconv>
#include <fmt/format.h>

namespace fjord::gateway {
namespace {

constexpr const char* kAvailablePaths =
    "Available paths are: /document/v1/, /document/v1/{namespace}/{documentType}/docid/{*}, "
    "/document/v1/{namespace}/{documentType}/number/{number}/{*}, "
    "/document/v1/{namespace}/{documentType}/group/{group}/{*}";

/// Refuses a character that would end this part of the id: the id would name another document than the path does.
Status check_part(std::string_view part, std::string_view name) {
  if (part.empty()) return {StatusCode::InvalidArgument, fmt::format("the {} is empty", name)};
  if (part.find(':') == std::string_view::npos) return Status::ok();
  return {StatusCode::InvalidArgument, fmt::format("the {} '{}' contains ':'", name, part)};
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
  std::size_t next = 5;
  if (path[4] == "number" || path[4] == "group") {
    if (segments < 6) return absent;
    parsed.location = (path[4] == "number" ? "n=" : "g=") + path[5];
    FJORD_TRY(check_part(path[5], path[4]));
    if (path[4] == "number") {
      std::uint64_t number = 0;
      const char* end = path[5].data() + path[5].size();
      const auto [stop, error] = std::from_chars(path[5].data(), end, number);
      if (error != std::errc() || stop != end) {
        return Status(StatusCode::InvalidArgument, fmt::format("'{}' is not a number of 64 bits", path[5]));
      }
    }
    next = 6;
  } else if (path[4] != "docid") {
    return absent;
  }
  for (std::size_t i = next; i < path.size(); ++i) parsed.user += (i > next ? "/" : "") + path[i];
  return parsed;
}

Status check_cluster(const std::string& cluster) {
  if (cluster == kContentCluster) return Status::ok();
  return {StatusCode::InvalidArgument,
          fmt::format("Your Vespa deployment has no content cluster '{}', only '{}'", cluster, kContentCluster)};
}

}  // namespace fjord::gateway
