#include "fjord/sim/sim_transport.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/common/hash.h"
#include "fjord/rpc/codec.h"
#include "fjord/rpc/dispatch.h"
#include "fjord/rpc/refusal.h"

namespace fjord::sim {

using rpc::Address;
using rpc::CallHeader;
using rpc::Reply;
using rpc::Request;

class SimNetwork::NodeTransport final : public rpc::Transport {
 public:
  NodeTransport(SimNetwork& network, std::uint64_t id, std::string node)
      : network_(network), id_(id), node_(std::move(node)) {}
  ~NodeTransport() override {
    network_.drop_calls([this](const Call& call) { return call.transport == id_; });
  }

  void call(const Address& to, Request request, Duration timeout, Executor& executor,
            rpc::ReplyFunction done) override {
    network_.call(id_, node_, to, std::move(request), timeout, executor, std::move(done));
  }

 private:
  SimNetwork& network_;
  std::uint64_t id_;
  std::string node_;
};

SimNetwork::SimNetwork(SimScheduler& scheduler, Random random) : scheduler_(scheduler), random_(random) {}

SimNetwork::~SimNetwork() = default;

void SimNetwork::partition(const std::string& a, const std::string& b) {
  partition_one_way(a, b);
  partition_one_way(b, a);
}

void SimNetwork::partition_one_way(const std::string& from, const std::string& to) {
  scheduler_.trace("network: " + from + " cannot reach " + to);
  cut_.emplace(from, to);
}

void SimNetwork::isolate(const std::string& node) {
  scheduler_.trace("network: " + node + " is isolated");
  isolated_.insert(node);
}

void SimNetwork::heal(const std::string& a, const std::string& b) {
  scheduler_.trace("network: " + a + " and " + b + " are healed");
  cut_.erase({a, b});
  cut_.erase({b, a});
}

void SimNetwork::heal() {
  scheduler_.trace("network: healed");
  cut_.clear();
  isolated_.clear();
}

bool SimNetwork::cut(const std::string& from, const std::string& to) {
  if (from == to) return false;
  bool cut = false;
  for (auto& [number, disturbance] : disturbances_) {
    if (!disturbance.fault.cut || !disturbance.fault.applies(from, to)) continue;
    ++disturbance.hits;
    cut = true;
  }
  return cut || cut_.contains({from, to}) || isolated_.contains(from) || isolated_.contains(to);
}

std::uint64_t SimNetwork::disturb(LinkFault fault) {
  if (!fault.applies) fault.applies = [](const std::string&, const std::string&) { return true; };
  const std::uint64_t number = next_id_++;
  disturbances_.emplace(number, Disturbance{std::move(fault)});
  return number;
}

std::uint64_t SimNetwork::end_disturbance(std::uint64_t number) {
  const auto ended = disturbances_.extract(number);
  return ended.empty() ? 0 : ended.mapped().hits;
}

void SimNetwork::resume(const std::string& node) {
  auto waited = waiting_.extract(node);
  if (waited.empty()) return;
  for (std::function<void()>& deliver : waited.mapped()) scheduler_.outside().post(std::move(deliver));
}

void SimNetwork::when_running(const std::string& node, std::function<void()> deliver) {
  if (const auto paused = waiting_.find(node); paused != waiting_.end()) {
    paused->second.push_back(std::move(deliver));
  } else {
    deliver();
  }
}

std::size_t SimNetwork::calls_pending(const std::string& node) const {
  return static_cast<std::size_t>(std::count_if(calls_.begin(), calls_.end(), [&](const auto& entry) {
    const auto listener = listeners_.find(entry.second.to);
    return entry.second.node == node || (listener != listeners_.end() && listener->second.node == node);
  }));
}

SimNetwork::Fate SimNetwork::draw_fate(const std::string& from, const std::string& to) {
  Fate fate;
  for (auto& [number, disturbance] : disturbances_) {
    const LinkFault& fault = disturbance.fault;
    if (fault.cut || !fault.applies(from, to)) continue;
    const bool lost = random_.chance(fault.lose);
    const bool twice = random_.chance(fault.duplicate);
    const bool late = random_.chance(fault.delay) && fault.delay_max.count() > 0;
    fate.lost = fate.lost || lost;
    fate.twice = fate.twice || twice;
    if (late) {
      fate.later +=
          Duration(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(fault.delay_max.count()))));
    }
    if (lost || twice || late) ++disturbance.hits;
  }
  return fate;
}

std::unique_ptr<rpc::Transport> SimNetwork::transport_for(std::string node_name) {
  return std::make_unique<NodeTransport>(*this, next_id_++, std::move(node_name));
}

void SimNetwork::listen(const Address& address, std::vector<rpc::Service*> services, std::string node_name) {
  const bool added =
      listeners_.emplace(address, Listener{next_id_++, std::move(node_name), std::move(services)}).second;
  FJORD_CHECK_MSG(added, address + " is in use");
}

void SimNetwork::stop_listening(const Address& address) { listeners_.erase(address); }

void SimNetwork::node_down(const std::string& node_name) {
  waiting_.erase(node_name);
  std::erase_if(listeners_, [&](const auto& entry) { return entry.second.node == node_name; });
  drop_calls([&](const Call& call) { return call.node == node_name; });
}

void SimNetwork::drop_calls(const std::function<bool(const Call&)>& which) {
  std::vector<Call> dropped;  // Destroyed last, because a capture may call this network.
  for (auto it = calls_.begin(); it != calls_.end();) {
    if (which(it->second)) {
      dropped.push_back(std::move(it->second));
      it = calls_.erase(it);
    } else {
      ++it;
    }
  }
}

