#include "ring_world.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "fjord/balancer/trace.h"
#include "fjord/common/check.h"

namespace fjord::balancer {
namespace {

constexpr std::uint32_t kCells = 4096;           // Smallest parts of the ring that a server can own.
constexpr std::uint32_t kSlicesPerServer = 100;  // For the algorithms of the module balancer.

std::uint32_t draw_cell(KeyShape shape, Random& random) {
  double at = random.uniform();
  if (shape == KeyShape::Normal) {
    do {
      at = 0.5 + draw_normal(random) / 6.0;
    } while (at < 0.0 || at >= 1.0);
  } else if (shape == KeyShape::Spiked && random.chance(0.5)) {
    at = (4.0 + at) / 9.0;
  }
  return static_cast<std::uint32_t>(at * kCells);
}

class Ring {
 public:
  explicit Ring(const RingOptions& options)
      : options_(options), random_(options.seed), keys_(kCells), counted_(kCells), servers_(options.servers) {
    for (std::uint32_t server = 0; server <= options.servers; ++server) {
      bounds_.push_back(server * kCells / options.servers);
    }
    owner_.resize(kCells);
    for (std::uint32_t cell = 0; cell < kCells; ++cell) owner_[cell] = cell * options.servers / kCells;
    if (options.algorithm != nullptr) make_model();
  }

  RingResult run() {
    std::vector<Client> clients(options_.clients);
    for (std::uint32_t key = 0; key < options_.keys; ++key) {
      clients[key % options_.clients].keys.push_back(draw_cell(options_.shape, random_));
    }
    for (;;) {
      const auto next = std::min_element(clients.begin(), clients.end(), [](const Client& a, const Client& b) {
        return a.is_done() != b.is_done() ? b.is_done() : a.ready < b.ready;
      });
      if (next->is_done()) break;
      operate(*next);
    }
    for (const Client& client : clients) result_.seconds = std::max(result_.seconds, client.ready);
    std::uint64_t most = 0;
    for (const Server& server : servers_) most = std::max(most, server.keys);
    result_.keys_imbalance = static_cast<double>(most) * options_.servers / options_.keys;
    return result_;
  }

 private:
  struct Client {
    std::vector<std::uint32_t> keys;  // Cells of the keys; the client puts all keys and then gets all.
    std::size_t done = 0;
    double ready = 0.0;

    bool is_done() const { return done == 2 * keys.size(); }
  };

  struct Server {
    std::uint64_t keys = 0;
    std::uint64_t operations = 0;  // Operations since the last cycle ended.
    double free = 0.0;             // Time until which the server's file is in use.
  };

  void operate(Client& client) {
    const std::uint32_t cell = client.keys[client.done % client.keys.size()];
    const std::uint32_t owner = owner_[cell];
    Server& server = servers_[owner];
    const double start = options_.one_at_a_time ? std::max(client.ready, server.free) : client.ready;
    const double end = start + options_.base_seconds + scan_seconds(server);
    server.free = end;
    client.ready = end;
    if (client.done < client.keys.size()) {
      ++server.keys;
      ++keys_[cell];
    }
    ++client.done;
    count(owner, cell, end);
  }

  double scan_seconds(const Server& server) const {
    return options_.per_key_seconds * static_cast<double>(server.keys);
  }

  void count(std::uint32_t owner, std::uint32_t cell, double now) {
    const auto cycle = static_cast<std::uint64_t>(now / options_.cycle_seconds);
    if (cycle != cycle_) {
      cycle_ = cycle;
      for (Server& server : servers_) server.operations = 0;
    }
    ++counted_[cell];
    ++servers_[owner].operations;
    if (!options_.balances) return;
    if (options_.algorithm != nullptr) {
      if (++since_step_ == options_.operations_min * options_.servers) step(now);
    } else if (servers_[owner].operations % options_.operations_min == 0) {
      offload(owner, now);
    }
  }

  // ---- the rule of [ADLB, 3.2.2]

  void offload(std::uint32_t from, double now) {
    const std::uint32_t count = options_.servers;
    const std::uint32_t left = (from + count - 1) % count;
    const std::uint32_t right = (from + 1) % count;
    const bool to_right = servers_[right].operations < servers_[left].operations;
    const std::uint32_t to = to_right ? right : left;
    if (servers_[to].operations >= servers_[from].operations || servers_[from].keys == 0) return;
    const double wanted = options_.offloaded_part * static_cast<double>(servers_[from].keys);
    // Cuts the server's range into N parts of equal width and gives some of them away; at least one stays.
    const std::uint32_t begin = bounds_[from];
    const std::uint32_t width = (bounds_[from + 1] - begin + kCells) % kCells;
    std::uint32_t parts = 0;
    std::uint64_t taken = 0;
    const auto edge = [&](std::uint32_t part) { return part * width / options_.buckets_per_server; };
    while (parts + 1 < options_.buckets_per_server && static_cast<double>(taken) < wanted) {
      const std::uint32_t part = to_right ? options_.buckets_per_server - 1 - parts : parts;
      for (std::uint32_t at = edge(part); at < edge(part + 1); ++at) taken += keys_[(begin + at) % kCells];
      ++parts;
    }
    const std::uint32_t kept = to_right ? edge(options_.buckets_per_server - parts) : edge(parts);
    for (std::uint32_t at = to_right ? kept : 0; at < (to_right ? width : kept); ++at) {
      move_cell((begin + at) % kCells, to);
    }
    set_bound(to_right ? from + 1 : from, (begin + kept) % kCells);
    pay(from, to, now);
  }

