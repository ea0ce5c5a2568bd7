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

/// Faults that hit any message. Probabilities from 0 to 1.
struct NetworkFaults {
  double lose = 0;       ///< Probability that a request or a reply never arrives.
  double duplicate = 0;  ///< Probability that a request or a reply arrives twice; the caller drops the second answer.
  Duration delay_min = microseconds(50);
  Duration delay_max = microseconds(500);
  double delay_spike = 0;  ///< Probability that a message takes up to `delay_spike_max` instead of its usual delay.
  Duration delay_spike_max = milliseconds(500);
  /// Probability that a call is refused if there is no listener or the link is cut; otherwise no answer comes.
  double refuse = 0.75;
};

/// A temporary disturbance of some links, in addition to NetworkFaults and partitions.
struct LinkFault {
  /// Selects messages by the names of the sending and the receiving process; empty: all.
  std::function<bool(const std::string& from, const std::string& to)> applies;
  bool cut = false;  ///< No message gets through, including those in flight.
  double lose = 0;   ///< Probability that a message is lost, as in NetworkFaults.
  double duplicate = 0;
  double delay = 0;  ///< Probability that a message takes up to `delay_max` longer.
  Duration delay_max = milliseconds(0);
};

/// Observes the requests that reach services.
class NetworkObserver {
 public:
  virtual ~NetworkObserver() = default;
  /// Called with the service's answer if the process lives until then.
  using SeeReply = std::function<void(const Result<rpc::Reply>&)>;
  /// Called before the service at process `to` gets the request. Returns an empty function if the answer does not
  /// matter.
  virtual SeeReply see_request(const std::string& from, const std::string& to, const rpc::Request& request) = 0;
};

/// The network between the simulated processes, which are named by node. Every message goes through the codec as on a
/// socket, and leaves a line in the scheduler's trace. Messages may overtake each other.
///
/// A call to an address without a listener, or through a partition, ends by chance with NotReady soon (the connection
/// is refused) or with Timeout at its deadline (the connection seemed to exist). Requests in flight when the receiver
/// goes down are lost: Timeout, by chance at once or at the deadline.
///
/// Threading: the scheduler's. Lifetime: the scheduler outlives the network; the network outlives its transports;
/// services outlive their listening.
class SimNetwork {
 public:
  using Faults = NetworkFaults;

  SimNetwork(SimScheduler& scheduler, Random random);
  ~SimNetwork();

  void set_faults(Faults faults) { faults_ = faults; }
  const Faults& faults() const { return faults_; }

  /// Cuts both directions, also for messages in flight.
  void partition(const std::string& a, const std::string& b);
  void partition_one_way(const std::string& from, const std::string& to);
  /// Cuts `node` off from all others.
  void isolate(const std::string& node);
  void heal(const std::string& a, const std::string& b);
  /// Ends all partitions.
  void heal();

  /// Disturbs links until end_disturbance() is called with the returned number.
  std::uint64_t disturb(LinkFault fault);
  /// Returns the number of messages that the disturbance lost, duplicated or delayed. No effect if there is no such
  /// disturbance.
  std::uint64_t end_disturbance(std::uint64_t number);
  /// Holds back messages to `node`, including those that it would answer without an executor.
  void pause(const std::string& node) { waiting_.try_emplace(node); }
  void resume(const std::string& node);
  /// Null: no observer. The observer outlives its use.
  void set_observer(NetworkObserver* observer) { observer_ = observer; }
  /// Returns the number of calls from or to the process that have no answer yet.
  std::size_t calls_pending(const std::string& node) const;

  /// Returns a transport for the calls of `node_name`. Its destructor drops the calls that have no answer yet.
  std::unique_ptr<rpc::Transport> transport_for(std::string node_name);
  /// Lets services answer at `address`. Precondition: no other listener is there.
  void listen(const rpc::Address& address, std::vector<rpc::Service*> services, std::string node_name);
  void stop_listening(const rpc::Address& address);
  /// Ends the network side of a process: it stops listening, its pending answers are never sent, and its own calls are
  /// dropped. Call this before the process is killed, because a responder that dies with its process must not answer.
  void node_down(const std::string& node_name);

  std::uint64_t messages_sent() const { return messages_sent_; }
  std::uint64_t messages_lost() const { return messages_lost_; }

 private:
  class NodeTransport;
  struct Listener {
    std::uint64_t id = 0;  ///< Number of this listener; a later one at the same address has another number.
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
  /// Runs `deliver` after the delay of one message, or twice, or never.
  void send(const std::string& from, const std::string& to, std::string_view what, std::string_view bytes,
            const std::function<void()>& deliver);
  struct Disturbance {
    LinkFault fault;
    std::uint64_t hits = 0;
  };
  /// The combined effect of the disturbances of a link on one message.
  struct Fate {
    bool lost = false;
    bool twice = false;
    Duration later{0};
  };
  Fate draw_fate(const std::string& from, const std::string& to);
  Duration draw_delay();
  bool cut(const std::string& from, const std::string& to);
  /// Runs `deliver` at once, or as soon as `node` is not paused.
  void when_running(const std::string& node, std::function<void()> deliver);
  const Listener* find(const rpc::Address& address, std::uint64_t listener_id) const;
  void drop_calls(const std::function<bool(const Call&)>& which);

  SimScheduler& scheduler_;
  Random random_;
  Faults faults_;
  std::set<std::pair<std::string, std::string>> cut_;  ///< Pairs of processes whose messages are cut: from, to.
  std::set<std::string> isolated_;
  std::map<rpc::Address, Listener> listeners_;
  std::map<std::uint64_t, Call> calls_;
  std::map<std::uint64_t, Disturbance> disturbances_;
  std::map<std::string, std::vector<std::function<void()>>> waiting_;  ///< Deliveries held back, by paused process.
  NetworkObserver* observer_ = nullptr;
  std::uint64_t next_id_ = 1;
  std::uint64_t messages_sent_ = 0;
  std::uint64_t messages_lost_ = 0;
};

}  // namespace fjord::sim
