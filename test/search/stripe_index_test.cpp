#include "fjord/search/stripe_index.h"

#include <catch2/catch.hpp>

#include "fjord/search/node_indexes.h"
#include "fjord/sim/sim_env.h"
#include "fjord/storage/memory/memory_provider.h"
#include "index/disk_index.h"

namespace fjord::search {
namespace {

constexpr unsigned kBits = 2;
const std::string kSchema = R"(document ad_group {
  field name type string { header index: group }
  field advertiser type int { header }
}
document keyword {
  field text type string { header index: keyword }
  field bid_micros type long { header }
}
document ad { field title type string { header index: ad } }
document note { field text type string { header } })";
const std::string kSchemaWithoutSearch = "document note { field text type string { header } }";

class HandClock final : public Clock {
 public:
  MonotonicTime now() const override { return now_ = now_ + each_look_; }
  WallTime wall_now() const override { return {}; }
  void pass(Duration duration) { now_ = now_ + duration; }
  /// From now on this much time passes at each call of now().
  void pass_at_each_look(Duration duration) { each_look_ = duration; }

 private:
  mutable MonotonicTime now_{1'000'000};
  Duration each_look_{};
};

std::unique_ptr<IndexStore> memory_index() { return memory_indexes()(0, 1).value(); }

/// A stripe of storage node 0 with four buckets, of which it is a member since state 2.
class Stripe {
 public:
  explicit Stripe(const std::string& schema = kSchema, std::unique_ptr<IndexStore> index = memory_index()) {
    publish(5, schema);
    facts_.snapshots = &snapshots_;
    auto engine = make_memory_provider();
    provider_ = std::make_unique<IndexedProvider>(std::move(engine), std::move(index), facts_, clock_, IndexOptions());
    for (std::uint64_t bucket = 0; bucket < 4; ++bucket) {
      REQUIRE(provider_->create_bucket(BucketId(kBits, bucket)));
      set_replicas(BucketId(kBits, bucket), ReplicaSet::make_epoch(2, 1), {0, 1});
    }
    settle();
  }

