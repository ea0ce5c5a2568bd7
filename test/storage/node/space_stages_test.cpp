#include "refused_messages.h"
#include "storage/node/node_world.h"
#include "visitors/forwarding_provider.h"

namespace fjord::test {

namespace {

constexpr std::uint64_t kCapacity = 10'000'000;

/// Keeps the last call of set_short_of_space().
class ListeningProvider final : public ForwardingProvider {
 public:
  explicit ListeningProvider(bool& is_short) : ForwardingProvider(make_memory_provider()), is_short_(is_short) {}
  void set_short_of_space(bool is_short) override { is_short_ = is_short; }

 private:
  bool& is_short_;
};

/// Storage nodes on a disk; the test sets how full it is.
struct SpaceWorld {
  explicit SpaceWorld(NodeWorld::MakeProvider providers = {}) : nodes(2, options(), std::move(providers)) {
    nodes.env().set_capacity(kCapacity);
    ballast = nodes.env().create_random_access("/ballast").value();
    fill(10);
    nodes.give_state(1);
    REQUIRE(nodes.install(0, 1, bucket, {.epoch = 1, .nodes = {0}}).is_ok());
    REQUIRE(nodes.install(1, 1, bucket, {}).is_ok());  // Node 1 is catching up.
  }
  static storage::StorageNodeOptions options() {
    storage::StorageNodeOptions options;
    options.directory = "/";
    return options;
  }
  void fill(std::uint64_t percent) {
    REQUIRE(ballast->allocate(kCapacity / 100 * percent).is_ok());
    nodes.world.scheduler.run_for(milliseconds(1100));
  }
  Status put(int number) { return nodes.apply_one(0, 1, put_of(id_in(1, number), ++clock, "body", 1)).status; }
  /// Sends message number `message`, which puts document `number` with `timestamp`.
  Status send(std::uint64_t message, int number, std::uint64_t timestamp, int also_gets = 0) {
    rpc::Apply request;
    request.state_version = 1;
    request.distributor = nodes.owner(bucket);
    request.number = message;
    request.operations.push_back(put_of(id_in(1, number), timestamp, "body", 1));
    request.operations.push_back(get_of(id_in(1, also_gets), 1));
    const rpc::ApplyReply reply = nodes.ask(0, std::move(request));
    REQUIRE(reply.results.size() == 2);
    CHECK((reply.results[1].status || reply.results[1].status.code() == StatusCode::NotFound));
    existed = reply.results[0].existed;
    return reply.results[0].status;
  }
  Status remove(int number) { return nodes.apply_one(0, 1, remove_of(id_in(1, number), ++clock, 1)).status; }
  Status get(int number) { return nodes.apply_one(0, 1, get_of(id_in(1, number), 1)).status; }
  /// Sends a put that another replica has already taken.
  Status complete(std::uint16_t node, int number) {
    rpc::StorageOperation operation = put_of(id_in(1, number), ++clock, "body", 1);
    operation.is_elsewhere = true;
    return nodes.apply_one(node, 1, std::move(operation)).status;
  }
  Status merge() {
    rpc::MergeBucket request;
    request.state_version = 1;
    request.distributor = nodes.owner(bucket);
    request.bucket = bucket;
    request.sources = {1};
    return nodes.ask(0, std::move(request)).status;
  }
  int puts_taken(int of) {
    int taken = 0;
    for (int i = 0; i < of; ++i) {
      const Status status = put(1000 + i);
      if (status) ++taken;
      if (!status) CHECK(status.code() == StatusCode::Busy);
    }
    return taken;
  }

