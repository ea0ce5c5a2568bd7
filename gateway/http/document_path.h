#pragma once

#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "http/message.h"

namespace fjord::gateway {

/// The name that this cluster has in the parameter `cluster` of requests.
constexpr const char* kContentCluster = "fjord";

/// What a path below /document/v1 names.
enum class PathForm { Root, Selection, Document };

/// The documents that a path below /document/v1/NAMESPACE/TYPE names.
struct DocumentPath {
  std::string space;
  std::string type;
  std::string location;  ///< Location in the id: "", "n=1" or "g=x".
  std::string user;      ///< Rest of the id; empty for a visit.
  bool is_root = false;  ///< True for the path /document/v1 itself.

  PathForm form() const {
    if (is_root) return PathForm::Root;
    return user.empty() ? PathForm::Selection : PathForm::Document;
  }
  std::string id() const {
    std::string id;
    id.reserve(space.size() + type.size() + location.size() + user.size() + 6);
    return id.append("id:").append(space).append(":").append(type).append(":").append(location).append(":").append(
        user);
  }
};

/// `path` is the decoded path of the request, from "document" on. Errors: NotFound if there is no such path;
/// InvalidArgument.
Result<DocumentPath> parse_document_path(const HttpRequest& request, const std::vector<std::string>& path);
/// Returns the paths of a form as openapi.yaml writes them: "/document/v1/{namespace}/{type}/docid/{user}".
std::vector<std::string> document_paths(PathForm form);

/// Errors: InvalidArgument if the cluster has another name.
Status check_cluster(const std::string& cluster);

}  // namespace fjord::gateway
