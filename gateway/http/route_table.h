#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/library/client.h"
#include "http/answers.h"
#include "http/json_text.h"
#include "http/message.h"
#include "http/reply.h"

namespace fjord::gateway {

/// A request to one of Fjord's own paths.
struct ApiCall {
  HttpRequest request;
  std::map<std::string, std::string> path;  ///< Values of the parts of the path that are in braces.
  HttpQuery query;

  /// Returns the value of a part of the path.
  const std::string& part(const std::string& name) const { return path.at(name); }
  /// Returns the value of a parameter; empty if it was not sent.
  std::string text(const std::string& name) const;
  /// Returns the value of a parameter; `otherwise` if it was not sent. Errors: InvalidArgument with Status::limit().
  Result<std::uint64_t> count(const std::string& name, std::uint64_t otherwise, std::uint64_t min,
                              std::uint64_t max) const;
  Result<std::string> required(const std::string& name) const;
  Result<Duration> duration(const std::string& name, Duration otherwise) const;
  /// Returns the words of a parameter "a,b".
  std::vector<std::string> words(const std::string& name) const;
};

/// Writes an error as a member, in the form of the answers to failed requests.
void write_error(std::string_view name, const Status& status, JsonText& json);
/// Returns the same as an object.
std::string error_text(const Status& status);

/// Fjord's own paths and their handlers. openapi.yaml describes each path; a test compares both.
///
/// Threading: any thread once all routes are added.
class RouteTable {
 public:
  struct Name {
    std::string method;
    std::string path;                     ///< Path with parts in braces: "/cluster/v1/nodes/{node}".
    std::vector<std::string> parameters;  ///< Names that the query may have.
  };
  /// Answers on the calling thread, or later. Must not wait.
  using Handler = std::function<void(ApiCall call, HttpReply reply)>;
  /// Waits for the cluster, on a thread for that, and writes the answer.
  using Waiting = std::function<Status(const ApiCall& call, JsonText& json)>;
  /// Answers on a thread that may wait, for as long as the client likes. There are few of these threads.
  using Streaming = std::function<void(const ApiCall& call, const HttpReply& reply)>;

  /// Runs a task on a thread that may wait; returns false if too many tasks wait.
  using RunWaiting = std::function<bool(std::function<void()> task)>;

  /// `run` is for calls that wait for the cluster, `run_stream` for those that last.
  RouteTable(RunWaiting run, RunWaiting run_stream) : run_(std::move(run)), run_stream_(std::move(run_stream)) {}

  /// A path of words has precedence over a path with braces that matches it.
  void add(std::string_view method, std::string_view path, std::vector<std::string> parameters, Handler handler);
  void add_waiting(std::string_view method, std::string_view path, std::vector<std::string> parameters,
                   Waiting handler);
  void add_streaming(std::string_view method, std::string_view path, std::vector<std::string> parameters,
                     Streaming handler);
  /// Adds a path whose calls differ: those that `is_long` is true for are for `streaming`, the others for `waiting`.
  void add_either(std::string_view method, std::string_view path, std::vector<std::string> parameters,
                  std::function<bool(const ApiCall& call)> is_long, Waiting waiting, Streaming streaming);

  /// `path` is the decoded path of the request. Answers 404, 405 and OPTIONS by itself.
  void handle(const HttpRequest& request, const std::vector<std::string>& path, HttpReply reply) const;
  std::vector<Name> names() const;

 private:
  struct Route {
    Name name;
    std::vector<std::string> segments;
    Handler handler;
    bool is_stream = false;  ///< Without a body, HEAD would not know when the answer ends.
  };

  Handler on_call_thread(Waiting handler) const;
  Handler on_stream_thread(Streaming handler) const;

  RunWaiting run_;
  RunWaiting run_stream_;
  std::vector<Route> routes_;
};

}  // namespace fjord::gateway