  /// Sets a bound of the ranges. The first and the last bound are the same point of the ring.
  void set_bound(std::uint32_t bound, std::uint32_t cell) {
    bounds_[bound] = cell;
    if (bound == 0) bounds_.back() = cell;
    if (bound == options_.servers) bounds_.front() = cell;
  }

  void move_cell(std::uint32_t cell, std::uint32_t to) {
    const std::uint32_t from = owner_[cell];
    servers_[from].keys -= keys_[cell];
    servers_[to].keys += keys_[cell];
    result_.moved += keys_[cell];
    owner_[cell] = to;
  }

  /// Adds the time of an offload: the giving and the receiving server each read their file once.
  void pay(std::uint32_t from, std::uint32_t to, double now) {
    ++result_.offloads;
    for (const std::uint32_t end : {from, to}) {
      servers_[end].free = std::max(servers_[end].free, now) + options_.base_seconds + scan_seconds(servers_[end]);
    }
  }

  // ---- algorithms of the module balancer

  void make_model() {
    for (std::uint32_t server = 0; server < options_.servers; ++server) model_.nodes.push_back({.group = server});
    const std::uint32_t count = kSlicesPerServer * options_.servers;
    for (std::uint32_t i = 0; i < count; ++i) {
      Slice slice;
      slice.range = {i * kCells / count, (i + 1) * kCells / count};
      slice.holders.push_back({static_cast<std::uint16_t>(i / kSlicesPerServer), 1.0});
      model_.slices.push_back(slice);
    }
    for (std::uint32_t cell = 0; cell < kCells; ++cell) owner_[cell] = model_holder(cell);
  }

  std::uint32_t model_holder(std::uint32_t cell) const {
    const auto slice = std::upper_bound(model_.slices.begin(), model_.slices.end(), cell,
                                        [](std::uint32_t at, const Slice& s) { return at < s.range.end; });
    return slice->holders[0].node;
  }

  void step(double now) {
    for (Slice& slice : model_.slices) {
      slice.reads = 0.0;
      slice.bytes = 1;  // Not 0, because moving a slice without keys costs a little, too.
      for (std::uint32_t cell = slice.range.begin; cell < slice.range.end; ++cell) {
        slice.reads += static_cast<double>(counted_[cell]);
        slice.bytes += keys_[cell];
      }
    }
    std::fill(counted_.begin(), counted_.end(), 0);
    since_step_ = 0;
    ++model_.round;
    const Plan plan = options_.algorithm->step(model_, memory_, random_);
    for (const Move& move : plan.moves) {
      const Status status = apply(move, model_);
      FJORD_CHECK(status.is_ok());
    }
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t cell = 0; cell < kCells; ++cell) {
      const std::uint32_t from = owner_[cell];
      const std::uint32_t to = model_holder(cell);
      if (from == to) continue;
      pairs.emplace(from, to);
      move_cell(cell, to);
    }
    for (const auto& [from, to] : pairs) pay(from, to, now);
  }

  const RingOptions& options_;
  Random random_;
  std::vector<std::uint64_t> keys_;     // Number of keys by cell.
  std::vector<std::uint64_t> counted_;  // Operations since the last step, by cell.
  std::vector<std::uint32_t> owner_;    // Index of the server by cell.
  std::vector<Server> servers_;
  std::vector<std::uint32_t> bounds_;  // Server i has the cells from bounds_[i] to bounds_[i + 1], around the ring.
  std::uint64_t cycle_ = 0;
  std::uint64_t since_step_ = 0;  // Operations since the last step of an algorithm.
  BalanceModel model_;
  Memory memory_;
  RingResult result_;
};

}  // namespace

std::string_view to_string(KeyShape shape) {
  switch (shape) {
    case KeyShape::Equal:
      return "equal";
    case KeyShape::Normal:
      return "normal";
    case KeyShape::Spiked:
      return "spiked";
  }
  FJORD_CHECK(false);
  return {};
}

RingResult run_ring(const RingOptions& options) { return Ring(options).run(); }

}  // namespace fjord::balancer
