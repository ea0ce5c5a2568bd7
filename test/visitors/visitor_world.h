#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/bulk_executor.h"
#include "fjord/common/check.h"
#include "fjord/common/env.h"
#include "fjord/common/runtime.h"
#include "fjord/document/document.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"
#include "fjord/sim/sim_scheduler.h"
#include "fjord/storage/memory/memory_provider.h"
#include "fjord/storage/spi/bucket_access.h"
#include "fjord/visitors/visitor_service.h"
#include "fjord/visitors/visitor_session.h"

namespace fjord::test {

/// A transport between services of one SimScheduler; each direction takes a millisecond.
class DirectTransport final : public rpc::Transport {
 public:
  explicit DirectTransport(sim::SimScheduler& scheduler) : scheduler_(scheduler) {}

  void serve(const rpc::Address& address, rpc::Service* service) { services_[address] = service; }
  void stop_serving(const rpc::Address& address) { services_.erase(address); }
  /// Loses the next `count` answers to calls of that name: the caller gets Timeout.
  void lose_answers(const std::string& call, int count) { lose_[call] += count; }
  int calls(const std::string& name) const { return calls_.contains(name) ? calls_.at(name) : 0; }
  /// Delays all answers from that address.
  void slow_down(const rpc::Address& address, Duration by) { slower_[address] = by; }
  /// Called with each answer on its way.
  std::function<void(const rpc::Request&, rpc::Reply&)> on_reply;

  void call(const rpc::Address& to, rpc::Request request, Duration timeout, Executor& executor,
            rpc::ReplyFunction done) override {
    const std::string name = rpc::name_of(request);
    ++calls_[name];
    auto once = std::make_shared<rpc::ReplyFunction>(std::move(done));
    const auto finish = [once, &executor](Result<rpc::Reply> reply) {
      if (!*once) return;
      executor.post([function = std::move(*once), shared = std::make_shared<Result<rpc::Reply>>(std::move(reply))] {
        function(std::move(*shared));
      });
      *once = nullptr;
    };
    const bool lost = lose_[name] > 0;
    if (lost) --lose_[name];
    scheduler_.outside().post_after(timeout, [finish] { finish(Status(StatusCode::Timeout, "no answer")); });
    auto copy = std::make_shared<rpc::Request>(request);
    auto original = std::make_shared<rpc::Request>(std::move(request));
    scheduler_.outside().post_after(milliseconds(1), [this, to, copy, original, lost, finish] {
      const auto it = services_.find(to);
      if (it == services_.end()) {
        finish(Status(StatusCode::NotReady, "no connection to " + to));
        return;
      }
      rpc::Responder respond = [this, to, copy, lost, finish](rpc::Reply reply) {
        if (lost) return;
        auto shared = std::make_shared<rpc::Reply>(std::move(reply));
        scheduler_.outside().post_after(milliseconds(1) + slower_[to], [this, copy, shared, finish] {
          if (on_reply) on_reply(*copy, *shared);
          finish(std::move(*shared));
        });
      };
      const bool taken = it->second->handle(*original, respond);
      FJORD_CHECK(taken);
    });
  }

 private:
  sim::SimScheduler& scheduler_;
  std::map<rpc::Address, rpc::Service*> services_;
  std::map<std::string, int> lose_;
  std::map<rpc::Address, Duration> slower_;
  std::map<std::string, int> calls_;
};

/// A Runtime with simulated executors and time.
class SimRuntime {
 public:
  SimRuntime(sim::SimScheduler& scheduler, const std::string& name, std::uint64_t seed)
      : scheduler_(scheduler.make_node_scheduler(name)),
        bulk_(make_inline_bulk_executor()),
        env_(make_posix_env()),
        random_(seed),
        runtime{scheduler.clock(), *scheduler_, *bulk_, *env_, random_, metrics, tunables} {}

 private:
  std::unique_ptr<sim::SimNodeScheduler> scheduler_;
  std::unique_ptr<BulkExecutor> bulk_;
  std::unique_ptr<Env> env_;
  Random random_;

 public:
  MetricRegistry metrics;
  TunableRegistry tunables;
  Runtime runtime;
};

/// Two stripes with a memory provider each.
class StripedNode final : public spi::BucketAccess {
 public:
  explicit StripedNode(Scheduler& scheduler) {
    for (int i = 0; i < 2; ++i) {
      providers.push_back(make_memory_provider());
      stripes.push_back(scheduler.make_executor("stripe"));
    }
  }
  std::size_t stripe_of(BucketId bucket) const override { return bucket.bit(0); }
  void on_stripe(BucketId bucket, UniqueFunction<void(spi::PersistenceProvider&)> task) override {
    ++stripe_tasks;
    stripes[bucket.bit(0)]->post([&provider = *providers[bucket.bit(0)], t = std::move(task)] { t(provider); });
  }
  spi::PersistenceProvider& provider(BucketId bucket) { return *providers[bucket.bit(0)]; }

