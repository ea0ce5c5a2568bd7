#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>
#include <zookeeper/zookeeper.h>

#include "fjord/common/executor.h"
#include "fjord/common/thread_annotations.h"

namespace fjord::fleetcontroller {

/// The result of an asynchronous call: ZOK with the values of the call, or an error code of ZooKeeper.
struct ZooKeeperAnswer {
  int code = ZSYSTEMERROR;
  std::string value;  ///< get: the data; create: the path.
  std::int32_t version = -1;
  std::vector<std::string> children;
  std::vector<int> codes;  ///< write_if: code of each part.
};

/// A session with an ensemble: ZooKeeper's C client, with answers and events on an executor. No call blocks.
///
/// Threading: all calls come from the executor, except close().
class ZooKeeperClient {
 public:
  using Done = std::function<void(ZooKeeperAnswer)>;
  /// Event with ZooKeeper's constants for `type` and `state` (zookeeper.h).
  using OnEvent = std::function<void(int type, int state)>;

  ZooKeeperClient(Executor& executor, OnEvent on_event);
  ~ZooKeeperClient();

  /// Starts the session. Returns false if the library refuses the list of servers.
  bool connect(const std::string& servers, Duration session_timeout);
  /// Ends the session. Nothing is posted to the executor afterwards. Threading: any thread.
  void close();
  /// Returns the session timeout that the server agreed to; 0 before connect().
  Duration agreed_timeout();

  void create(const std::string& path, const std::string& value, int mode, Done done);
  void get(const std::string& path, bool watch, Done done);
  void children(const std::string& path, Done done);  ///< Lists the children of `path`, and sets a watch on them.
  void set(const std::string& path, const std::string& value, std::int32_t version, Done done);
  void remove(const std::string& path, Done done);
  /// Writes `path` if `guard` has `guard_version` and `path` has `version`. `version` -1: creates `path` instead.
  void write_if(const std::string& guard, std::int32_t guard_version, const std::string& path, std::int32_t version,
                const std::string& value, Done done);

 private:
  struct Shared;
  struct Call;
  static void on_watch(zhandle_t*, int type, int state, const char* path, void* context);
  static void on_string(int code, const char* value, const void* data);
  static void on_data(int code, const char* value, int size, const Stat* stat, const void* data);
  static void on_stat(int code, const Stat* stat, const void* data);
  static void on_strings(int code, const String_vector* strings, const void* data);
  static void on_void(int code, const void* data);
  template <typename Start>
  void call(std::unique_ptr<Call> call, Start start);

  std::shared_ptr<Shared> shared_;
};

}  // namespace fjord::fleetcontroller
