#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/random.h"
#include "fjord/rpc/transport.h"
#include "fjord/sim/sim_scheduler.h"

namespace fjord::sim {

/// What may happen to a message. Probabilities from 0 to 1.
struct NetworkFaults {
  double lose = 0;       ///< A request or a reply never arrives.
  double duplicate = 0;  ///< A request or a reply arrives twice; the second answer is dropped at the caller.
  Duration delay_min = microseconds(50);
  Duration delay_max = microseconds(500);
  double delay_spike = 0;  ///< A message takes up to `delay_spike_max` instead.
  Duration delay_spike_max = milliseconds(500);
  /// A call to where nobody listens, or through a cut link, is refused; else there is silence.
  double refuse = 0.75;
};

/// A disturbance of some links, beside NetworkFaults and partitions, as long as it lasts.
struct LinkFault {
  /// Which messages, by the names of sending and receiving process; empty: all.
  std::function<bool(const std::string& from, const std::string& to)> applies;
  bool cut = false;  ///< Nothing gets through, messages under way included.
  double lose = 0;   ///< As in NetworkFaults.
  double duplicate = 0;
  double delay = 0;  ///< A message takes up to `delay_max` longer.
  Duration delay_max = milliseconds(0);
};

/// Sees what reaches the services.
class NetworkObserver {
 public:
  virtual ~NetworkObserver() = default;
  /// Told what the service answers, if the process lives so long.
  using SeeReply = std::function<void(const Result<rpc::Reply>&)>;
  /// Before the service at process `to` gets it. Empty: the answer does not matter.
  virtual SeeReply see_request(const std::string& from, const std::string& to, const rpc::Request& request) = 0;
};

/// The network between the simulated processes, named by node. Every message goes through the codec as it would on a
/// socket, and leaves a line in the scheduler's trace. Messages overtake each other.
///
/// A call to an address where nobody listens, or through a partition, is by chance NotReady soon (the connection is
/// refused) or Timeout at its deadline (the connection seemed to be there). Requests that were under way when the
/// receiver went down are lost: Timeout, by chance at once or at the deadline.
///
/// Threading: the scheduler's. Lifetime: the scheduler outlives it; it outlives its transports; services outlive their
/// listening.
class SimNetwork {
 public:
  using Faults = NetworkFaults;

  SimNetwork(SimScheduler& scheduler, Random random);
  ~SimNetwork();

  void set_faults(Faults faults) { faults_ = faults; }
  const Faults& faults() const { return faults_; }

  /// Nothing gets through in either direction, messages under way included.
  void partition(const std::string& a, const std::string& b);
  void partition_one_way(const std::string& from, const std::string& to);
  /// `node` is cut off from everybody but itself.
  void isolate(const std::string& node);
  void heal(const std::string& a, const std::string& b);
  /// Ends all partitions.
  void heal();

  /// Disturbs links until end_disturbance() of the number that it returns.
  std::uint64_t disturb(LinkFault fault);
  /// Returns how many messages it has lost, doubled or delayed. Fine if there is no such disturbance.
  std::uint64_t end_disturbance(std::uint64_t number);
  /// Messages to `node` wait, also those that it would answer without an executor.
  void pause(const std::string& node) { waiting_.try_emplace(node); }
  void resume(const std::string& node);
  /// Null: nobody. Outlives its use.
  void set_observer(NetworkObserver* observer) { observer_ = observer; }
  /// Calls from or to the process that have no answer yet.
  std::size_t calls_pending(const std::string& node) const;

  /// For calls of `node_name`. Destroying it drops the calls that have no answer yet.
  std::unique_ptr<rpc::Transport> transport_for(std::string node_name);
  /// Services answer at `address`, where nobody may listen yet.
  void listen(const rpc::Address& address, std::vector<rpc::Service*> services, std::string node_name);
  void stop_listening(const rpc::Address& address);
  /// The process ends: it stops listening, what it was about to answer is never sent, and its own calls are dropped.
  /// Call this before the process is killed, because a responder that dies with its process must not answer.
  void node_down(const std::string& node_name);

  std::uint64_t messages_sent() const { return messages_sent_; }
  std::uint64_t messages_lost() const { return messages_lost_; }

 private:
  class NodeTransport;
  struct Listener {
    std::uint64_t id = 0;  ///< Of this listening; a later one at the same address has another.
    std::string node;
    std::vector<rpc::Service*> services;
  };
  struct Call {
    std::uint64_t transport = 0;
    std::string node;
    rpc::Address to;
    Executor* executor = nullptr;
    rpc::ReplyFunction done;
  };

  void call(std::uint64_t transport, const std::string& node, const rpc::Address& to, rpc::Request request,
            Duration timeout, Executor& executor, rpc::ReplyFunction done);
  void send_request(std::uint64_t call_id, std::uint64_t listener_id, const std::string& from, const rpc::Address& to,
                    std::string frame);
  void deliver_request(std::uint64_t call_id, std::uint64_t listener_id, const std::string& from,
                       const rpc::Address& to, const std::string& frame);
  void send_reply(std::uint64_t call_id, std::uint64_t listener_id, const std::string& from, const rpc::Address& at,
                  std::string frame);
  void answer(std::uint64_t call_id, Result<rpc::Reply> reply);
  /// Runs `deliver` after the delay of one message, twice or never.
  void send(const std::string& from, const std::string& to, std::string_view what, std::string_view bytes,
            const std::function<void()>& deliver);
  struct Disturbance {
    LinkFault fault;
    std::uint64_t hits = 0;
  };
  /// What the disturbances of a link make of a message.
  struct Fate {
    bool lost = false;
    bool twice = false;
    Duration later{0};
  };
  Fate draw_fate(const std::string& from, const std::string& to);
  Duration draw_delay();
  bool cut(const std::string& from, const std::string& to);
  /// Does `deliver` now, or when `node` is no longer paused.
  void when_running(const std::string& node, std::function<void()> deliver);
  const Listener* find(const rpc::Address& address, std::uint64_t listener_id) const;
  void drop_calls(const std::function<bool(const Call&)>& which);

  SimScheduler& scheduler_;
  Random random_;
  Faults faults_;
  std::set<std::pair<std::string, std::string>> cut_;  ///< from, to
  std::set<std::string> isolated_;
  std::map<rpc::Address, Listener> listeners_;
  std::map<std::uint64_t, Call> calls_;
  std::map<std::uint64_t, Disturbance> disturbances_;
  std::map<std::string, std::vector<std::function<void()>>> waiting_;  ///< By paused process.
  NetworkObserver* observer_ = nullptr;
  std::uint64_t next_id_ = 1;
  std::uint64_t messages_sent_ = 0;
  std::uint64_t messages_lost_ = 0;
};

}  // namespace fjord::sim
