#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fjord/common/log.h"
#include "fjord/distributor/distributor_node.h"
#include "fjord/document/document_id.h"
#include "fjord/sim/sim_clock.h"
#include "fjord/sim/sim_env.h"
#include "fjord/sim/sim_scheduler.h"
#include "support/scripted_transport.h"

namespace fjord::test {

/// The state of one bucket on a storage node, as far as a distributor can see it.
struct TestReplica {
  struct Version {
    std::uint64_t timestamp_us = 0;
    bool removed = false;
    std::string header;
    std::string body;
  };
  ReplicaSet set;
  std::map<std::string, Version> documents;                          ///< By document id.
  std::map<GlobalId, std::pair<std::string, std::uint64_t>> tokens;  ///< By gid: id and timestamp of a key's entry.
  bool damaged = false;                                              ///< True if the replica may have lost entries.

  BucketInfo info() const {
    BucketInfo info;
    for (const auto& [id, version] : documents) {
      if (version.timestamp_us == 0) continue;
      ++info.entries;
      info.checksum += hash64(id, version.timestamp_us);
      info.bytes += version.header.size() + version.body.size();
      info.max_timestamp_us = std::max(info.max_timestamp_us, version.timestamp_us);
    }
    return info;
  }
};

/// One distributor that owns all buckets, with storage nodes made of maps. The test acts as fleet controller and
/// clients.
class DistributorWorld {
 public:
  using Hook = std::function<std::optional<Result<rpc::Reply>>(std::uint16_t node, rpc::Request& request)>;

  explicit DistributorWorld(std::uint16_t storage_nodes, unsigned redundancy = 2, unsigned bits = 1)
      : storage(storage_nodes),
        redundancy_(redundancy),
        bits_(bits),
        process_(scheduler.make_node_scheduler("distributor")),
        clock(scheduler.clock()),
        bulk_(make_inline_bulk_executor()),
        runtime_{clock, *process_, *bulk_, env_, random_, metrics_, tunables_} {
    log::set_level(log::Level::Off);
    transport.set_script([this](const rpc::Address& to, rpc::Request& request) { return script(to, request); });
    start();
  }
  ~DistributorWorld() {
    process_->kill();
    node_.reset();
  }

  /// Sends a poll of the fleet controller, filled in by `change`.
  template <typename Change>
  rpc::PollReply poll(Change change) {
    rpc::Poll request;
    change(request);
    return ask(std::move(request));
  }
  /// Sends a new cluster state. `nodes` follows the number of storage nodes in the state's text, e.g. " .1.s:d";
  /// `distributor` follows the number of distributors.
  void give_state(std::uint64_t version, const std::string& nodes = {}, const std::string& distributor = {}) {
    rpc::Poll poll;
    poll.info.state_version = version;
    poll.info.state = "version:" + std::to_string(version) + " bits:" + std::to_string(bits_) + " distributor:1" +
                      distributor + state_keys + " storage:" + std::to_string(storage.size()) + nodes;
    poll.info.distribution =
        DistributionConfig::flat(static_cast<std::uint16_t>(storage.size()), redundancy_).to_string();
    poll.info.distributor_addresses = {"d:1"};
    for (std::size_t i = 0; i < storage.size(); ++i) poll.info.storage_addresses.push_back(std::to_string(i));
    if (node_->snapshots().get() == nullptr) {
      poll.info.schema_version = 1;
      poll.info.schemas = {schema};
    }
    poll.heard_incarnation = incarnation_;
    rpc::PollReply reply = ask(std::move(poll));
    REQUIRE(reply.status);
    REQUIRE(reply.state_version == version);
    incarnation_ = reply.incarnation;
  }

  /// Sets the redundancy of all later states.
  void set_redundancy(unsigned redundancy) { redundancy_ = redundancy; }
  /// Restarts the distributor, which loses all state.
  void restart() {
    node_.reset();
    start();
  }

  template <typename R>
  std::shared_ptr<std::optional<typename R::Reply>> send(R request) {
    auto got = std::make_shared<std::optional<typename R::Reply>>();
    rpc::Request any = std::move(request);
    rpc::Responder respond = [got](rpc::Reply reply) {
      REQUIRE_FALSE(got->has_value());
      *got = std::get<typename R::Reply>(std::move(reply));
    };
    REQUIRE(node_->handle(any, respond));
    return got;
  }
  template <typename R>
  typename R::Reply ask(R request, Duration limit = seconds(60)) {
    auto got = send(std::move(request));
    REQUIRE(scheduler.run_until([&] { return got->has_value(); }, limit));
    return std::move(**got);
  }
  void run(Duration duration) { scheduler.run_for(duration); }