const SimNetwork::Listener* SimNetwork::find(const Address& address, std::uint64_t listener_id) const {
  const auto found = listeners_.find(address);
  return found != listeners_.end() && found->second.id == listener_id ? &found->second : nullptr;
}

Duration SimNetwork::draw_delay() {
  const bool spike = random_.chance(faults_.delay_spike);
  const Duration longest = spike ? faults_.delay_spike_max : faults_.delay_max;
  const auto range = std::max<std::int64_t>(0, (longest - faults_.delay_min).count());
  return faults_.delay_min + Duration(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(range) + 1)));
}

void SimNetwork::send(const std::string& from, const std::string& to, std::string_view what, std::string_view bytes,
                      const std::function<void()>& deliver) {
  ++messages_sent_;
  const Fate fate = draw_fate(from, to);
  const bool lost = random_.chance(faults_.lose) || fate.lost;
  const int copies = lost ? 0 : random_.chance(faults_.duplicate) || fate.twice ? 2 : 1;
  scheduler_.trace(from + " > " + to + " " + std::string(what) + " " + std::to_string(bytes.size()) + " bytes " +
                   std::to_string(hash64(bytes)) + " copies " + std::to_string(copies));
  if (lost) ++messages_lost_;
  for (int i = 0; i < copies; ++i) scheduler_.outside().post_after(draw_delay() + fate.later, deliver);
}

void SimNetwork::call(std::uint64_t transport, const std::string& node, const Address& to, Request request,
                      Duration timeout, Executor& executor, rpc::ReplyFunction done) {
  const std::uint64_t id = next_id_++;
  calls_.emplace(id, Call{transport, node, to, &executor, std::move(done)});
  const auto listener = listeners_.find(to);
  const bool reachable = listener != listeners_.end() && !cut(node, listener->second.node);
  // The request was never sent, so it had no effect and the error may come at any time.
  const bool refused = !reachable && random_.chance(faults_.refuse);
  if (refused) {
    scheduler_.outside().post_after(
        draw_delay(), [this, id, to] { answer(id, Status(StatusCode::NotReady, to + std::string(rpc::kRefused))); });
  }
  scheduler_.outside().post_after(std::max(timeout, Duration(0)), [this, id, to, refused] {
    answer(id, Status(refused ? StatusCode::NotReady : StatusCode::Timeout, to + ": no answer before the deadline"));
  });
  if (!reachable) {
    scheduler_.trace(node + " cannot reach " + to + (refused ? ", refused" : ", silence"));
    return;
  }
  send_request(id, listener->second.id, node, to,
               rpc::encode_request(request, static_cast<std::int32_t>(id & 0x7fffffff)));
}

void SimNetwork::send_request(std::uint64_t call_id, std::uint64_t listener_id, const std::string& from,
                              const Address& to, std::string frame) {
  const auto shared = std::make_shared<const std::string>(std::move(frame));
  const Listener* listener = find(to, listener_id);
  send(from, listener->node, "request", *shared, [this, call_id, listener_id, from, to, shared, node = listener->node] {
    when_running(node, [=, this] { deliver_request(call_id, listener_id, from, to, *shared); });
  });
}

void SimNetwork::deliver_request(std::uint64_t call_id, std::uint64_t listener_id, const std::string& from,
                                 const Address& to, const std::string& frame) {
  const Listener* listener = find(to, listener_id);
  if (listener == nullptr || cut(from, listener->node)) {
    ++messages_lost_;
    // A process that ends closes its connections, which its callers may notice.
    if (listener == nullptr && random_.chance(0.5)) {
      answer(call_id, Status(StatusCode::Timeout, to + ": the connection ended before the answer"));
    }
    return;
  }
  auto decoded = rpc::decode_request(frame);
  FJORD_CHECK_MSG(decoded.has_value(), decoded.status().to_string());
  // A copy, because the service may stop listening while it handles the request.
  const std::vector<rpc::Service*> services = listener->services;
  NetworkObserver::SeeReply see;
  if (observer_ != nullptr && decoded->request) see = observer_->see_request(from, listener->node, *decoded->request);
  rpc::dispatch(std::move(*decoded), services,
                [this, call_id, listener_id, from, to, see](const CallHeader& header, Result<Reply> reply) {
                  if (see && find(to, listener_id) != nullptr) see(reply);
                  send_reply(call_id, listener_id, from, to, rpc::encode_reply(header, reply));
                });
}

void SimNetwork::send_reply(std::uint64_t call_id, std::uint64_t listener_id, const std::string& from,
                            const Address& at, std::string frame) {
  const Listener* listener = find(at, listener_id);
  if (listener == nullptr) return;  // The process has ended; a responder that dies with it does not answer.
  const auto shared = std::make_shared<const std::string>(std::move(frame));
  send(listener->node, from, "reply", *shared, [this, call_id, from, node = listener->node, shared] {
    if (cut(node, from)) {
      ++messages_lost_;
      return;
    }
    if (!calls_.contains(call_id)) return;  // The answer is a duplicate, or too late.
    auto decoded = rpc::decode_reply(*shared);
    FJORD_CHECK_MSG(decoded.has_value(), decoded.status().to_string());
    answer(call_id, std::move(decoded->reply));
  });
}

void SimNetwork::answer(std::uint64_t call_id, Result<Reply> reply) {
  auto node = calls_.extract(call_id);
  if (node.empty()) return;
  node.mapped().executor->post(
      [done = std::move(node.mapped().done), reply = std::move(reply)]() mutable { done(std::move(reply)); });
}

}  // namespace fjord::sim