  std::vector<std::unique_ptr<spi::PersistenceProvider>> providers;
  std::vector<std::unique_ptr<Executor>> stripes;
  int stripe_tasks = 0;
};

/// The service of a storage node: visits, and how full its disk is.
class NodeService final : public rpc::Service {
 public:
  explicit NodeService(rpc::Service& visits) : visits_(visits) {}

  bool handle(rpc::Request& request, rpc::Responder& respond) override {
    const auto* question = std::get_if<rpc::GetBucketInfo>(&request);
    if (question == nullptr) return visits_.handle(request, respond);
    rpc::GetBucketInfoReply reply;
    reply.space_stage = is_full ? 4 : 1;
    if (is_full) reply.space_reason = "96 % used; storage.space_refuse_external_percent is 95";
    for (const BucketId bucket : question->of_all_owners ? holds : std::vector<BucketId>()) {
      reply.reports.push_back({.bucket = bucket, .info = {}, .replica_set = {}});
    }
    respond(std::move(reply));
    return true;
  }

  bool is_full = false;
  std::vector<BucketId> holds;  ///< The buckets in its answer to a request for the buckets of all owners.

 private:
  rpc::Service& visits_;
};

/// One distributor that knows where the buckets are, and storage nodes that hold them in memory. Every node holds all
/// buckets; the distributor names the nodes that are up in turn.
class VisitorWorld final : public rpc::Service {
 public:
  struct StorageNode {
    std::unique_ptr<SimRuntime> runtime;
    std::unique_ptr<StripedNode> buckets;
    std::unique_ptr<visitors::VisitorRegistry> registry;
    std::unique_ptr<visitors::VisitorService> service;
    std::unique_ptr<NodeService> all;
    bool up = true;
  };

  VisitorWorld(std::uint64_t seed, std::uint16_t storage_nodes, const std::string& schema,
               visitors::VisitorServiceOptions options = {})
      : scheduler(seed), transport(scheduler), client_runtime(scheduler, "client", seed + 1), options_(options) {
    info.state_version = 1;
    info.state = state_string(storage_nodes);
    info.distribution = DistributionConfig::flat(storage_nodes, 2).to_string();
    info.distributor_addresses = {"distributor"};
    for (int i = 0; i < storage_nodes; ++i) info.storage_addresses.push_back("storage" + std::to_string(i));
    info.schema_version = 1;
    info.schemas = {schema};
    update(snapshot);
    executor = client_runtime.runtime.scheduler.make_executor("client");
    transport.serve("distributor", this);
    for (std::uint16_t i = 0; i < storage_nodes; ++i) add_node(i);
  }
  ~VisitorWorld() override {
    for (StorageNode& node : nodes) node.service.reset();
  }

  static std::string state_string(int storage_nodes) {
    return "version:1 bits:4 distributor:1 storage:" + std::to_string(storage_nodes);
  }

  void update(rpc::SnapshotHolder& holder) {
    const auto changed = holder.update(info);
    FJORD_CHECK(changed.has_value());
  }

  void add_node(std::uint16_t index) {
    StorageNode& node = nodes.emplace_back();
    node.runtime = std::make_unique<SimRuntime>(scheduler, "storage" + std::to_string(index), index + 100);
    node.buckets = std::make_unique<StripedNode>(node.runtime->runtime.scheduler);
    node.registry = std::make_unique<visitors::VisitorRegistry>();
    visitors::add_builtin_visitors(*node.registry);
    node.service = std::make_unique<visitors::VisitorService>(options_, node.runtime->runtime, *node.buckets, snapshot,
                                                              *node.registry);
    node.all = std::make_unique<NodeService>(*node.service);
    transport.serve("storage" + std::to_string(index), node.all.get());
  }

  /// Ends the process. The fleet controller notices it at once if `noticed`.
  void kill_node(std::size_t index, bool noticed) {
    transport.stop_serving("storage" + std::to_string(index));
    nodes[index].service.reset();
    nodes[index].up = false;
    if (!noticed) return;
    ++info.state_version;
    set_state();
  }