  /// Returns the replica set of the bucket as stored on `node`.
  ReplicaSet set_at(std::uint16_t node, BucketId bucket) { return storage[node][bucket.raw()].set; }
  TunableRegistry& tunables() { return tunables_; }
  std::uint64_t counter(const std::string& name, const Labels& labels = {}) {
    return metrics_.counter(name, "", labels).value();
  }
  double gauge(const std::string& name) { return metrics_.gauge(name, "").value(); }
  /// Splits a replica without a request of the distributor.
  void split_at(std::uint16_t node, BucketId bucket) {
    rpc::SplitBucket request;
    request.bucket = bucket;
    request.epoch = ~std::uint64_t{0};
    REQUIRE(rpc::status_of(serve(node, request)));
  }
  bool holds(std::uint16_t node, BucketId bucket) const { return storage[node].contains(bucket.raw()); }
  std::vector<std::uint16_t> ideal(BucketId bucket) const {
    return node_->snapshots().get()->ideal_nodes(bucket).to_vector();
  }

  using Storage = std::map<std::uint64_t, TestReplica>;  ///< By raw bucket id: the replica.
  sim::SimScheduler scheduler{3};
  std::vector<Storage> storage;
  ScriptedTransport transport;
  /// Called first for every request to a storage node; its answer, if any, replaces the node's.
  Hook hook;
  /// More keys for the text of all later states, e.g. " copies:1".
  std::string state_keys;
  /// Schema of the first state.
  std::string schema = "document item { field value type string { body } field count type int { header } }";
  /// Returns true if a request to a storage node is lost.
  std::function<bool(const rpc::Request& request)> loses;
  /// Storage nodes of earlier versions do not return the bucket's content with a new replica set.
  bool has_contents = true;
  /// Load that each storage node reports in its answers; 0: it reports none.
  std::vector<std::uint32_t> load_permille = std::vector<std::uint32_t>(16);
  /// How full each storage node says that it is, as in rpc::GetBucketInfoReply.
  std::vector<std::uint16_t> space_stage = std::vector<std::uint16_t>(16);
  /// Nodes that execute requests but never answer.
  std::vector<bool> mute = std::vector<bool>(16);

 private:
  void start() {
    distributor::DistributorOptions options;
    options.storage_timeout = milliseconds(200);
    options.merge_timeout = milliseconds(500);
    options.fleet_controller = "controller:1";
    node_ = std::make_unique<distributor::DistributorNode>(options, runtime_, transport);
  }

  std::optional<Result<rpc::Reply>> script(const rpc::Address& to, rpc::Request& request) {
    const auto node = static_cast<std::uint16_t>(std::stoi(to));
    if (loses && loses(request)) return std::nullopt;
    if (hook) {
      if (auto answer = hook(node, request)) return answer;
    }
    Result<rpc::Reply> reply = std::visit([&](auto& r) { return Result<rpc::Reply>(serve(node, r)); }, request);
    if (mute[node]) return std::nullopt;
    return reply;
  }

