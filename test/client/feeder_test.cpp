#include "fjord/client/feeder.h"

#include "aimd_window.h"
#include "client_world.h"
#include "fjord/client/operations.h"
#include "fjord/client/own_types.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "latency_histogram.h"

namespace fjord::test {
namespace {

rpc::Operation put_of(int n, std::size_t bytes = 10) {
  rpc::Operation operation;
  operation.kind = rpc::OperationKind::Put;
  operation.id = "id:n:t::" + std::to_string(n);
  operation.header = std::string(bytes, 'x');
  return operation;
}

}  // namespace

TEST_CASE("a feed has no more operations pending than its window", "[feeder]") {
  ClientWorld world;
  Feeder::Options options;
  options.window_operations = 5;
  std::vector<std::uint64_t> tags;
  options.on_result = [&](std::uint64_t tag, OperationOutcome) { tags.push_back(tag); };
  Feeder feeder(*world.client, std::move(options));
  int accepted = 0;
  for (int n = 0; n < 8; ++n) {
    rpc::Operation operation = put_of(n);
    if (feeder.try_submit(operation, static_cast<std::uint64_t>(n))) {
      ++accepted;
    } else {
      CHECK(operation.header.size() == 10);  // A refused operation is not changed.
    }
  }
  CHECK(accepted == 5);
  CHECK(feeder.pending() == 5);
  world.run();
  CHECK(feeder.pending() == 0);
  std::sort(tags.begin(), tags.end());
  CHECK(tags == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("a feed has no more bytes pending than its window, except for one large operation", "[feeder]") {
  ClientWorld world;
  Feeder::Options options;
  options.window_bytes = 1000;
  Feeder feeder(*world.client, std::move(options));
  rpc::Operation large = put_of(1, 5000);
  rpc::Operation small = put_of(2);
  CHECK(feeder.try_submit(large));
  CHECK_FALSE(feeder.try_submit(small));
  world.run();
  rpc::Operation half = put_of(3, 600);
  CHECK(feeder.try_submit(half));
  rpc::Operation other_half = put_of(4, 600);
  CHECK_FALSE(feeder.try_submit(other_half));
  CHECK(feeder.try_submit(small));
}

TEST_CASE("a refused submit is followed by word of room", "[feeder]") {
  ClientWorld world;
  int room = 0;
  int next = 0;
  Feeder* feeding = nullptr;
  const auto fill = [&] {
    while (next < 50) {
      rpc::Operation operation = put_of(next);
      if (!feeding->try_submit(operation)) return;
      ++next;
    }
  };
  Feeder::Options options;
  options.window_operations = 4;
  options.on_room = [&] {
    ++room;
    fill();
  };
  Feeder feeder(*world.client, std::move(options));
  feeding = &feeder;
  fill();
  CHECK(next == 4);
  world.run();
  CHECK(next == 50);
  CHECK(room > 0);
  CHECK(feeder.stats().ok == 50);
}

TEST_CASE("there is one word of room for a refused submit, however many operations end after it", "[feeder]") {
  ClientWorld world;
  int room = 0;
  Feeder::Options options;
  options.window_operations = 4;
  options.on_room = [&] { ++room; };
  Feeder feeder(*world.client, std::move(options));
  for (int n = 0; n < 5; ++n) {
    rpc::Operation operation = put_of(n);
    CHECK(feeder.try_submit(operation) == (n < 4));
  }
  world.run();
  CHECK(feeder.stats().ok == 4);
  CHECK(room == 1);
}

TEST_CASE("operations of a feed have its priority unless they name one", "[feeder]") {
  ClientWorld world;
  Feeder::Options options;
  options.priority = rpc::Priority::Background;
  Feeder feeder(*world.client, std::move(options));
  rpc::Operation unnamed = put_of(1);
  rpc::Operation named = put_of(2);
  named.priority = rpc::Priority::High;
  REQUIRE(feeder.try_submit(unnamed));
  REQUIRE(feeder.try_submit(named));
  world.run();
  std::map<std::string, rpc::Priority> sent;
  for (const rpc::Execute& batch : world.batches()) {
    for (const rpc::Operation& operation : batch.operations) sent[operation.id] = operation.priority;
  }
  CHECK(sent == std::map<std::string, rpc::Priority>{{"id:n:t::1", rpc::Priority::Background},
                                                     {"id:n:t::2", rpc::Priority::High}});
}

TEST_CASE("the numbers of a feed add up by outcome", "[feeder]") {
  ClientWorld world;
  std::map<std::string, int> seen;
  world.answer_operations([&](const rpc::Operation& operation) {
    const bool is_first = seen[operation.id]++ == 0;
    if (operation.id == "id:n:t::1") return result_of(StatusCode::TooLarge);
    if (operation.id == "id:n:t::2" && is_first) return result_of(StatusCode::Busy);
    if (operation.id == "id:n:t::3") return result_of(StatusCode::IoError);
    return result_of(StatusCode::Ok);
  });
  Feeder feeder(*world.client);
  std::uint64_t bytes = 0;
  for (int n = 0; n < 10; ++n) {
    rpc::Operation operation = put_of(n);
    bytes += operation.id.size() + operation.header.size();
    REQUIRE(feeder.try_submit(operation));
  }
  bool idle = false;
  feeder.when_idle([&] { idle = true; });
  CHECK_FALSE(idle);
  world.run();
  CHECK(idle);
  const FeedStats stats = feeder.stats();
  CHECK(stats.submitted == 10);
  CHECK(stats.ok == 8);
  CHECK(stats.in_doubt == 1);
  CHECK(stats.failed == std::map<StatusCode, std::uint64_t>{{StatusCode::TooLarge, 1}});
  CHECK(stats.failed_total() == 1);
  CHECK(stats.retried == 1);
  CHECK(stats.bytes == bytes);
  CHECK(stats.seconds > 0.003);
  // One round trip for the cluster state, one for the batch.
  CHECK(stats.latency_p50_seconds == Approx(0.002).epsilon(0.1));
  CHECK(stats.latency_p99_seconds > stats.latency_p50_seconds);
  CHECK(stats.latency_max_seconds >= stats.latency_p99_seconds);
}

TEST_CASE("BUSY answers shrink the window of a feed", "[feeder]") {
  ClientWorld world;
  std::map<std::string, int> seen;
  world.answer_operations([&](const rpc::Operation& operation) {
    return result_of(seen[operation.id]++ == 0 ? StatusCode::Busy : StatusCode::Ok);
  });
  Feeder::Options options;
  options.window_operations = 64;
  Feeder feeder(*world.client, std::move(options));
  for (int n = 0; n < 64; ++n) {
    rpc::Operation operation = put_of(n);
    REQUIRE(feeder.try_submit(operation));
  }
  CHECK(feeder.stats().window == 64);
  world.run();
  CHECK(feeder.stats().window < 64);
  CHECK(feeder.stats().window >= 16);
  CHECK(feeder.stats().ok == 64);
}

TEST_CASE("after the feeder is gone its callbacks are silent", "[feeder]") {
  ClientWorld world;
  int results = 0;
  {
    Feeder::Options options;
    options.on_result = [&](std::uint64_t, OperationOutcome) { ++results; };
    Feeder feeder(*world.client, std::move(options));
    rpc::Operation operation = put_of(1);
    REQUIRE(feeder.try_submit(operation));
  }
  world.run();
  CHECK(results == 0);
  CHECK(world.client->pending() == 0);
}

TEST_CASE("the feed window halves once a window and grows step by step", "[feeder]") {
  AimdWindow window(16, 1024);
  CHECK(window.size() == 1024);
  window.on_result(true);
  CHECK(window.size() == 512);
  for (int i = 0; i < 511; ++i) window.on_result(true);
  CHECK(window.size() == 512);  // No cut: these operations were sent before the last cut of the window.
  window.on_result(true);
  CHECK(window.size() == 256);
  for (int i = 0; i < 256; ++i) window.on_result(false);
  CHECK(window.size() == 272);
  for (int i = 0; i < 100'000; ++i) window.on_result(true);
  CHECK(window.size() == 16);
  for (int i = 0; i < 1'000'000; ++i) window.on_result(false);
  CHECK(window.size() == 1024);
  CHECK(AimdWindow(0, 0).size() == 1);
}

TEST_CASE("quantiles of latencies are exact to three percent", "[feeder]") {
  LatencyHistogram latencies;
  CHECK(latencies.quantile_seconds(0.5) == 0);
  for (int i = 1; i <= 100'000; ++i) latencies.add(microseconds(i));
  for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999}) {
    CAPTURE(q);
    CHECK(latencies.quantile_seconds(q) == Approx(q * 0.1).epsilon(0.032));
  }
  CHECK(latencies.quantile_seconds(1) == 0.1);
  CHECK(latencies.max_seconds() == 0.1);
}

TEST_CASE("a feed refuses writes of Fjord's own types without sending them, unless it is to write them", "[feeder]") {
  const auto types = DocumentTypeRepo::build(rpc::builtin_schemas()).value();
  const DocumentType& job = *types->find("fjord_job");
  // An id of an old scheme names no type; the written bytes do.
  const DocumentId old = DocumentId::parse("userdoc:fjord:1:record").value();
  const std::vector<rpc::Operation> writes = {
      put_json_operation("id:fjord:fjord_job:n=1:record", "{}"), update_json_operation("id:x:fjord_tuples::a", "{}"),
      remove_operation("id:results:fjord_result:n=1:a/b"),       remove_operation("id:fjord:fjord_affinity::a"),
      remove_operation("id:fjord:fjord_queries:n=1:a"),          remove_operation("id:fjord:fjord_synonyms:n=1:a"),
      put_operation(old.str(), encode(Document(job, old))),      update_operation(DocumentUpdate(job, old)),
  };
  ClientWorld world;
  Feeder::Options options;
  options.writes_own_types = GENERATE(false, true);
  const bool refuses = !options.writes_own_types;
  std::vector<StatusCode> codes;
  options.on_result = [&](std::uint64_t, const OperationOutcome& outcome) {
    codes.push_back(outcome.status.code());
    CHECK((!refuses || outcome.outcome == Outcome::NotApplied));
  };
  Feeder feeder(*world.client, std::move(options));
  for (const rpc::Operation& write : writes) {
    CAPTURE(write.id);
    CHECK(check_users_write(write).code() == StatusCode::Unauthorized);
    rpc::Operation copy = write;
    REQUIRE(feeder.try_submit(copy));
  }
  world.run();
  CHECK(feeder.pending() == 0);
  CHECK(std::count(codes.begin(), codes.end(), StatusCode::Unauthorized) ==
        (refuses ? static_cast<std::ptrdiff_t>(writes.size()) : 0));
  CHECK(check_users_write(get_operation("id:fjord:fjord_job:n=1:record")));
  CHECK(check_users_write(remove_operation("id:n:fjord_mine::1")));
}

}  // namespace fjord::test