  /// Splits or joins all buckets to `bits` bits and publishes a cluster state with that number.
  void change_bits(unsigned bits) {
    for (; bits_ < bits; ++bits_) {
      for (const BucketId bucket : known_buckets_) {
        for (StorageNode& node : nodes) FJORD_CHECK(node.buckets->provider(bucket).split_bucket(bucket).is_ok());
      }
      std::set<BucketId> halves;
      for (const BucketId bucket : known_buckets_) {
        for (const BucketId half : halves_of(bucket)) halves.insert(half);
      }
      known_buckets_ = std::move(halves);
    }
    for (; bits_ > bits; --bits_) {
      std::set<BucketId> wholes;
      for (const BucketId bucket : known_buckets_) wholes.insert(bucket.with_used_bits(bits_ - 1));
      for (const BucketId whole : wholes) {
        for (StorageNode& node : nodes) FJORD_CHECK(node.buckets->provider(whole).join_buckets(whole).is_ok());
      }
      known_buckets_ = std::move(wholes);
    }
    ++info.state_version;
    set_state();
  }

  /// Returns the timestamp of the last write.
  std::uint64_t last_timestamp() const { return timestamp_; }
  const DocumentTypeRepo& types() const { return *snapshot.get()->types(); }

  /// Puts the document on every node.
  void put(const std::string& id_text, const std::string& header, const std::string& body) {
    const auto id = DocumentId::parse(id_text);
    FJORD_CHECK_MSG(id.has_value(), id_text);
    write({.bucket = id->bucket(bits_),
           .gid = id->gid(),
           .timestamp = Timestamp{++timestamp_},
           .remove = false,
           .id = id_text,
           .header = header,
           .body = body});
    ++puts;
  }
  void put(const Document& document) {
    const EncodedDocument encoded = encode(document);
    put(document.id().str(), encoded.header, encoded.body);
  }
  void remove(const std::string& id_text) {
    const auto id = DocumentId::parse(id_text);
    FJORD_CHECK(id.has_value());
    write({.bucket = id->bucket(bits_),
           .gid = id->gid(),
           .timestamp = Timestamp{++timestamp_},
           .remove = true,
           .id = id_text,
           .header = {},
           .body = {}});
  }
  /// Writes a remove entry into the bucket of a document, with `text` in place of an id.
  void remove_as(const std::string& document_id, const std::string& text) {
    const GlobalId document = DocumentId::parse(document_id)->gid();
    GlobalId gid = document;
    gid.bytes[11] = static_cast<std::uint8_t>(gid.bytes[11] ^ 1);
    write({.bucket = fjord::bucket_of(document, bits_),
           .gid = gid,
           .timestamp = Timestamp{++timestamp_},
           .remove = true,
           .id = text,
           .header = {},
           .body = {}});
  }
  /// Writes an older version, as a merge from a replica that was away does.
  void put_late(const Document& document, std::uint64_t timestamp_us) {
    const std::uint64_t now = std::exchange(timestamp_, timestamp_us - 1);
    put(document);
    timestamp_ = now;
  }
  /// Raises the epoch of all buckets, as every change of replica sets does.
  void raise_epochs() {
    for (StorageNode& node : nodes) {
      for (const BucketId bucket : known_buckets_) {
        auto set = node.buckets->provider(bucket).replica_set(bucket);
        ++set->epoch;
        FJORD_CHECK(node.buckets->provider(bucket).set_replica_set(bucket, *set).is_ok());
      }
    }
  }
  void forget_removes(Timestamp before) {
    for (StorageNode& node : nodes) {
      for (const BucketId bucket : known_buckets_) {
        FJORD_CHECK(node.buckets->provider(bucket).forget_removes(bucket, before).is_ok());
      }
    }
  }
  void create_bucket(StorageNode& node, BucketId bucket, std::uint64_t epoch = 1 << 20) {
    FJORD_CHECK(node.buckets->provider(bucket).create_bucket(bucket).is_ok());
    FJORD_CHECK(node.buckets->provider(bucket).set_replica_set(bucket, {.epoch = epoch, .nodes = {0}}).is_ok());
  }

  /// Returns all documents of a node whose id contains `part`: id to (header, body).
  std::map<std::string, std::pair<std::string, std::string>> stored(const std::string& part, std::size_t node = 0) {
    std::map<std::string, std::pair<std::string, std::string>> found;
    for (auto& provider : nodes[node].buckets->providers) {
      for (const BucketId bucket : provider->list_buckets()) {
        spi::IterateOptions everything;
        everything.types = snapshot.get()->types();
        auto iterator = provider->iterate(bucket, everything);
        FJORD_CHECK(iterator.has_value());
        DocBlockBuilder block;
        while (*(*iterator)->next(block, 1 << 20)) {
        }
        const std::string bytes = block.take();
        DocBlockReader reader(bytes);
        while (const auto entry = reader.next()) {
          const auto view = DocumentView::open(types(), entry->header, entry->body);
          FJORD_CHECK(view.has_value());
          if (view->id().find(part) == std::string_view::npos) continue;
          found[std::string(view->id())] = {std::string(entry->header), std::string(entry->body)};
        }
      }
    }
    return found;
  }

