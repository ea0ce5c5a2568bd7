#include "operations/read_choice.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>

#include "../distributor_world.h"

namespace fjord::test {
namespace {

using distributor::choose_by_share;
using distributor::read_shares_of;
using distributor::ReadChoice;

/// Returns, for 10,000 choices, how often each node was chosen.
std::map<std::uint16_t, int> counts(const std::vector<std::uint16_t>& nodes, const std::vector<ReadShare>& shares) {
  Random random(7);
  std::map<std::uint16_t, int> counts;
  for (int i = 0; i < 10'000; ++i) ++counts[choose_by_share(nodes, shares, random)];
  return counts;
}

const std::vector<std::uint16_t> kAll = {0, 1, 2};

/// The setting `balancer.reads` in a cluster of the nodes 0 to 2.
class Choice {
 public:
  explicit Choice(ReadChoice::By by) {
    REQUIRE(tunables_.set("balancer.reads", static_cast<std::int64_t>(by)));
    rpc::ClusterInfo info;
    info.state_version = 3;
    info.state = "version:3 bits:2 distributor:1 storage:3";
    info.distribution = DistributionConfig::flat(3, 3).to_string();
    info.distributor_addresses = {"d0:1"};
    info.storage_addresses = {"s0:1", "s1:1", "s2:1"};
    REQUIRE(snapshots_.update(info));
    choice.follow(*snapshots_.get());
  }
  std::uint16_t chosen(const std::vector<std::uint16_t>& nodes, int document,
                       const std::vector<ReadShare>& shares = {}) {
    const auto id = DocumentId::parse("id:a:item::" + std::to_string(document)).value();
    choice.follow(*snapshots_.get());
    return choice.choose(nodes, id.gid(), shares, random_);
  }
  /// How many of 10,000 documents are read from each node.
  std::map<std::uint16_t, int> counts(const std::vector<std::uint16_t>& nodes,
                                      const std::vector<ReadShare>& shares = {}) {
    std::map<std::uint16_t, int> counts;
    for (int i = 0; i < 10'000; ++i) ++counts[chosen(nodes, i, shares)];
    return counts;
  }
  /// Node 1 is busy and the others are nearly idle, for `time`; an answer each millisecond.
  void pass(Duration time, std::uint32_t others_permille = 50) {
    for (const MonotonicTime end = now_ + time; now_ < end; now_ = now_ + milliseconds(1)) {
      for (const std::uint16_t node : kAll) choice.on_answer(node, node == 1 ? 950 : others_permille, now_);
    }
  }

 private:
  TunableRegistry tunables_;
  rpc::SnapshotHolder snapshots_;
  Random random_{7};
  MonotonicTime now_{1'000'000};

 public:
  ReadChoice choice{tunables_};
};

}  // namespace

TEST_CASE("read choice: replicas are chosen as often as their shares say") {
  auto chosen = counts({4, 7, 8, 9}, {{1, 4, 200}, {1, 7, 300}, {1, 9, 500}});
  CHECK(chosen[4] > 1800);
  CHECK(chosen[4] < 2200);
  CHECK(chosen[7] > 2800);
  CHECK(chosen[7] < 3200);
  CHECK(chosen[9] == 10'000 - chosen[4] - chosen[7]);
  // The share of a node that may not be read now goes to the others in proportion.
  chosen = counts({4, 9}, {{1, 4, 100}, {1, 7, 800}, {1, 9, 300}});
  CHECK(chosen[4] > 2300);
  CHECK(chosen[4] < 2700);
}

TEST_CASE("read choice: without shares all are chosen alike, also if rows are about other nodes") {
  for (const std::vector<ReadShare>& shares :
       {std::vector<ReadShare>{}, std::vector<ReadShare>{{1, 2, 1000}}, std::vector<ReadShare>{{1, 4, 0}}}) {
    auto chosen = counts({4, 7}, shares);
    CHECK(chosen[4] > 4700);
    CHECK(chosen[7] > 4700);
  }
  CHECK(counts({4}, {{1, 7, 1000}})[4] == 10'000);
}

TEST_CASE("read choice: a split bucket has the shares of its distribution bucket") {
  const auto state = ClusterState::parse("bits:4 read:5=1*1000 storage:2").value();
  CHECK(read_shares_of(BucketId(4, 5), state).size() == 1);
  CHECK(read_shares_of(BucketId(7, 0x35), state).size() == 1);
  CHECK(read_shares_of(BucketId(7, 0x36), state).empty());
  CHECK(read_shares_of(BucketId(3, 5), state).empty());
  CHECK(read_shares_of(BucketId(4, 5), ClusterState::parse("bits:4 storage:2").value()).empty());
}

TEST_CASE("read choice: at random a document is read from all of its replicas, whatever their load") {
  Choice random(ReadChoice::By::Random);
  random.pass(seconds(60));
  auto chosen = random.counts({0, 1, 2});
  for (const std::uint16_t node : kAll) CHECK(std::abs(chosen[node] - 3333) < 200);
  std::map<std::uint16_t, int> of_one;
  for (int i = 0; i < 100; ++i) ++of_one[random.chosen({0, 1}, 7)];
  CHECK(of_one.size() == 2);
}

TEST_CASE("read choice: least-loaded reads from busy nodes less often, but not never") {
  Choice choice(ReadChoice::By::LeastLoaded);
  auto chosen = choice.counts({0, 1, 2});
  for (const std::uint16_t node : kAll) CHECK(std::abs(chosen[node] - 3333) < 200);
  choice.pass(seconds(60));
  chosen = choice.counts({0, 1, 2});
  CHECK(chosen[1] > 500);
  CHECK(chosen[1] < 850);
  CHECK(std::abs(chosen[0] - chosen[2]) < 300);
  CHECK(choice.chosen({1}, 7) == 1);
}

TEST_CASE("read choice: with affinity a document has one replica, and each replica its part of the documents") {
  Choice choice(ReadChoice::By::Affinity);
  auto chosen = choice.counts({0, 1, 2});
  for (const std::uint16_t node : kAll) CHECK(std::abs(chosen[node] - 3333) < 200);
  for (int document = 0; document < 300; ++document) {
    const std::uint16_t first = choice.chosen({0, 1, 2}, document);
    REQUIRE(choice.chosen({2, 1, 0}, document) == first);
    // Without another node it stays; without its own it goes to the others, each its part.
    for (const std::vector<std::uint16_t>& nodes : {std::vector<std::uint16_t>{0, 1}, {0, 2}, {1, 2}}) {
      const std::uint16_t now = choice.chosen(nodes, document);
      REQUIRE(std::count(nodes.begin(), nodes.end(), now) == 1);
      if (std::count(nodes.begin(), nodes.end(), first) == 1) REQUIRE(now == first);
    }
  }
  CHECK(std::abs(choice.counts({0, 2})[0] - 5000) < 250);
}

TEST_CASE("read choice: with affinity a busy node loses documents, and no document goes elsewhere for it") {
  Choice choice(ReadChoice::By::Affinity);
  std::vector<std::uint16_t> before;
  for (int document = 0; document < 1000; ++document) before.push_back(choice.chosen({0, 1, 2}, document));
  choice.pass(seconds(60));
  int left = 0;
  for (int document = 0; document < 1000; ++document) {
    const std::uint16_t now = choice.chosen({0, 1, 2}, document);
    if (before[static_cast<std::size_t>(document)] != 1) {
      CHECK(now != 1);
    } else {
      left += now == 1 ? 0 : 1;
    }
  }
  CHECK(left > 200);
}

TEST_CASE("read choice: read shares and shares by load are multiplied") {
  const std::vector<ReadShare> shares = {{1, 0, 200}, {1, 2, 800}};
  for (const ReadChoice::By by : {ReadChoice::By::LeastLoaded, ReadChoice::By::Affinity}) {
    Choice choice(by);
    auto chosen = choice.counts({0, 1, 2}, shares);
    CHECK(chosen[1] == 0);
    CHECK(std::abs(chosen[0] - 2000) < 250);
    // None of those that may be read has a share.
    CHECK(choice.chosen({1}, 5, shares) == 1);
    CHECK(std::abs(choice.counts({0, 1}, {{1, 2, 1000}})[0] - 5000) < 250);
  }
}

TEST_CASE("read choice: a share changes slowly, and not by what a node does not say") {
  Choice choice(ReadChoice::By::LeastLoaded);
  choice.pass(seconds(1));
  // Ten steps of 0.01 * (950 - 350) / 1000.
  CHECK(choice.choice.share_by_load(1) > 0.24);
  CHECK(choice.choice.share_by_load(1) < 0.30);
  Choice old(ReadChoice::By::LeastLoaded);
  old.pass(seconds(60), 0);
  // Only node 1 has reported a load, so the others have equal shares.
  CHECK(old.choice.share_by_load(0) == old.choice.share_by_load(2));
  for (int i = 0; i < 100; ++i) old.choice.on_answer(0, 0, MonotonicTime{100'000'000 + i * 1'000'000});
  CHECK(old.choice.share_by_load(0) == old.choice.share_by_load(2));
}

TEST_CASE("read choice: the setting takes effect at once, and a replica that refuses is passed over") {
  DistributorWorld world(3, 3, 1);
  world.give_state(1);
  std::vector<std::string> ids;
  for (int i = 0; i < 40; ++i) ids.push_back("id:test:item:n=1:" + std::to_string(i));
  for (const std::string& id : ids) REQUIRE(world.ask(put_batch(id)).results.at(0).status);
  REQUIRE(world.tunables().set("balancer.reads", static_cast<std::int64_t>(ReadChoice::By::Affinity)));

  std::map<std::string, std::map<std::uint16_t, int>> readers;
  std::optional<std::uint16_t> refuses;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    const auto* apply = std::get_if<rpc::Apply>(&request);
    if (apply == nullptr) return std::nullopt;
    if (node == refuses) return Result<rpc::Reply>(Status(StatusCode::Unavailable, "said the test"));
    for (const rpc::StorageOperation& one : apply->operations) ++readers[one.id][node];
    return std::nullopt;
  };
  const auto get_all = [&](int times) {
    for (int i = 0; i < times; ++i) {
      for (const std::string& id : ids) REQUIRE(world.ask(get_batch(id)).results.at(0).status);
    }
  };
  get_all(5);
  std::map<std::uint16_t, int> documents;
  for (const auto& [id, by_node] : readers) {
    CHECK(by_node.size() == 1);
    CHECK(by_node.begin()->second == 5);
    ++documents[by_node.begin()->first];
  }
  CHECK(documents.size() == 3);

  // The reads of a node that does not answer go to the others.
  refuses = 1;
  readers.clear();
  for (const std::string& id : ids) REQUIRE(world.ask(get_batch(id)).status);
  for (const auto& [id, by_node] : readers) CHECK_FALSE(by_node.contains(1));

  refuses = std::nullopt;
  REQUIRE(world.tunables().set("balancer.reads", static_cast<std::int64_t>(ReadChoice::By::Random)));
  world.run(seconds(10));
  readers.clear();
  get_all(10);
  for (const auto& [id, by_node] : readers) CHECK(by_node.size() > 1);
}

TEST_CASE("read choice: least-loaded goes by what storage nodes answer") {
  DistributorWorld world(2, 2, 1);
  world.give_state(1);
  REQUIRE(world.tunables().set("balancer.reads", static_cast<std::int64_t>(ReadChoice::By::LeastLoaded)));
  const std::string id = "id:test:item:n=1:a";
  REQUIRE(world.ask(put_batch(id)).results.at(0).status);
  world.load_permille = {900, 100};
  std::map<std::uint16_t, int> reads;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (std::holds_alternative<rpc::Apply>(request)) ++reads[node];
    return std::nullopt;
  };
  const auto read = [&](int times) {
    reads.clear();
    for (int i = 0; i < times; ++i) {
      REQUIRE(world.ask(get_batch(id)).results.at(0).status);
      world.run(milliseconds(100));
    }
  };
  read(300);
  read(200);
  CHECK(reads[0] > 0);
  CHECK(reads[0] < 40);
}

}  // namespace fjord::test