  rpc::Reply serve(std::uint16_t node, rpc::GetBucketInfo& request) {
    rpc::GetBucketInfoReply reply;
    reply.space_stage = space_stage[node];
    for (const auto& [raw, replica] : storage[node]) {
      const auto& asked = request.buckets;
      const bool wanted = std::any_of(asked.begin(), asked.end(), [&, here = BucketId(raw)](BucketId bucket) {
        return bucket == here ||
               (!storage[node].contains(bucket.raw()) && (bucket.contains(here) || here.contains(bucket)));
      });
      if (!request.all && !wanted) continue;
      const bool large = request.entries_limit != 0 && replica.info().entries > request.entries_limit;
      if (request.only_damaged && !replica.damaged && !large) continue;
      reply.reports.push_back({BucketId(raw), replica.info(), replica.set, replica.damaged});
    }
    return reply;
  }
  rpc::Reply serve(std::uint16_t node, rpc::SetReplicaSets& request) {
    rpc::SetReplicaSetsReply reply;
    for (const rpc::BucketReplicaSet& entry : request.buckets) {
      TestReplica& replica = storage[node][entry.bucket.raw()];
      if (entry.replica_set.epoch > replica.set.epoch) replica.set = entry.replica_set;
      if (entry.repaired && replica.info().same_content(entry.intact)) replica.damaged = false;
      reply.statuses.push_back(Status::ok());
      if (has_contents) reply.contents.push_back(replica.info());
    }
    return reply;
  }
  rpc::Reply serve(std::uint16_t node, rpc::DeleteBuckets& request) {
    rpc::DeleteBucketsReply reply;
    for (BucketId bucket : request.buckets) {
      storage[node].erase(bucket.raw());
      reply.statuses.push_back(Status::ok());
    }
    return reply;
  }
  rpc::Reply serve(std::uint16_t node, rpc::SplitBucket& request) {
    rpc::SplitBucketReply reply;
    const auto parent = storage[node].find(request.bucket.raw());
    if (parent != storage[node].end() && parent->second.set.epoch > request.epoch) {
      reply.status = Status(StatusCode::WrongDistribution, "a newer set is here");
      return reply;
    }
    if (parent != storage[node].end()) {
      for (BucketId half : halves_of(request.bucket)) storage[node][half.raw()].set = parent->second.set;
      move_content(parent->second, storage[node], request.bucket.used_bits() + 1);
      storage[node].erase(parent);
    }
    for (BucketId half : halves_of(request.bucket)) {
      const auto replica = storage[node].find(half.raw());
      if (replica == storage[node].end()) continue;
      reply.reports.push_back({half, replica->second.info(), replica->second.set, replica->second.damaged});
    }
    if (reply.reports.empty()) reply.status = Status(StatusCode::NotFound, "no such bucket");
    return reply;
  }
  rpc::Reply serve(std::uint16_t node, rpc::JoinBuckets& request) {
    rpc::JoinBucketsReply reply;
    for (BucketId half : halves_of(request.parent)) {
      const auto replica = storage[node].find(half.raw());
      if (replica == storage[node].end()) continue;
      CHECK(replica->second.set.epoch == request.epoch);
      const TestReplica content = replica->second;
      storage[node].erase(replica);
      storage[node][request.parent.raw()].set = content.set;
      move_content(content, storage[node], request.parent.used_bits());
    }
    if (!storage[node].contains(request.parent.raw())) reply.status = Status(StatusCode::NotFound, "not here");
    return reply;
  }
  static void move_content(const TestReplica& from, Storage& to, unsigned bits) {
    for (const auto& [id, version] : from.documents)
      to[bucket_of(DocumentId::parse(id)->gid(), bits).raw()].documents[id] = version;
    for (const auto& [gid, token] : from.tokens) to[bucket_of(gid, bits).raw()].tokens[gid] = token;
  }
  /// Returns only the first window.
  rpc::Reply serve(std::uint16_t node, rpc::ListEntries& request) {
    rpc::ListEntriesReply reply;
    reply.by_group = request.by_group;
    const TestReplica& replica = storage[node][request.bucket.raw()];
    std::map<std::uint64_t, std::vector<rpc::EntryKey>> groups;
    const auto add = [&](const GlobalId& gid, std::uint64_t timestamp_us) {
      const std::uint64_t group = bucket_of(gid, BucketId::kUsedBitsMax).sort_key();
      if ((request.from_start || group > request.after_group) && group <= request.last_group) {
        groups[group].push_back({gid, timestamp_us, false});
      }
    };
    for (const auto& [id, version] : replica.documents) {
      if (version.timestamp_us != 0) add(DocumentId::parse(id)->gid(), version.timestamp_us);
    }
    for (const auto& [gid, token] : replica.tokens) add(gid, token.second);
    if (!groups.empty()) reply.entries = groups.begin()->second;
    return reply;
  }
  rpc::Reply serve(std::uint16_t node, rpc::MergeBucket& request) {
    rpc::MergeBucketReply reply;
    TestReplica& target = storage[node][request.bucket.raw()];
    for (std::uint16_t source : request.sources) {
      if (storage[source][request.bucket.raw()].damaged) reply.damaged_sources.push_back(source);
      for (const auto& [id, version] : storage[source][request.bucket.raw()].documents) {
        TestReplica::Version& ours = target.documents[id];
        if (version.timestamp_us > ours.timestamp_us) ours = version;
      }
      for (const auto& [gid, token] : storage[source][request.bucket.raw()].tokens) {
        if (token.second > target.tokens[gid].second) target.tokens[gid] = token;
      }
    }
    return reply;
  }
  rpc::Reply serve(std::uint16_t node, rpc::Apply& request) {
    rpc::ApplyReply reply;
    reply.utilisation_permille = load_permille[node];
    for (const rpc::StorageOperation& operation : request.operations) {
      rpc::OperationResult result;
      auto replica = storage[node].find(operation.bucket.raw());
      if (replica == storage[node].end()) {
        result.status = Status(StatusCode::NotReady, "no such bucket");
      } else if (operation.epoch < replica->second.set.epoch) {
        result.status = Status(StatusCode::WrongDistribution, "an older set");
      } else if (operation.kind == rpc::OperationKind::Get && replica->second.damaged &&
                 !(operation.even_damaged && replica->second.documents.contains(operation.id))) {
        result.status = Status(StatusCode::Corruption, "damaged here");
      } else if (operation.kind == rpc::OperationKind::Get) {
        const TestReplica::Version& version = replica->second.documents[operation.id];
        const bool there = version.timestamp_us != 0 && !version.removed;
        if (!there) result.status = Status(StatusCode::NotFound, "not here");
        result.timestamp_us = version.timestamp_us;
        result.header = version.header;
        if (!operation.header_only) result.body = version.body;
        if (auto token = replica->second.tokens.find(operation.token_gid); token != replica->second.tokens.end()) {
          std::tie(result.token_entry, result.token_timestamp_us) = token->second;
        }
      } else if (std::uint64_t here = replica->second.documents[operation.id].timestamp_us;
                 operation.compare && here != operation.read_us && here != operation.timestamp_us) {
        result.status = Status(StatusCode::TestAndSetFailed, "another version is here");
      } else {
        if (!operation.token_entry.empty()) {
          replica->second.tokens[operation.token_gid] = {operation.token_entry, operation.timestamp_us};
        }
        TestReplica::Version& version = replica->second.documents[operation.id];
        result.existed = version.timestamp_us != 0 && !version.removed;
        result.timestamp_us = operation.timestamp_us;
        if (operation.timestamp_us > version.timestamp_us) {
          version = {operation.timestamp_us, operation.kind == rpc::OperationKind::Remove, operation.header,
                     operation.body};
        }
      }
      reply.results.push_back(std::move(result));
    }
    return reply;
  }
  template <typename R>
  rpc::Reply serve(std::uint16_t, R& request) {
    return rpc::error_reply(rpc::Request(request), Status(StatusCode::NotImplemented, "not in this test"));
  }

