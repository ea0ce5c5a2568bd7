#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "fjord/library/client.h"
#include "http/message.h"
#include "http/reply.h"

namespace fjord::gateway {

/// The name that this cluster has in the parameter `cluster` of requests.
constexpr const char* kContentCluster = "fjord";

/// The documents that a path below /document/v1/NAMESPACE/TYPE names.
struct DocumentPath {
  std::string space;
  std::string type;
  std::string location;  ///< "", "n=1" or "g=x"
  std::string user;      ///< Rest of the id; empty for a visit.
  bool is_root = false;  ///< /document/v1 itself

  std::string id() const { return "id:" + space + ":" + type + ":" + location + ":" + user; }
};

/// Threads for visits, which wait for the cluster. Threading: any thread.
class VisitThreads {
 public:
  virtual ~VisitThreads() = default;
  /// Runs the task on a thread of its own; returns false if too many tasks wait.
  virtual bool run(std::function<void()> task) = 0;
  /// Returns true if the process ends: tasks have to end soon.
  virtual bool is_ending() const = 0;
};

/// `/document/v1`: operations on single documents, and visits chunk by chunk (docs/clients/http.md).
///
/// Threading: any thread. Lifetime: client and threads outlive the requests in progress.
class DocumentApi {
 public:
  DocumentApi(Client& client, VisitThreads& threads) : client_(client), threads_(threads) {}

  /// `path` is the decoded path of the request, from "document" on.
  void handle(const HttpRequest& request, const std::vector<std::string>& path, HttpReply reply);

 private:
  void read(const HttpRequest& request, const DocumentPath& path, const HttpQuery& query, HttpDone done);
  /// Answers 404, or 400 if the cluster has no such type. Fetches the schemas for a type that was not seen before.
  void answer_missing(const HttpRequest& request, const DocumentPath& path, HttpDone done);

  Client& client_;
  VisitThreads& threads_;
  std::mutex mutex_;
  std::set<std::string> known_types_ FJORD_GUARDED_BY(mutex_);
};

/// Returns the answer for an error: {"pathId": ..., "id": ..., "message": ...}.
HttpAnswer error_answer(const HttpRequest& request, const Status& status, const std::string& id = {});
HttpAnswer message_answer(const HttpRequest& request, unsigned http_status, std::string_view message,
                          const std::string& id = {});

/// A visit of one chunk; waits for the cluster.
HttpAnswer visit_chunk(Client& client, const VisitThreads& threads, const HttpRequest& request,
                       const DocumentPath& path, const HttpQuery& query);

}  // namespace fjord::gateway