  bool handle(rpc::Request& request, rpc::Responder& respond) override {
    if (auto* get = std::get_if<rpc::GetClusterInfo>(&request)) {
      rpc::GetClusterInfoReply reply;
      if (info.state_version > get->known_state_version || info.schema_version > get->known_schema_version) {
        reply.info = info;
      }
      respond(std::move(reply));
    } else if (auto* buckets = std::get_if<rpc::GetBucketNodes>(&request)) {
      respond(bucket_nodes(*buckets));
    } else {
      return other_service != nullptr && other_service->handle(request, respond);
    }
    return true;
  }

  bool run_until(const std::function<bool()>& done, Duration limit = seconds(600)) {
    return scheduler.run_until(done, limit);
  }

  sim::SimScheduler scheduler;
  DirectTransport transport;
  rpc::ClusterInfo info;
  rpc::SnapshotHolder snapshot;
  SimRuntime client_runtime;
  std::unique_ptr<Executor> executor;
  std::deque<StorageNode> nodes;
  std::set<BucketId> unavailable;
  bool even_damaged = false;  ///< The distributor says of each bucket that no replica is intact.
  std::set<BucketId> hidden;  ///< The distributor lists these buckets, but finds none if asked for them by name.
  rpc::Service* other_service = nullptr;  ///< Second service at the distributor's address.
  int puts = 0;
  std::uint64_t stable_us = 0;  ///< Timestamp up to which the distributor says that no write is in flight; 0: that of
                                ///< the last write.

 private:
  void write(const spi::Write& write) {
    const BucketId bucket = write.bucket;
    for (StorageNode& node : nodes) {
      if (!node.buckets->provider(bucket).bucket_info(bucket)) create_bucket(node, bucket);
      spi::WriteResult result;
      node.buckets->provider(bucket).apply({&write, 1}, {&result, 1}, spi::Durability::Process);
      FJORD_CHECK(result.status.is_ok());
    }
    known_buckets_.insert(bucket);
  }

  void set_state() {
    info.state = "version:" + std::to_string(info.state_version) + " bits:" + std::to_string(bits_) +
                 " distributor:1 storage:" + std::to_string(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i].up) info.state += " ." + std::to_string(i) + ".s:d";
    }
  }

  rpc::GetBucketNodesReply bucket_nodes(const rpc::GetBucketNodes& request) {
    rpc::GetBucketNodesReply reply;
    if (request.state_version < info.state_version) {
      reply.status = Status(StatusCode::WrongDistribution, "older state");
      reply.newer_info = info;
      return reply;
    }
    if (request.for_changes) {
      for (const BucketId bucket : known_buckets_) {
        const auto set = nodes.front().buckets->provider(bucket).replica_set(bucket);
        FJORD_CHECK(set.has_value());
        rpc::BucketNode& found = reply.buckets.emplace_back();
        found.bucket = bucket;
        if (unavailable.contains(bucket)) found.status = Status(StatusCode::NotReady, "not in sync");
        found.node = static_cast<std::uint16_t>(++next_node_ % nodes.size());
        found.epoch = set->epoch;
        found.stable_us = stable_us == 0 ? timestamp_ : stable_us;
      }
      return reply;
    }
    const std::vector<BucketId> asked =
        request.all ? std::vector<BucketId>(known_buckets_.begin(), known_buckets_.end()) : request.buckets;
    for (const BucketId bucket : asked) {
      rpc::BucketNode& found = reply.buckets.emplace_back();
      found.bucket = bucket;
      const bool is_known = std::any_of(known_buckets_.begin(), known_buckets_.end(),
                                        [&](BucketId one) { return one.contains(bucket) || bucket.contains(one); });
      if (!is_known || (!request.all && hidden.contains(bucket))) {
        found.status = Status(StatusCode::NotFound, "nothing there");
      } else if (unavailable.contains(bucket)) {
        found.status = Status(StatusCode::Unavailable, "no replica is up");
      } else {
        const auto may_be = [&](std::size_t node) {
          const bool is_avoided = std::find(request.avoid.begin(), request.avoid.end(), node) != request.avoid.end();
          return nodes[node].up && (!is_avoided || nodes.size() == 1);
        };
        do {
          next_node_ = (next_node_ + 1) % nodes.size();
        } while (!may_be(next_node_));
        found.node = static_cast<std::uint16_t>(next_node_);
        found.even_damaged = even_damaged;
      }
    }
    return reply;
  }

  visitors::VisitorServiceOptions options_;
  std::set<BucketId> known_buckets_;
  unsigned bits_ = 4;
  std::uint64_t timestamp_ = 1000;
  std::size_t next_node_ = 0;
};

}  // namespace fjord::test