  unsigned redundancy_;
  unsigned bits_;
  std::uint64_t incarnation_ = 0;  ///< Incarnation in the last answer to the fleet controller.
  std::unique_ptr<sim::SimNodeScheduler> process_;

 public:
  sim::SimNodeClock clock;

 private:
  sim::SimEnv env_;
  Random random_{9};
  std::unique_ptr<BulkExecutor> bulk_;
  MetricRegistry metrics_;
  TunableRegistry tunables_;
  Runtime runtime_;
  std::unique_ptr<distributor::DistributorNode> node_;
};

inline BucketId bucket_of_id(const std::string& id, unsigned bits = 1) {
  return bucket_of(DocumentId::parse(id)->gid(), bits);
}

/// Returns a batch of one operation of client 5. Sequence 0: anonymous.
inline rpc::Execute batch_of(rpc::OperationKind kind, const std::string& id, std::uint64_t sequence = 0,
                             std::uint32_t attempt = 1, const std::string& value = "v") {
  rpc::Execute batch;
  batch.client_id = sequence == 0 ? 0 : 5;
  batch.first_unsettled = 1;
  batch.timeout_us = 2'000'000;
  rpc::Operation operation;
  operation.kind = kind;
  operation.id = id;
  operation.sequence = sequence;
  operation.attempt = attempt;
  if (kind == rpc::OperationKind::Put) operation.json = R"({"value": ")" + value + R"("})";
  operation.want_json = kind == rpc::OperationKind::Get;
  batch.operations.push_back(std::move(operation));
  return batch;
}
inline rpc::Execute put_batch(const std::string& id, std::uint64_t sequence = 0, std::uint32_t attempt = 1,
                              const std::string& value = "v") {
  return batch_of(rpc::OperationKind::Put, id, sequence, attempt, value);
}
inline rpc::Execute update_batch(const std::string& id, const std::string& changes, const std::string& token = {},
                                 std::uint64_t sequence = 0, std::uint32_t attempt = 1) {
  rpc::Execute batch = batch_of(rpc::OperationKind::Update, id, sequence, attempt);
  batch.operations[0].json = changes;
  batch.operations[0].token = token;
  return batch;
}
inline rpc::Execute get_batch(const std::string& id) { return batch_of(rpc::OperationKind::Get, id); }

}  // namespace fjord::test
