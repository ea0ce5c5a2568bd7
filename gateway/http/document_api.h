#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "fjord/library/client.h"
#include "http/answers.h"
#include "http/document_path.h"
#include "http/message.h"
#include "http/reply.h"
#include "http/route_table.h"

namespace fjord::gateway {

/// Threads for visits, which wait for the cluster. Threading: any thread.
class VisitThreads {
 public:
  virtual ~VisitThreads() = default;
  /// Runs the task on a thread of its own; returns false if too many tasks wait.
  virtual bool run(std::function<void()> task) = 0;
  /// Runs a task that may take as long as its client likes; returns false if there are too many.
  virtual bool run_stream(std::function<void()> task) = 0;
  /// Returns true if the process ends: tasks have to end soon.
  virtual bool is_ending() const = 0;
};

/// `/document/v1`: operations on single documents, visits, and changes of all documents that a selection matches
/// (docs/clients/http.md).
///
/// Threading: any thread. Lifetime: client and threads outlive the requests in progress.
class DocumentApi {
 public:
  /// `confirms_removals`: a removal by selection has to say how many documents it may remove.
  DocumentApi(Client& client, VisitThreads& threads, bool confirms_removals)
      : client_(client), threads_(threads), confirms_removals_(confirms_removals) {}

  /// `path` is the decoded path of the request, from "document" on.
  void handle(const HttpRequest& request, const std::vector<std::string>& path, HttpReply reply);
  /// Returns all paths with their methods.
  static std::vector<RouteTable::Name> names();

 private:
  struct Call {
    const HttpRequest& request;
    DocumentPath path;
    HttpQuery query;  ///< With the parameters of the operation only.
    HttpReply reply;
  };
  /// What a method does at all paths of one form.
  struct Operation {
    std::string_view method;
    PathForm form;
    std::vector<std::string> parameters;  ///< Others are ignored.
    std::vector<std::string> refused;     ///< Parameters that are an error here.
    void (DocumentApi::*run)(Call& call);
  };
  static const std::vector<Operation>& operations();
  static std::vector<std::string> methods_of(PathForm form);

  void read(Call& call);
  /// Answers POST, PUT and DELETE of one document.
  void write(Call& call);
  void visit(Call& call);
  /// Answers POST, PUT and DELETE of all documents that a selection matches.
  void write_selected(Call& call);
  /// Answers 404, or 400 if the cluster has no such type. Fetches the schemas for a type that was not seen before.
  void answer_missing(const HttpRequest& request, const DocumentPath& path, HttpDone done);

  Client& client_;
  VisitThreads& threads_;
  const bool confirms_removals_;
  std::mutex mutex_;
  std::set<std::string> known_types_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord::gateway
