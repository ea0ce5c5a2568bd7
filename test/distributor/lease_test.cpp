// Leases: the data that a distributor trusts while the fleet controller is silent. docs/design/0005, "Leases instead of
// trust".

#include "distributor_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:t:item::1";
const BucketId kBucket = bucket_of_id(kId);
constexpr Duration kLease = seconds(2);

/// Sends a first poll; the following polls echo its answer.
class LeaseWorld : public DistributorWorld {
 public:
  LeaseWorld() : DistributorWorld(3) {
    give_state(1, " .0.v:1 .1.v:1 .2.v:1");
    renew();
    renew();
    REQUIRE(ask(put_batch(kId)).results.at(0).status);
  }
  void renew() {
    const rpc::PollReply reply = poll([&](rpc::Poll& request) {
      request.info.lease_us = kLease.count();
      request.renews_lease = true;
      request.heard_us = heard_us_;
      request.heard_incarnation = incarnation_;
    });
    heard_us_ = reply.clock_us;
    incarnation_ = reply.incarnation;
  }
  /// Returns the number of storage nodes that one get asks.
  std::size_t asked_by_a_get() {
    const std::size_t before = transport.sent_of<rpc::Apply>().size();
    REQUIRE(ask(get_batch(kId)).results.at(0).status);
    return transport.sent_of<rpc::Apply>().size() - before;
  }
  /// Makes the member answer that it has a newer state.
  void move_on(std::uint16_t member) {
    hook = [member](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
      if (node != member) return std::nullopt;
      return Result<rpc::Reply>(rpc::error_reply(request, Status(StatusCode::WrongDistribution, "a newer state")));
    };
  }

 private:
  std::int64_t heard_us_ = 0;
  std::uint64_t incarnation_ = 0;
};

}  // namespace

TEST_CASE("lease: a get asks one member while the controller is heard, and all when it is not") {
  LeaseWorld world;
  CHECK(world.asked_by_a_get() == 1);
  world.run(kLease * 2);
  CHECK(world.asked_by_a_get() == 2);
  world.renew();
  CHECK(world.asked_by_a_get() == 2);  // The poll echoes an answer older than the lease, so a get asks two nodes.
  world.renew();
  CHECK(world.asked_by_a_get() == 1);
}

TEST_CASE("lease: without one, nothing is read once a member has moved on to a newer state") {
  LeaseWorld world;
  world.run(kLease * 2);
  world.move_on(world.ideal(kBucket)[1]);
  const rpc::OperationResult got = world.ask(get_batch(kId)).results.at(0);
  CHECK(got.status.code() == StatusCode::Unavailable);
  world.hook = nullptr;
  CHECK(world.ask(get_batch(kId)).results.at(0).status);
}

TEST_CASE("lease: without one, a condition is not compared with what a single member says") {
  LeaseWorld world;
  world.run(kLease * 2);
  world.move_on(world.ideal(kBucket)[1]);
  rpc::Execute update = update_batch(kId, R"({"count": {"assign": 1}})");
  update.operations[0].condition = "item.count == 77";
  CHECK(world.ask(std::move(update)).results.at(0).status.code() != StatusCode::TestAndSetFailed);
}

TEST_CASE("lease: without one, visitors are sent to a bucket only if all its members confirm the state") {
  LeaseWorld world;
  rpc::GetBucketNodes request;
  request.state_version = 1;
  request.buckets = {kBucket};
  REQUIRE(world.ask(request).buckets.at(0).status);
  world.run(kLease * 2);
  REQUIRE(world.ask(request).buckets.at(0).status);
  world.move_on(world.ideal(kBucket)[1]);
  CHECK(world.ask(request).status.code() == StatusCode::NotReady);
}

TEST_CASE("lease: without one, a document of an unknown bucket is absent only if the bucket can be made") {
  LeaseWorld world;
  std::string absent;
  for (int i = 2; absent.empty(); ++i) {
    if (bucket_of_id("id:t:item::" + std::to_string(i)) != kBucket) absent = "id:t:item::" + std::to_string(i);
  }
  world.run(kLease * 2);
  world.move_on(world.ideal(bucket_of_id(absent))[1]);
  CHECK(world.ask(get_batch(absent)).results.at(0).status.code() == StatusCode::Unavailable);
  world.hook = nullptr;
  CHECK(world.ask(get_batch(absent)).results.at(0).status.code() == StatusCode::NotFound);
}

TEST_CASE("lease: a bucket that goes to another distributor in the pending state is read with all its members") {
  LeaseWorld world;
  const rpc::PollReply reply = world.poll([](rpc::Poll& request) {
    request.info.pending_state = "version:2 bits:1 distributor:2 .0.s:d storage:3 .0.v:1 .1.v:1 .2.v:1";
    request.info.pending_distribution = DistributionConfig::flat(3, 2).to_string();
  });
  REQUIRE(reply.pending_version == 2);
  CHECK(world.asked_by_a_get() == 2);
}

TEST_CASE("lease: an answer to another process renews nothing") {
  LeaseWorld world;
  world.run(kLease * 2);
  for (int i = 0; i < 3; ++i) {
    const rpc::PollReply reply = world.poll([&](rpc::Poll& request) {
      request.renews_lease = true;
      request.heard_us = world.clock.now().us;
      request.heard_incarnation = 77;
    });
    REQUIRE(reply.status);
  }
  CHECK(world.asked_by_a_get() == 2);
}

}  // namespace fjord::test