  void publish(std::uint64_t version, const std::string& schema, const std::string& nodes = "storage:3 .0.v:2") {
    rpc::ClusterInfo info;
    info.state_version = version;
    info.state = "version:" + std::to_string(version) + " bits:2 distributor:1 " + nodes;
    info.distribution = DistributionConfig::flat(3, 2).to_string();
    info.distributor_addresses = {"d0:1"};
    info.storage_addresses = {"s0:1", "s1:1", "s2:1"};
    info.schema_version = version;
    info.schemas = {schema};
    REQUIRE(snapshots_.update(info));
  }
  /// Runs all background work that is due.
  void settle() {
    for (int i = 0; i < 100; ++i) provider_->maintain(clock_.now());
  }
  void set_replicas(BucketId bucket, std::uint64_t epoch, std::vector<std::uint16_t> nodes) {
    REQUIRE(provider_->set_replica_set(bucket, {epoch, std::move(nodes)}));
  }
  void write(const std::string& id, const std::map<std::string, FieldValue>& fields, bool remove = false,
             std::uint64_t timestamp = 0, unsigned bits = kBits) {
    static_cast<void>(try_write(id, fields, remove, timestamp, bits));
  }
  Status try_write(const std::string& id, const std::map<std::string, FieldValue>& fields, bool remove = false,
                   std::uint64_t timestamp = 0, unsigned bits = kBits) {
    const DocumentId parsed = *DocumentId::parse(id);
    EncodedDocument encoded;
    const auto types = snapshots_.get()->types();
    if (!remove) {
      Document document(*types->find(parsed.type()), parsed);
      for (const auto& [name, value] : fields) REQUIRE(document.set(name, value));
      encoded = encode(document);
    }
    const spi::Write write{.bucket = parsed.bucket(bits),
                           .gid = parsed.gid(),
                           .timestamp = Timestamp{timestamp == 0 ? ++time_ : timestamp},
                           .remove = remove,
                           .id = id,
                           .header = encoded.header,
                           .body = encoded.body};
    spi::WriteResult result;
    provider_->apply(std::span(&write, 1), std::span(&result, 1), spi::Durability::Process);
    return result.status;
  }
  /// Puts a group with one ad and one keyword; `group` is both the group's number and its location.
  void put_group(std::uint64_t group, const std::string& text = "red car", unsigned bits = kBits) {
    const std::string at = ":n=" + std::to_string(group) + ":1";
    write("id:a:ad_group" + at, {{"name", std::string("g")}, {"advertiser", static_cast<std::int32_t>(group)}}, false,
          0, bits);
    write("id:a:ad" + at, {{"title", std::string("Car")}}, false, 0, bits);
    write("id:a:keyword" + at, {{"text", text}, {"bid_micros", std::int64_t{100'000}}}, false, 0, bits);
  }
  StripeIndex::Answer search(const std::string& query, bool session = true, std::string slices = "\x0f",
                             MonotonicTime deadline = {INT64_MAX}) {
    const SliceSet asked(kBits, slices);
    const auto variants = *parse_query(query);
    const SearchContext context;
    auto answer = provider_->index().search({.slices = asked,
                                             .variants = variants,
                                             .context = context,
                                             .hits_max = 10,
                                             .reserve_micros = 1,
                                             .session = session,
                                             .deadline = deadline},
                                            *snapshots_.get());
    REQUIRE(answer);
    return std::move(*answer);
  }
  std::vector<std::uint64_t> advertisers(const std::string& query, bool session = true) {
    std::vector<std::uint64_t> found;
    for (const Hit& hit : search(query, session).hits) found.push_back(hit.advertiser);
    std::sort(found.begin(), found.end());
    return found;
  }
  std::size_t searched() { return search("red").searched.count(); }

  IndexedProvider& provider() { return *provider_; }
  HandClock& clock() { return clock_; }
  const rpc::ClusterSnapshot& state() { return *snapshots_.get(); }

 private:
  HandClock clock_;
  rpc::SnapshotHolder snapshots_;
  NodeFacts facts_;
  std::unique_ptr<IndexedProvider> provider_;
  std::uint64_t time_ = 1000;
};

using Numbers = std::vector<std::uint64_t>;

TEST_CASE("a search of a session shows every write, others those of 50 ms before") {
  Stripe stripe;
  stripe.put_group(4);
  CHECK(stripe.advertisers("a red car", false).empty());
  CHECK(stripe.advertisers("a red car", true) == Numbers{4});
  stripe.put_group(5);
  stripe.clock().pass(milliseconds(49));
  CHECK(stripe.advertisers("a red car", false) == Numbers{4});
  stripe.clock().pass(milliseconds(1));
  CHECK(stripe.advertisers("a red car", false) == Numbers{4, 5});
}

TEST_CASE("a delta of a mebibyte is shown at once") {
  Stripe stripe;
  stripe.put_group(4);
  stripe.write("id:a:ad:n=4:2", {{"title", std::string(1 << 20, 'x')}});
  CHECK(stripe.advertisers("red car", false) == Numbers{4});
}

TEST_CASE("what is overwritten or removed is found no longer, and a write that changed nothing does not show") {
  Stripe stripe;
  stripe.put_group(4);
  stripe.write("id:a:keyword:n=4:1", {{"text", std::string("blue")}, {"bid_micros", std::int64_t{100'000}}});
  CHECK(stripe.advertisers("red car").empty());
  CHECK(stripe.advertisers("blue") == Numbers{4});
  stripe.write("id:a:keyword:n=4:1", {{"text", std::string("red")}, {"bid_micros", std::int64_t{1}}}, false, 7);
  CHECK(stripe.advertisers("red").empty());
  CHECK(stripe.advertisers("blue") == Numbers{4});
  stripe.write("id:a:keyword:n=4:1", {}, true);
  CHECK(stripe.advertisers("blue").empty());
}

TEST_CASE("only the slices asked for are searched") {
  Stripe stripe;
  for (std::uint64_t group = 4; group < 8; ++group) stripe.put_group(group);
  const StripeIndex::Answer answer = stripe.search("red car", true, "\x06");
  CHECK(answer.searched.bytes()[0] == 6);
  REQUIRE(answer.hits.size() == 2);
  CHECK(answer.hits[0].advertiser + answer.hits[1].advertiser == 5 + 6);
}

TEST_CASE("a search counts keywords for the slices in which they lie, also in those that it leaves out") {
  Stripe stripe;
  for (const std::uint64_t group : {1, 5, 2, 3}) stripe.put_group(group);
  stripe.put_group(7, "red bike");
  const StripeIndex::Answer answer = stripe.search("red car", true, "\x06");
  std::map<std::uint64_t, std::uint64_t> candidates;
  for (const spi::SearchLoad& load : answer.loads) candidates[load.bucket.bits()] += load.candidates;
  CHECK(candidates == std::map<std::uint64_t, std::uint64_t>{{1, 2}, {2, 1}, {3, 0}});
  CHECK(answer.scanned == 5);
  CHECK(stripe.search("blue").loads.empty());
}

TEST_CASE("a replica that is filled, was left, or missed the sets of a while is not searched") {
  Stripe stripe;
  CHECK(stripe.searched() == 4);
  stripe.set_replicas(BucketId(kBits, 0), 0, {});
  CHECK(stripe.searched() == 3);
  stripe.set_replicas(BucketId(kBits, 1), ReplicaSet::make_epoch(5, 1), {1, 2});
  CHECK(stripe.searched() == 2);
  // The node came back in state 6 and has received no replica set since.
  stripe.publish(6, kSchema, "storage:3 .0.v:6");
  CHECK(stripe.searched() == 0);
  stripe.set_replicas(BucketId(kBits, 2), ReplicaSet::make_epoch(6, 1), {0, 1});
  CHECK(stripe.searched() == 1);
}

TEST_CASE("a search whose time limit is over gives up, has searched nothing, and its cost counts") {
  Stripe stripe;
  for (std::uint64_t group = 0; group < 100; ++group) stripe.put_group(group);
  stripe.clock().pass_at_each_look(milliseconds(1));
  const StripeIndex::Answer whole = stripe.search("a red car", true, "\x0f", stripe.clock().now() + milliseconds(100));
  CHECK(whole.searched.count() == 4);
  CHECK(whole.candidates == 100);
  const StripeIndex::Answer late = stripe.search("a red car", true, "\x0f", stripe.clock().now() + milliseconds(6));
  CHECK(late.searched.count() == 0);
  CHECK(late.hits.empty());
  CHECK(late.candidates == 0);
  CHECK(late.refused.code() == StatusCode::Timeout);
  CHECK_THAT(late.refused.message(), Catch::Contains(" of 100 keywords"));
  std::uint64_t counted = 0;
  for (const spi::SearchLoad& load : late.loads) counted += load.candidates;
  CHECK(counted == 100);
}

TEST_CASE("a slice is searched whole or not at all, however its bucket is split") {
  Stripe stripe;
  stripe.put_group(4);
  stripe.put_group(8);
  REQUIRE(stripe.provider().split_bucket(BucketId(kBits, 0)));
  CHECK(stripe.searched() == 4);
  CHECK(stripe.advertisers("red car") == Numbers{4, 8});
  stripe.put_group(12, "red car", kBits + 1);
  CHECK(stripe.advertisers("red car") == Numbers{4, 8, 12});
  REQUIRE(stripe.provider().delete_bucket(BucketId(kBits + 1, 4)));
  CHECK(stripe.searched() == 3);
  CHECK(stripe.advertisers("red car").empty());
  REQUIRE(stripe.provider().join_buckets(BucketId(kBits, 0)));
  CHECK(stripe.searched() == 4);
  CHECK(stripe.advertisers("red car") == Numbers{8});
}

TEST_CASE("documents that a merge brought are shown as soon as the node is a member") {
  Stripe stripe;
  stripe.set_replicas(BucketId(kBits, 0), 0, {});
  stripe.put_group(4);
  stripe.set_replicas(BucketId(kBits, 0), ReplicaSet::make_epoch(5, 2), {0, 1});
  CHECK(stripe.advertisers("red car", false) == Numbers{4});
}

TEST_CASE("when types begin to take part in searches, what is stored is indexed before it is searched") {
  Stripe stripe(kSchemaWithoutSearch);
  CHECK(stripe.searched() == 4);
  const std::string later = kSchemaWithoutSearch;
  stripe.publish(6,
                 "document keyword { field text type string { header } field bid_micros type long { header } }\n"
                 "document ad_group { field name type string { header } field advertiser type int { header } }\n"
                 "document ad { field title type string { header } }");
  stripe.put_group(4);
  CHECK(stripe.advertisers("red car").empty());
  stripe.publish(7, kSchema);
  CHECK(stripe.search("red").searched.count() == 0);
  CHECK_FALSE(stripe.search("red").refused.is_ok());
  stripe.settle();
  CHECK(stripe.searched() == 4);
  CHECK(stripe.advertisers("red car") == Numbers{4});
}

TEST_CASE("an index whose file is damaged fails searches until all is indexed again, and then finds everything") {
  sim::SimEnv env;
  DiskIndexOptions options{.directory = "/index"};
  options.recent_bytes_max = 1;  // So small that each document that a search may see is in a file.
  auto index = DiskIndex::open(env, options);
  REQUIRE(index.has_value());
  Stripe stripe(kSchema, std::move(*index));
  stripe.put_group(4);
  stripe.clock().pass(milliseconds(50));
  stripe.settle();
  const auto names = env.list_directory("/index");
  REQUIRE(names.has_value());
  for (const std::string& name : *names) {
    if (name.ends_with(".segment")) REQUIRE(env.flip_bit("/index/" + name, 20, 1));
  }
  const SliceSet all(kBits, "\x0f");
  const auto variants = *parse_query("red car");
  const SearchContext context;
  const auto failed =
      stripe.provider().index().search({.slices = all, .variants = variants, .context = context}, stripe.state());
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code() == StatusCode::Corruption);
  stripe.provider().maintain(stripe.clock().now());
  CHECK(stripe.searched() == 0);
  stripe.settle();
  CHECK(stripe.advertisers("red car") == Numbers{4});
}

TEST_CASE("a write that the engine refused is not found") {
  Stripe stripe;
  stripe.put_group(4, "red car", kBits + 1);  // There is no such bucket.
  CHECK_FALSE(stripe.try_write("id:a:keyword:n=4:2", {{"text", std::string("red car")}}, false, 0, kBits + 1));
  CHECK(stripe.advertisers("red car").empty());
  CHECK(stripe.search("red car").candidates == 0);
}

TEST_CASE("an index whose disk takes no file is bounded: writes are refused until it does") {
  sim::SimEnv env;
  auto index = DiskIndex::open(env, {.directory = "/index", .recent_bytes_max = 2000, .memory_bytes_max = 20'000});
  REQUIRE(index.has_value());
  const IndexStore& store = **index;
  Stripe stripe(kSchema, std::move(*index));
  env.inject({.path_prefix = "/index",
              .operations = sim::FileOperations::all(),
              .code = StatusCode::NoSpace,
              .count = 1'000'000'000});
  const auto put = [&](int number) {
    stripe.clock().pass(milliseconds(50));
    stripe.provider().maintain(stripe.clock().now());
    return stripe.try_write("id:a:ad:n=4:" + std::to_string(number), {{"title", std::string(500, 'x')}});
  };
  int taken = 0;
  Status last;
  while (taken < 1000 && (last = put(taken))) ++taken;
  CHECK(last.code() == StatusCode::Busy);
  CHECK(taken > 25);
  CHECK(taken < 45);
  CHECK(stripe.provider().index().is_full());
  // Nothing of a refused write is stored.
  CHECK_FALSE(stripe.provider().get(BucketId(kBits, 0),
                                    DocumentId::parse("id:a:ad:n=4:" + std::to_string(taken))->gid(), spi::Parts::All));
  env.clear_faults();
  stripe.settle();
  CHECK(store.backlog() == IndexStore::Backlog::Small);
  CHECK(put(taken));
}

TEST_CASE("what is indexed again becomes files meanwhile, so memory is bounded") {
  sim::SimEnv env;
  auto opened = DiskIndex::open(env, {.directory = "/index", .recent_bytes_max = 4000, .memory_bytes_max = 20'000});
  REQUIRE(opened.has_value());
  const DiskIndex& index = **opened;
  Stripe stripe(kSchemaWithoutSearch, std::move(*opened));
  stripe.publish(6,
                 "document keyword { field text type string { header } field bid_micros type long { header } }\n"
                 "document ad_group { field name type string { header } field advertiser type int { header } }\n"
                 "document ad { field title type string { header } }");
  for (std::uint64_t group = 0; group < 400; ++group) stripe.put_group(group);
  stripe.publish(7, kSchema);
  bool was_full = false;
  std::uint64_t files = 0;
  stripe.provider().maintain(stripe.clock().now());
  for (int step = 0; step < 1000 && stripe.provider().index().buckets_to_index() > 0; ++step) {
    stripe.provider().maintain(stripe.clock().now());
    was_full = was_full || stripe.provider().index().is_full();
    if (stripe.provider().index().buckets_to_index() > 0) files = index.counts().segments_written;
  }
  CHECK(files >= 3);
  stripe.settle();
  CHECK(index.backlog() == IndexStore::Backlog::Small);
  CHECK(stripe.advertisers("red car").size() == 10);
  CHECK_FALSE(was_full);
}

TEST_CASE("a form of the query without diacritics finds keywords without them") {
  Stripe stripe;
  stripe.put_group(4, "kun");
  CHECK(stripe.advertisers("Kůň") == Numbers{4});
  const StripeIndex::Answer answer = stripe.search("Kůň kun");
  CHECK(answer.candidates == 1);
}

}  // namespace
}  // namespace fjord::search
