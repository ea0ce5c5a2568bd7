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

/// What an asynchronous call gave: ZOK and what belongs to the call, or an error of ZooKeeper.
struct ZooKeeperAnswer {
  int code = ZSYSTEMERROR;
  std::string value;  ///< get: the data; create: the path.
  std::int32_t version = -1;
  std::vector<std::string> children;
  std::vector<int> codes;  ///< write_if: of each part.
};

/// A session with an ensemble: ZooKeeper's C client with its answers and events on an executor. No call blocks.
///
/// Threading: everything from the executor, but close().
class ZooKeeperClient {
 public:
  using Done = std::function<void(ZooKeeperAnswer)>;
  /// `type` and `state` as in zookeeper.h.
  using OnEvent = std::function<void(int type, int state)>;

  ZooKeeperClient(Executor& executor, OnEvent on_event);
  ~ZooKeeperClient();

  /// False if the library refuses the list of servers.
  bool connect(const std::string& servers, Duration session_timeout);
  /// Ends the session. Nothing is posted to the executor after it. From any thread.
  void close();
  /// What the server agreed to; 0 before.
  Duration agreed_timeout();

  void create(const std::string& path, const std::string& value, int mode, Done done);
  void get(const std::string& path, bool watch, Done done);
  void children(const std::string& path, Done done);  ///< Watches them too.
  void set(const std::string& path, const std::string& value, std::int32_t version, Done done);
  void remove(const std::string& path, Done done);
  /// Writes `path` if `guard` has `guard_version`; `version` -1: makes it.
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
