#include "replica_choice.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "fjord/common/hash.h"
#include "fjord/sim/sim_scheduler.h"
#include "index/list_cache.h"

namespace fjord::search {
namespace {

using affinity::StoredTable;
using Member = ReplicaChoice::Member;

const std::string kSchema = R"(document keyword { field text type string { header index: keyword } })";

/// Returns a table for three classes: "red" is in the cache of class 0, "car" in that of class 2.
std::string table_bytes(const std::string& corpus = "keyword.text", unsigned replicas = 3) {
  StoredTable table;
  table.corpus = corpus;
  table.method = "BP";
  table.words = {"car", "red"};
  table.pages = {10, 4};
  table.table = affinity::VotingTable(replicas, 2);
  std::vector<float> car(replicas, 10.0F);
  std::vector<float> red(replicas, 4.0F);
  car.back() = 0.0F;
  red.front() = 0.0F;
  table.table.set(0, car);
  table.table.set(1, red);
  return affinity::encode_table(table);
}

/// Tables in memory, each in two parts.
class Tables final : public VotingTableSource {
 public:
  struct Kept {
    std::map<std::uint64_t, std::string> tables;
    Status error;
    int reads = 0;
  };
  explicit Tables(Kept& kept) : kept_(kept) {}
  void read_part(std::uint64_t number, std::uint32_t part, Done done) override {
    ++kept_.reads;
    if (!kept_.error) return done(kept_.error);
    const auto at = kept_.tables.find(number);
    if (at == kept_.tables.end()) return done(Status(StatusCode::NotFound, "no"));
    done(TablePart{2, part == 0 ? at->second.substr(0, 10) : at->second.substr(10)});
  }

 private:
  Kept& kept_;
};

/// A choice among three nodes, each of which holds everything.
class World {
 public:
  explicit World(const std::string& distribution = DistributionConfig::flat(3, 3).to_string()) {
    executor_ = process_->make_executor("search");
    mailbox_ = visitors::Mailbox(*executor_);
    choice_ = std::make_unique<ReplicaChoice>(scheduler_.clock(), tunables_, metrics_, mailbox_,
                                              std::make_unique<Tables>(kept));
    set("search.affinity_multipliers", 0);
    rpc::ClusterInfo info;
    info.state_version = 3;
    info.state = "version:3 bits:2 distributor:1 storage:4";
    info.distribution = distribution;
    info.distributor_addresses = {"d0:1"};
    info.storage_addresses = {"s0:1", "s1:1", "s2:1", "s3:1"};
    info.schema_version = 1;
    info.schemas = {kSchema};
    REQUIRE(snapshots_.update(info));
  }
  ~World() { mailbox_.close(); }

  void set(const std::string& setting, std::int64_t value) { REQUIRE(tunables_.set(setting, value)); }
  void pass(Duration duration) { scheduler_.run_for(duration); }
  Result<ReplicaChoice::Query> begin(const std::string& text, std::uint64_t fingerprint = 0) {
    const auto variants = *parse_query(text);
    return choice_->begin(variants, fingerprint, *snapshots_.get());
  }
  /// Begins a search, which makes the choice read its settings.
  void look() { static_cast<void>(begin("red")); }
  /// Sets the number of the voting table, and waits until the table is loaded.
  void load(std::uint64_t number) {
    set("search.affinity_table", static_cast<std::int64_t>(number));
    look();
    pass(milliseconds(1));
  }
  std::uint16_t chosen(const std::string& text, const std::vector<ReadShare>& shares = {},
                       std::uint64_t fingerprint = 0) {
    auto query = begin(text, fingerprint);
    REQUIRE(query);
    return choice_->choose(*query, ReplicaChoice::members_of(*query, {2, 0, 1}), shares);
  }
  /// Returns the nodes that a search may be sent to, as fingerprints decide between equal votes.
  std::set<std::uint16_t> chosen_of_all(const std::string& text, const std::vector<ReadShare>& shares = {}) {
    std::set<std::uint16_t> nodes;
    Random random(5);
    for (int i = 0; i < 200; ++i) nodes.insert(chosen(text, shares, random.next()));
    return nodes;
  }
  rpc::SearchNode answer(std::uint16_t node, rpc::SearchSlicesReply reply, Duration took = milliseconds(1)) {
    auto query = begin("red");
    rpc::SearchNode report;
    choice_->on_answer(*query, {node, node}, reply, took, report);
    return report;
  }
  ReplicaChoice& choice() { return *choice_; }
  MonotonicTime now() { return scheduler_.clock().now(); }

  Tables::Kept kept;

