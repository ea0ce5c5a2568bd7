#include "operations/admission.h"

#include <catch2/catch.hpp>

#include "../distributor_world.h"

namespace fjord::test {
namespace {

using distributor::Admission;
using Class = Admission::Class;

constexpr Duration kLong = seconds(30);

struct AdmissionWorld {
  TunableRegistry tunables;
  MetricRegistry metrics;
  Admission admission{tunables, metrics, {.operations_max = 1000, .bytes_max = 10'000}};

  std::uint64_t refused(const std::string& its, const std::string& why) {
    return metrics.counter("fjord_distributor_refused_total", "", {{"class", its}, {"reason", why}}).value();
  }
};

rpc::Execute gets(std::size_t count, rpc::Priority priority = rpc::Priority::Default) {
  rpc::Execute batch = get_batch("id:n:item::0");
  for (std::size_t i = 1; i < count; ++i) {
    batch.operations.push_back(batch.operations[0]);
    batch.operations[i].id = "id:n:item::" + std::to_string(i);
  }
  for (rpc::Operation& operation : batch.operations) operation.priority = priority;
  return batch;
}

/// A distributor whose storage nodes answer Apply only when the test lets them.
struct BusyWorld : DistributorWorld {
  explicit BusyWorld(std::int64_t operations_max) : DistributorWorld(2, 2) {
    give_state(1);
    REQUIRE(ask(put_batch("id:n:item::0", 1)).results.at(0).status);
    REQUIRE(ask(put_batch("id:n:item::1", 2)).results.at(0).status);
    REQUIRE(tunables().set("distributor.pending_operations_max", operations_max));
    stop();
  }
  void stop() { mute = std::vector<bool>(16, true); }
  void go_on() { mute = std::vector<bool>(16, false); }
};

}  // namespace

TEST_CASE("admission: the lower a class, the smaller its part of the budget") {
  AdmissionWorld world;
  REQUIRE_FALSE(world.admission.admit(Class::Background, 500, 0, kLong));
  CHECK(world.admission.admit(Class::Background, 1, 0, kLong) == Admission::Refusal::Full);
  REQUIRE_FALSE(world.admission.admit(Class::Normal, 400, 0, kLong));
  CHECK(world.admission.admit(Class::Normal, 1, 0, kLong) == Admission::Refusal::Full);
  CHECK(world.admission.admit(Class::High, 101, 0, kLong) == Admission::Refusal::Full);
  REQUIRE_FALSE(world.admission.admit(Class::High, 100, 0, kLong));
  CHECK(world.admission.operations() == 1000);
  // Makes room by ending operations.
  for (int i = 0; i < 600; ++i) world.admission.ended({i}, milliseconds(1), true);
  CHECK_FALSE(world.admission.admit(Class::Background, 1, 0, kLong));
}

TEST_CASE("admission: bytes count like operations, and a batch that is alone is taken whatever its size") {
  AdmissionWorld world;
  REQUIRE_FALSE(world.admission.admit(Class::Normal, 1, 1'000'000, kLong));
  CHECK(world.admission.admit(Class::High, 1, 0, kLong) == Admission::Refusal::Full);
  world.admission.ended({}, milliseconds(1), true);
  world.admission.released(1'000'000);
  CHECK(world.admission.bytes() == 0);
  CHECK_FALSE(world.admission.admit(Class::High, 1, 0, kLong));
}

TEST_CASE("admission: the hint is the time in which half of what is under way ends, as fast as it ended lately") {
  AdmissionWorld world;
  CHECK(world.admission.retry_after_ms() > 0);
  REQUIRE_FALSE(world.admission.admit(Class::Normal, 900, 0, kLong));
  // The loop below makes 500 operations a second.
  std::int64_t now = 0;
  for (int i = 0; i < 500; ++i) world.admission.ended({now += 2000}, milliseconds(1), true);
  CHECK(world.admission.operations() == 400);
  CHECK(world.admission.count_refusal(Class::Normal, Admission::Refusal::Full, 3) == Approx(400).epsilon(0.05));
  CHECK(world.refused("normal", "full") == 3);
  CHECK(world.refused("background", "full") == 0);
  // The hint shrinks when operations end faster.
  REQUIRE_FALSE(world.admission.admit(Class::Normal, 500, 0, kLong));
  for (int i = 0; i < 500; ++i) world.admission.ended({now += 400}, milliseconds(1), true);
  CHECK(world.admission.retry_after_ms() < 250);
}

TEST_CASE("admission: in a queue, what has less time than others needed lately is refused, without one it is not") {
  AdmissionWorld world;
  REQUIRE_FALSE(world.admission.admit(Class::Normal, 600, 0, kLong));
  for (int i = 1; i <= 300; ++i) world.admission.ended({i * 1000}, milliseconds(800), true);
  CHECK(world.admission.admit(Class::Normal, 1, 0, milliseconds(200)) == Admission::Refusal::TooLate);
  CHECK(world.admission.admit(Class::High, 1, 0, milliseconds(200)) == Admission::Refusal::TooLate);
  CHECK_FALSE(world.admission.admit(Class::Normal, 1, 0, seconds(2)));
  for (int i = 1; i <= 200; ++i) world.admission.ended({300'000 + i}, milliseconds(800), true);
  CHECK_FALSE(world.admission.admit(Class::Normal, 1, 0, milliseconds(200)));
}

TEST_CASE("admission: a priority of a newer client is a normal one") {
  rpc::Operation operation;
  CHECK(Admission::class_of(operation) == Class::Normal);
  operation.priority = static_cast<rpc::Priority>(77);
  CHECK(Admission::class_of(operation) == Class::Normal);
  operation.priority = rpc::Priority::Background;
  CHECK(Admission::class_of(operation) == Class::Background);
}

TEST_CASE("distributor: what there is no room for is refused at once with a hint, and polls are still answered") {
  BusyWorld world(20);
  const auto first = world.send(gets(10, rpc::Priority::Background));
  const auto background = world.send(gets(1, rpc::Priority::Background));
  REQUIRE(background->has_value());  // The refusal comes at once, without a task on the executor.
  CHECK((*background)->status.code() == StatusCode::Busy);
  CHECK((*background)->retry_after_ms > 0);
  CHECK((*background)->status.message().find("pending_operations_max") != std::string::npos);
  const auto user = world.send(gets(8));
  CHECK_FALSE(user->has_value());
  const auto too_many = world.send(gets(1));
  REQUIRE(too_many->has_value());
  CHECK((*too_many)->status.code() == StatusCode::Busy);
  CHECK_FALSE(world.send(gets(2, rpc::Priority::High))->has_value());
  CHECK(world.poll([](rpc::Poll& poll) { poll.info.state_version = 1; }).status);
  CHECK(world.counter("fjord_distributor_refused_total", {{"class", "background"}, {"reason", "full"}}) == 1);
  CHECK(world.counter("fjord_distributor_not_applied_total", {{"reason", "BUSY"}}) == 2);
  world.go_on();
  world.run(seconds(3));
  REQUIRE(first->has_value());
  REQUIRE(user->has_value());
  CHECK((*first)->results.at(0).status);
  CHECK((*user)->results.at(1).status);
  CHECK(world.ask(gets(1, rpc::Priority::Background)).results.at(0).status);
}

TEST_CASE("distributor: of a batch with several priorities only those are refused that there is no room for") {
  BusyWorld world(20);
  const auto first = world.send(gets(10));
  rpc::Execute mixed = gets(2);
  mixed.operations[1].priority = rpc::Priority::Background;
  const auto both = world.send(std::move(mixed));
  world.run(milliseconds(10));
  CHECK_FALSE(both->has_value());
  world.go_on();
  world.run(seconds(3));
  REQUIRE(both->has_value());
  CHECK((*both)->status);
  CHECK((*both)->results.at(0).status);
  CHECK((*both)->results.at(1).status.code() == StatusCode::Busy);
  CHECK((*both)->results.at(1).retry_after_ms > 0);
}

TEST_CASE("distributor: a copy of a write that was refused for lack of room stays refused") {
  BusyWorld world(10);
  const auto first = world.send(gets(9));
  const rpc::Execute put = put_batch("id:n:item::5", 7, 1);
  REQUIRE(world.ask(put).status.code() == StatusCode::Busy);
  world.go_on();
  world.run(seconds(3));
  CHECK(world.ask(put).results.at(0).status.code() == StatusCode::Busy);
  CHECK(world.ask(get_batch("id:n:item::5")).results.at(0).status.code() == StatusCode::NotFound);
  CHECK(world.ask(put_batch("id:n:item::5", 7, 2)).results.at(0).status);
}

TEST_CASE("distributor: operations count as pending from their arrival until they are answered") {
  BusyWorld world(20);
  const auto pending = [&] { return world.gauge("fjord_distributor_pending_operations"); };
  CHECK(pending() == 0);
  const auto first = world.send(gets(3));
  world.run(milliseconds(10));
  CHECK(pending() == 3);
  const auto second = world.send(gets(1));
  world.run(milliseconds(10));
  CHECK(pending() == 4);
  world.go_on();
  world.run(seconds(3));
  REQUIRE(first->has_value());
  REQUIRE(second->has_value());
  CHECK(pending() == 0);
}

TEST_CASE("distributor: no work is begun on an operation whose time was over before it was its turn") {
  DistributorWorld world(2, 2);
  world.give_state(1);
  REQUIRE(world.ask(put_batch("id:n:item::0", 1)).results.at(0).status);
  // The storage nodes do not answer questions about the new state yet, so operations wait.
  world.mute = std::vector<bool>(16, true);
  world.give_state(3);
  rpc::Execute puts = put_batch("id:n:item::0", 2, 1, "late");
  puts.operations.push_back(put_batch("id:n:item::1", 3, 1, "in time").operations[0]);
  puts.operations[0].timeout_us = 100'000;
  puts.timeout_us = 5'000'000;
  const auto answer = world.send(std::move(puts));
  world.run(milliseconds(500));
  world.mute = std::vector<bool>(16, false);
  world.run(seconds(3));
  REQUIRE(answer->has_value());
  CHECK((*answer)->results.at(0).status.code() == StatusCode::Unavailable);
  CHECK((*answer)->results.at(1).status);
  rpc::Execute get = get_batch("id:n:item::0");
  get.operations[0].want_json = true;
  CHECK(world.ask(get).results.at(0).json.find("late") == std::string::npos);
}

}  // namespace fjord::test