  bool existed = false;  ///< What the last answer to send() says.
  const BucketId bucket = bucket_of(DocumentId::parse(id_in(1, 0))->gid(), 3);
  NodeWorld nodes;
  std::unique_ptr<RandomAccessFile> ballast;
  std::uint64_t clock = 100;
};

}  // namespace

TEST_CASE("space: a full node refuses puts and says why; reads and removes work, and it ends by itself (I14)") {
  SpaceWorld world;
  // The default reserve is larger than this disk.
  REQUIRE(world.put(1).code() == StatusCode::NoSpace);
  CHECK_THAT(world.put(1).message(), Catch::Contains("storage.0") && Catch::Contains("9000000 bytes free") &&
                                         Catch::Contains("space_reserve_bytes"));
  CHECK(world.merge().is_ok());  // The merge succeeds, because the replica lacks nothing.
  world.nodes.set_tunable("storage.space_reserve_bytes", 0);
  world.fill(10);
  REQUIRE(world.complete(1, 5).is_ok());
  REQUIRE(world.put(1).is_ok());
  REQUIRE(world.put(2).is_ok());
  world.fill(96);
  CHECK(world.put(3).code() == StatusCode::NoSpace);
  CHECK_THAT(world.put(3).message(),
             Catch::Contains("96.0 % used") && Catch::Contains("storage.space_refuse_external_percent is 95"));
  CHECK(world.merge().is_ok());
  CHECK(world.get(5).is_ok());
  CHECK(world.complete(0, 6).is_ok());  // Another member has this put, so the next merge would bring it anyway.
  CHECK(world.complete(1, 7).is_ok());
  CHECK(world.get(1).is_ok());
  CHECK(world.remove(1).is_ok());
  world.fill(99);
  CHECK(world.put(3).code() == StatusCode::NoSpace);
  CHECK(world.complete(0, 8).code() == StatusCode::NoSpace);
  CHECK(world.merge().code() == StatusCode::NoSpace);
  CHECK(world.get(2).is_ok());
  CHECK(world.remove(2).is_ok());
  CHECK(world.remove(77).is_ok());
  world.fill(94);  // 94 % is not low enough.
  CHECK(world.put(3).code() == StatusCode::NoSpace);
  world.fill(80);
  CHECK(world.put(3).is_ok());
  CHECK(world.merge().is_ok());
  CHECK(world.get(7).is_ok());
}

TEST_CASE("space: past all limits a node takes what other members have, within half of what is kept free") {
  SpaceWorld world;
  world.nodes.set_tunable("storage.space_reserve_bytes", 0);
  world.fill(10);
  REQUIRE(world.complete(1, 5).is_ok());
  world.fill(98);  // All puts are refused, but what other members have may take half of the free space.
  CHECK(world.put(3).code() == StatusCode::NoSpace);
  CHECK(world.merge().is_ok());
  CHECK(world.get(5).is_ok());
  constexpr int kMost = 20'000;
  int taken = 0;
  Status last = Status::ok();
  while (taken < kMost && last) {
    last = world.complete(0, 100 + taken);
    taken += last ? 1 : 0;
  }
  CHECK(taken > 100);
  CHECK(last.code() == StatusCode::NoSpace);
  CHECK_THAT(last.message(), Catch::Contains("takes no more from other replicas"));
  CHECK(world.remove(5).is_ok());
}

TEST_CASE("space: a node tells distributors how full it is") {
  SpaceWorld world;
  world.nodes.set_tunable("storage.space_reserve_bytes", 0);
  const auto told = [&](std::uint64_t percent) {
    world.fill(percent);
    rpc::GetBucketInfo question;
    question.state_version = 1;
    question.distributor = world.nodes.owner(world.bucket);
    return world.nodes.ask(0, std::move(question));
  };
  // Both nodes measure the same disk. The messages count stages from 1, because there 0 means unknown.
  const auto metric = [&] { return world.nodes.metric("fjord_storage_space_stage") / 2; };
  CHECK(told(10).space_stage == 1);
  CHECK(metric() == 0);
  const rpc::GetBucketInfoReply warned = told(86);
  CHECK(metric() == 1);
  CHECK(warned.space_stage == 2);
  CHECK_THAT(warned.space_reason, Catch::Contains("storage.space_warn_percent is 85"));
  CHECK(told(93).space_stage == 3);
  CHECK(told(96).space_stage == 4);
  CHECK(told(98).space_stage == 5);
  CHECK(metric() == 4);
}

TEST_CASE("space: a node that is nearly full answers a growing share of puts BUSY") {
  SpaceWorld world;
  world.nodes.set_tunable("storage.space_reserve_bytes", 0);
  world.fill(10);
  world.fill(90);
  CHECK(world.puts_taken(100) == 100);
  world.fill(92);
  const int at_92 = world.puts_taken(100);
  world.fill(93);
  const int at_93 = world.puts_taken(100);
  world.fill(94);
  const int at_94 = world.puts_taken(100);
  CHECK(at_92 == 95);
  CHECK(at_93 < at_92);
  CHECK(at_94 < at_93);
  CHECK(at_94 > 0);
  CHECK(world.remove(1000).is_ok());
  world.fill(50);
  CHECK(world.puts_taken(100) == 100);
}

TEST_CASE("space: between two measurements puts take no more than a part of what is left") {
  SpaceWorld world;
  world.nodes.set_tunable("storage.space_reserve_bytes", 0);
  world.fill(10);
  world.fill(91);  // 400,000 bytes are left to the limit.
  const std::string body(5000, 'x');
  const auto taken = [&] {
    std::size_t bytes = 0;
    for (int i = 0; i < 100; ++i) {
      const Status status = world.nodes.apply_one(0, 1, put_of(id_in(1, i), ++world.clock, body, 1)).status;
      if (status) bytes += body.size();
      if (!status) CHECK(status.code() == StatusCode::Busy);
    }
    return bytes;
  };
  const std::size_t first = taken();
  CHECK(first > 20'000);
  CHECK(first <= 100'000);
  CHECK(taken() == 0);
  CHECK(world.remove(1).is_ok());
  world.fill(91);
  CHECK(taken() == first);
}

TEST_CASE("space: the engine hears that its disk is nearly full, and that it is no more") {
  bool is_short = false;
  SpaceWorld world([&](std::uint16_t, unsigned, unsigned) -> Result<std::unique_ptr<spi::PersistenceProvider>> {
    return std::unique_ptr<spi::PersistenceProvider>(std::make_unique<ListeningProvider>(is_short));
  });
  CHECK(is_short);  // The reserve is larger than this disk.
  world.nodes.set_tunable("storage.space_reserve_bytes", 0);
  world.fill(10);
  CHECK_FALSE(is_short);
  world.fill(90);
  CHECK_FALSE(is_short);
  world.fill(93);
  CHECK(is_short);
  world.fill(99);
  CHECK(is_short);
  world.fill(50);
  CHECK_FALSE(is_short);
}

TEST_CASE("space: a copy of a message that was refused brings about nothing when there is space again") {
  SpaceWorld world;
  world.nodes.set_tunable("storage.space_reserve_bytes", 0);
  world.fill(10);
  REQUIRE(world.send(1, 1, 101).is_ok());
  world.fill(98);
  REQUIRE(world.send(2, 2, 102).code() == StatusCode::NoSpace);
  world.fill(50);
  // Not NoSpace: the sender, which may have missed the first answer, has to ask again.
  CHECK(world.send(2, 2, 102).code() == StatusCode::NotReady);
  CHECK(world.get(2).code() == StatusCode::NotFound);
  // The write of message 2 is accepted in message 3, because message 3 was never refused.
  CHECK(world.send(3, 2, 102).is_ok());
  CHECK(world.get(2).is_ok());
}

TEST_CASE("space: a copy of a message that came too early is refused, however late it comes") {
  SpaceWorld world;
  world.nodes.set_tunable("storage.space_reserve_bytes", 0);
  world.fill(10);
  // Nothing has made the bucket of this write yet.
  const std::string id = id_in(2, 1);
  const BucketId other = bucket_of(DocumentId::parse(id)->gid(), 3);
  REQUIRE(other != world.bucket);
  const auto send = [&](std::uint64_t message) {
    rpc::Apply request;
    request.state_version = 1;
    request.distributor = world.nodes.owner(other);
    request.number = message;
    request.operations.push_back(put_of(id, 101, "body", 1));
    return world.nodes.ask(0, std::move(request)).results.at(0).status;
  };
  REQUIRE(send(1).code() == StatusCode::NotReady);
  REQUIRE(world.nodes.install(0, 1, other, {.epoch = 1, .nodes = {0}}).is_ok());
  // The sender may since have received NoSpace for another message; this one must then stay refused, too.
  CHECK(send(1).code() == StatusCode::NotReady);
  CHECK(send(2).is_ok());
}

TEST_CASE("space: a write that is here is not called refused, though there would be no space for it now") {
  SpaceWorld world;
  world.nodes.set_tunable("storage.space_reserve_bytes", 0);
  world.fill(10);
  REQUIRE(world.send(1, 1, 101).is_ok());
  REQUIRE(world.send(2, 1, 105).is_ok());
  world.fill(98);
  CHECK(world.send(2, 1, 105).is_ok());
  CHECK_FALSE(world.existed);  // The first copy of the message may have put a new document.
  CHECK(world.send(1, 1, 101).is_ok());
  CHECK(world.send(3, 1, 106).code() == StatusCode::NoSpace);
}

TEST_CASE("refused messages: what is forgotten counts as refused, until there is a newer cluster state") {
  storage::RefusedMessages refused(3);
  CHECK_FALSE(refused.contains(7, 1, 10));
  for (const std::uint64_t number : {20, 10, 30, 40}) refused.note(7, 1, number);
  for (const std::uint64_t number : {9, 10, 20, 30, 40}) CHECK(refused.contains(7, 1, number));
  for (const std::uint64_t number : {0, 11, 25, 41}) CHECK_FALSE(refused.contains(7, 1, number));
  CHECK_FALSE(refused.contains(7, 2, 10));
  // A distributor with a newer state does not affect the others.
  refused.note(8, 2, 60);
  CHECK(refused.contains(8, 2, 60));
  CHECK_FALSE(refused.contains(8, 1, 10));
  CHECK(refused.contains(7, 1, 10));
  refused.forget_before(7);
  CHECK(refused.contains(7, 1, 10));
  refused.forget_before(8);
  CHECK_FALSE(refused.contains(7, 1, 10));
  CHECK(refused.contains(8, 2, 60));
}

}  // namespace fjord::test
