#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster_watcher.h"
#include "fjord/client/client.h"

namespace fjord {

/// Calls other than document operations, to one or to all distributors.
///
/// Threading: confined to the executor.
class AdminCaller : public std::enable_shared_from_this<AdminCaller> {
 public:
  using AnyDone = UniqueFunction<void(Result<rpc::Reply>)>;
  using AllDone = UniqueFunction<void(Result<std::vector<AsyncClient::Answer>>)>;

  AdminCaller(std::shared_ptr<const ClientOptions> options, const Clock& clock, Random random,
              std::shared_ptr<rpc::GatedTransport> gate, std::shared_ptr<ClusterWatcher> watcher, Executor& executor);

  void call_any(rpc::Request request, MonotonicTime deadline, AnyDone done);
  void call_all(rpc::Request request, MonotonicTime deadline, AllDone done);
  /// Ends all calls with Cancelled.
  void close();

 private:
  struct AnyCall {
    rpc::Request request;
    MonotonicTime deadline;
    AnyDone done;
    std::vector<rpc::Address> targets;
    std::size_t target = 0;
    std::uint32_t failures = 0;  // number of failed rounds; determines the pause before the next round
    bool sticks = false;         // the present target possibly executed the call, so no other one is asked
    bool maybe_done = false;
    std::map<rpc::Address, std::string> reasons;
  };
  struct AllCall {
    AllDone done;
    std::vector<AsyncClient::Answer> answers;
    std::size_t missing = 0;
  };

  void attempt(std::uint64_t id);
  void on_any_reply(std::uint64_t id, Result<rpc::Reply> reply);
  void pause(std::uint64_t id);
  void finish_any(std::uint64_t id, Result<rpc::Reply> result);
  static Status failure(const AnyCall& call);
  void send_to_all(rpc::Request request, MonotonicTime deadline, std::uint64_t id);
  void on_all_reply(std::uint64_t id, std::size_t index, Result<rpc::Reply> reply);
  void finish_all(std::uint64_t id, Status error);

  std::shared_ptr<const ClientOptions> options_;
  const Clock& clock_;
  Random random_;
  std::shared_ptr<rpc::GatedTransport> gate_;
  std::shared_ptr<ClusterWatcher> watcher_;
  Executor& executor_;
  bool closed_ = false;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, AnyCall> any_;
  std::map<std::uint64_t, AllCall> all_;
};

}  // namespace fjord
