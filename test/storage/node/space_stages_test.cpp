#include "storage/node/node_world.h"

namespace fjord::test {

namespace {

constexpr std::uint64_t kCapacity = 10'000'000;

/// Storage nodes on a disk whose fill the test decides.
struct SpaceWorld {
  SpaceWorld() : nodes(2, options()) {
    nodes.env().set_capacity(kCapacity);
    ballast = nodes.env().create_random_access("/ballast").value();
    fill(10);
    nodes.give_state(1);
    REQUIRE(nodes.install(0, 1, bucket, {.epoch = 1, .nodes = {0}}).is_ok());
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
  Status remove(int number) { return nodes.apply_one(0, 1, remove_of(id_in(1, number), ++clock, 1)).status; }
  Status get(int number) { return nodes.apply_one(0, 1, get_of(id_in(1, number), 1)).status; }
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

  const BucketId bucket = bucket_of(DocumentId::parse(id_in(1, 0))->gid(), 3);
  NodeWorld nodes;
  std::unique_ptr<RandomAccessFile> ballast;
  std::uint64_t clock = 100;
};

}  // namespace

TEST_CASE("space: a full node refuses puts and says why; reads and removes work, and it ends by itself (I14)") {
  SpaceWorld world;
  // Without the reserve, which is more than this disk has.
  REQUIRE(world.put(1).code() == StatusCode::NoSpace);
  CHECK_THAT(world.put(1).message(), Catch::Contains("storage.0") && Catch::Contains("9000000 bytes free") &&
                                         Catch::Contains("space_reserve_bytes"));
  CHECK(world.merge().code() == StatusCode::NoSpace);
  world.nodes.set_tunable("storage.space_reserve_bytes", 0);
  world.fill(10);
  REQUIRE(world.put(1).is_ok());
  REQUIRE(world.put(2).is_ok());
  world.fill(96);
  CHECK(world.put(3).code() == StatusCode::NoSpace);
  CHECK_THAT(world.put(3).message(),
             Catch::Contains("96.0 % used") && Catch::Contains("storage_options.space_refuse_external_percent is 95"));
  CHECK(world.merge().is_ok());
  CHECK(world.get(1).is_ok());
  CHECK(world.remove(1).is_ok());
  world.fill(98);
  CHECK(world.put(3).code() == StatusCode::NoSpace);
  CHECK(world.merge().code() == StatusCode::NoSpace);
  CHECK(world.get(2).is_ok());
  CHECK(world.remove(2).is_ok());
  CHECK(world.remove(77).is_ok());
  world.fill(94);  // not low enough
  CHECK(world.put(3).code() == StatusCode::NoSpace);
  world.fill(80);
  CHECK(world.put(3).is_ok());
  CHECK(world.merge().is_ok());
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
  world.fill(91);  // 400'000 bytes to the limit
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

}  // namespace fjord::test