 private:
  sim::SimScheduler scheduler_{1};
  std::unique_ptr<sim::SimNodeScheduler> process_ = scheduler_.make_node_scheduler("broker");
  std::unique_ptr<Executor> executor_;
  visitors::Mailbox mailbox_;
  TunableRegistry tunables_;
  MetricRegistry metrics_;
  rpc::SnapshotHolder snapshots_;
  std::unique_ptr<ReplicaChoice> choice_;
};

rpc::SearchSlicesReply reply_of(std::uint32_t utilisation_permille = 0) {
  rpc::SearchSlicesReply reply;
  reply.status = Status::ok();
  reply.utilisation_permille = utilisation_permille;
  return reply;
}

rpc::CacheReport entered(const std::vector<std::string>& words, std::uint64_t incarnation = 1, bool forget = true) {
  rpc::CacheReport report{.incarnation = incarnation, .forget = forget, .up_to = words.size()};
  for (const std::string& word : words) report.changes.push_back(std::uint64_t{ListCache::word_id(word)} * 2 + 1);
  return report;
}

TEST_CASE("a class is a group below the root, a node if all hold everything, else a place among the ideal nodes") {
  const ReplicaClasses groups(*DistributionConfig::parse("redundancy:2 (root (b 3 5) (a 1 4))"));
  CHECK(groups.count() == 2);
  CHECK(groups.of(5, 1) == groups.of(3, 0));
  CHECK(groups.of(1, 0) == groups.of(4, 1));
  CHECK(groups.of(1, 0) != groups.of(3, 0));
  const ReplicaClasses nested(*DistributionConfig::parse("redundancy:2 (root (b (b1 3) (b2 5)) (a 1 4))"));
  CHECK(nested.of(5, 1) == nested.of(3, 0));
  CHECK(nested.of(1, 0) != nested.of(3, 0));
  const ReplicaClasses nodes(DistributionConfig::flat(3, 3));
  CHECK(nodes.of(2, 0) == 2);
  CHECK(nodes.of(0, 2) == 0);
  const ReplicaClasses ranks(DistributionConfig::flat(4, 3));
  CHECK(ranks.count() == 3);
  CHECK(ranks.of(3, 0) == 0);
  CHECK(ranks.of(3, 2) == 2);
}

TEST_CASE("the replica with the fewest expected misses is chosen, and equal ones by fingerprint") {
  World world;
  world.kept.tables[7] = table_bytes();
  CHECK(world.chosen_of_all("red") == std::set<std::uint16_t>{0, 1, 2});
  world.load(7);
  CHECK(world.chosen_of_all("red") == std::set<std::uint16_t>{0});
  CHECK(world.chosen_of_all("car") == std::set<std::uint16_t>{2});
  // A miss costs ten pages for "car" and four for "red", so the node with "car" in its cache reads the fewest pages.
  CHECK(world.chosen_of_all("red car") == std::set<std::uint16_t>{2});
  CHECK(world.chosen_of_all("boots") == std::set<std::uint16_t>{0, 1, 2});
  CHECK(world.begin("red")->how == "voting table 7 (BP, 2 words)");
  world.set("search.affinity_table", 0);
  CHECK(world.chosen_of_all("red") == std::set<std::uint16_t>{0, 1, 2});
}

TEST_CASE("a table is in force as a whole, and the former one until then") {
  World world;
  world.kept.tables[7] = table_bytes();
  world.load(7);
  world.kept.error = Status(StatusCode::Unavailable, "no node is up");
  world.set("search.affinity_table", 8);
  for (int i = 0; i < 3; ++i) {
    CHECK(world.chosen("red") == 0);
    world.pass(milliseconds(1));
  }
  CHECK(world.begin("red")->how.find("voting table 8 is not read yet: no node is up") != std::string::npos);
  const int reads = world.kept.reads;
  world.look();
  CHECK(world.kept.reads == reads);  // The choice reads the table again only after a second.
  world.kept.error = Status::ok();
  world.kept.tables[8] = table_bytes("other.text", 2);
  world.pass(seconds(1));
  world.look();
  world.pass(milliseconds(1));
  CHECK(world.begin("red")->how == "by fingerprint: voting table 8 is for 2 replicas, the cluster has 3 classes");
  CHECK(world.chosen_of_all("red") == std::set<std::uint16_t>{0, 1, 2});
}

TEST_CASE("an unknown table is an error of each search until it is there, and one of another corpus is marked") {
  World world;
  world.set("search.affinity_table", 9);
  world.look();
  world.pass(milliseconds(1));
  const auto refused = world.begin("red");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::NotFound);
  CHECK(refused.error().message() == "search.affinity_table is 9: there is no voting table 9");
  world.kept.tables[9] = table_bytes("song.title");
  world.pass(seconds(2));
  world.look();
  world.pass(milliseconds(1));
  CHECK(world.begin("red")->how.find("trained on another corpus: song.title") != std::string::npos);
  CHECK(world.chosen("red") == 0);
  world.kept.tables[10] = table_bytes().substr(0, 30);
  world.load(10);
  CHECK(world.begin("red").error().code() == StatusCode::Corruption);
}

TEST_CASE("read shares part the searches, and a node without a share is asked only if no other can be") {
  World world;
  CHECK(world.chosen_of_all("red", {{0, 1, 1000}}) == std::set<std::uint16_t>{1});
  CHECK(world.chosen_of_all("red", {{0, 7, 1000}}) == std::set<std::uint16_t>{0, 1, 2});
  int first = 0;
  Random random(3);
  for (int i = 0; i < 1000; ++i) first += world.chosen("red", {{0, 0, 200}, {0, 2, 800}}, random.next()) == 0 ? 1 : 0;
  CHECK(first > 150);
  CHECK(first < 250);
  // With votes, a greater share lets a node take more expected misses.
  world.kept.tables[7] = table_bytes();
  world.load(7);
  CHECK(world.chosen("red", {{0, 1, 500}, {0, 2, 500}}) != 0);
}

TEST_CASE("a shadow knows what is in the caches now, and without it a word has a place by its hash") {
  World world;
  world.kept.tables[7] = table_bytes();
  world.load(7);
  world.set("search.affinity_shadow", 1);
  CHECK(world.chosen("red") == 0);
  rpc::SearchSlicesReply reply = reply_of();
  reply.caches = {entered({"red"})};
  world.answer(1, reply);
  CHECK(world.chosen_of_all("red") == std::set<std::uint16_t>{1});
  CHECK(world.chosen_of_all("boots") == std::set<std::uint16_t>{static_cast<std::uint16_t>(hash64("boots") % 3)});
  rpc::SearchSlices question;
  world.choice().prepare(1, question);
  CHECK(question.with_cache);
  REQUIRE(question.heard.size() == 1);
  CHECK(question.heard[0].up_to == 1);
  // The node has restarted: nothing is in its cache.
  reply.caches = {entered({}, 2)};
  world.answer(1, reply);
  CHECK(world.chosen("red") == 0);
  world.set("search.affinity_shadow", 0);
  world.look();
  rpc::SearchSlices plain;
  world.choice().prepare(1, plain);
  CHECK_FALSE(plain.with_cache);
}

TEST_CASE("a node with more load than the others is chosen less often") {
  World world;
  world.set("search.affinity_multipliers", 1);
  for (int i = 0; i < 100; ++i) {
    for (std::uint16_t node = 0; node < 3; ++node) world.answer(node, reply_of(node == 1 ? 900 : 300));
  }
  const rpc::SearchNode report = world.answer(1, reply_of(900));
  CHECK(report.share_permille < 200);
  CHECK(report.utilisation_permille == 900);
  int busy = 0;
  Random random(3);
  for (int i = 0; i < 1000; ++i) busy += world.chosen("red", {}, random.next()) == 1 ? 1 : 0;
  CHECK(busy < 200);
  CHECK(busy > 20);  // The busy node still gets some searches, or it would not be seen that it is idle again.
}

TEST_CASE("a node that takes much longer than the others is slow until it was left alone for a second") {
  World world;
  world.pass(seconds(1));
  for (int i = 0; i < 50; ++i) {
    for (std::uint16_t node = 0; node < 3; ++node) {
      world.answer(node, reply_of(), node == 2 ? milliseconds(60) : milliseconds(2));
    }
  }
  CHECK(world.choice().is_slow(2, world.now()));
  CHECK_FALSE(world.choice().is_slow(0, world.now()));
  world.pass(milliseconds(1100));
  CHECK_FALSE(world.choice().is_slow(2, world.now()));
}

TEST_CASE("a shadow takes reports in any order and forgets what it cannot know") {
  affinity::CacheChanges changes(4);
  const auto word = [](std::uint32_t n) { return affinity::WordId{n * 2 + 1}; };
  changes.add({word(1), true});
  changes.add({word(2), true});
  CacheShadow shadow;
  const auto heard_before = shadow.heard();
  const rpc::CacheReport first = cache_report(0, 9, changes, heard_before);
  CHECK(first.forget);
  shadow.apply(first);
  CHECK(shadow.stripes_with(word(1)) == 1);
  const auto heard = shadow.heard();
  changes.add({word(1), false});
  const rpc::CacheReport second = cache_report(0, 9, changes, heard);
  CHECK_FALSE(second.forget);
  CHECK(second.changes.size() == 1);
  changes.add({word(1), true});
  const rpc::CacheReport third = cache_report(0, 9, changes, heard);
  shadow.apply(third);
  shadow.apply(second);  // This report is late: word 1 has come back since.
  CHECK(shadow.stripes_with(word(1)) == 1);
  shadow.apply(first);
  CHECK(shadow.heard()[0].up_to == 4);
  // More changes than the node keeps.
  for (std::uint32_t n = 10; n < 16; ++n) changes.add({word(n), true});
  const rpc::CacheReport late = cache_report(0, 9, changes, shadow.heard());
  CHECK(late.forget);
  shadow.apply(late);
  CHECK(shadow.stripes_with(word(2)) == 0);
  CHECK(shadow.stripes_with(word(15)) == 1);
  CHECK(shadow.words() == 4);
  // A report of changes since a state that only another broker knows cannot be used here.
  CacheShadow other;
  other.apply(second);
  CHECK(other.words() == 0);
}

}  // namespace
}  // namespace fjord::search
