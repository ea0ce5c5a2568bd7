#include "fjord/visitors/visitor_session.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "visitors/visitor_world.h"

namespace fjord {
namespace {

using test::VisitorWorld;
using visitors::VisitorSession;
using visitors::VisitorSessionOptions;

constexpr const char* kSchema = "document city { field name type string { header } field text type string { body } }";

void put_cities(VisitorWorld& world, int count, std::size_t bytes = 100) {
  for (int i = 0; i < count; ++i) {
    const std::string id = "id:t:city:n=" + std::to_string(i) + ":" + std::to_string(i);
    Document document(*world.types().find("city"), *DocumentId::parse(id));
    REQUIRE(document.set("name", "city " + std::to_string(i)).is_ok());
    REQUIRE(document.set("text", std::string(bytes, 'x')).is_ok());
    world.put(document);
  }
}

/// A visit and what came of it.
struct Visit {
  explicit Visit(VisitorWorld& w, VisitorSessionOptions options = {}) : world(w) {
    visitors::VisitorSessionCallbacks callbacks;
    callbacks.on_docblock = [this](BucketId, std::string block) {
      DocBlockReader reader(block);
      while (const auto entry = reader.next()) {
        const auto view = DocumentView::open(world.types(), entry->header, entry->body);
        REQUIRE(view.has_value());
        ++seen[std::string(view->id())];
      }
      if (on_block) on_block();
    };
    callbacks.on_bucket_done = [this](BucketId bucket, const std::string&) { ++done[bucket]; };
    callbacks.on_finished = [this](Status s) { status = std::move(s); };
    session = std::make_unique<VisitorSession>(std::move(options), std::move(callbacks), world.transport,
                                               world.snapshot, world.scheduler.clock(), Random(5), *world.executor);
    world.executor->post([this] { session->start(); });
  }
  ~Visit() { session.reset(); }

  bool run(Duration limit = seconds(600)) {
    return world.run_until([this] { return status.has_value(); }, limit);
  }

  VisitorWorld& world;
  std::map<std::string, int> seen;
  std::map<BucketId, int> done;
  std::optional<Status> status;
  std::function<void()> on_block;
  std::unique_ptr<VisitorSession> session;
};

bool each_once(const Visit& visit, std::size_t count) {
  return visit.seen.size() == count &&
         std::all_of(visit.seen.begin(), visit.seen.end(), [](const auto& entry) { return entry.second == 1; });
}

TEST_CASE("a visit of a whole cluster sees every document once") {
  VisitorWorld world(1, 3, kSchema);
  put_cities(world, 300);
  Visit visit(world);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 300));
  CHECK(visit.done.size() == 16);
  CHECK(visit.session->progress().buckets_done == 16);
}

TEST_CASE("a selection and a list of buckets limit what is seen") {
  VisitorWorld world(2, 2, kSchema);
  put_cities(world, 64);
  VisitorSessionOptions options;
  options.selection = "city.name == \"city 5\"";
  options.buckets = {BucketId(4, 5), BucketId(4, 6)};
  Visit visit(world, options);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 1));
  CHECK(visit.done.size() == 2);
}

TEST_CASE("a listed bucket that holds nothing is done at once") {
  VisitorWorld world(3, 1, kSchema);
  VisitorSessionOptions options;
  options.buckets = {BucketId(4, 5)};
  Visit visit(world, options);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(visit.done.size() == 1);
}

TEST_CASE("an empty cluster is visited successfully") {
  VisitorWorld world(4, 1, kSchema);
  Visit visit(world);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
}

TEST_CASE("a bad selection fails the visit at once") {
  VisitorWorld world(5, 1, kSchema);
  put_cities(world, 3);
  VisitorSessionOptions options;
  options.selection = "nonsense.field == 3";
  Visit visit(world, options);
  REQUIRE(visit.run(seconds(1)));
  CHECK(visit.status->code() == StatusCode::InvalidSelection);
}

TEST_CASE("lost answers lose no document and double none") {
  VisitorWorld world(6, 2, kSchema);
  put_cities(world, 200, 2000);
  world.transport.lose_answers("visitorNext", 6);
  world.transport.lose_answers("getBucketNodes", 1);
  world.transport.lose_answers("createVisitor", 2);
  Visit visit(world);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 200));
}

TEST_CASE("buckets of a node that fails are read again elsewhere, and their documents given once") {
  const bool noticed = GENERATE(true, false);
  VisitorWorld world(7, 3, kSchema);
  put_cities(world, 800, 2000);
  VisitorSessionOptions options;
  options.docblock_bytes = 10'000;
  options.visitors_per_node = 1;
  Visit visit(world, options);
  int blocks = 0;
  visit.on_block = [&] {
    if (++blocks == 10) world.scheduler.outside().post([&] { world.kill_node(1, noticed); });
  };
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 800));
  CHECK(visit.done.size() == 16);
  CHECK(visit.session->progress().buckets_repeated > 0);
}

TEST_CASE("without deduplication a bucket that is read again gives its documents again") {
  VisitorWorld world(7, 3, kSchema);
  put_cities(world, 800, 2000);
  VisitorSessionOptions options;
  options.docblock_bytes = 10'000;
  options.visitors_per_node = 1;
  options.deduplicate = false;
  Visit visit(world, options);
  int blocks = 0;
  visit.on_block = [&] {
    if (++blocks == 10) world.scheduler.outside().post([&] { world.kill_node(1, true); });
  };
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(visit.seen.size() == 800);
  CHECK_FALSE(each_once(visit, 800));
}

TEST_CASE("a bucket that is unavailable for a while delays the visit, one that stays so fails it with the reason") {
  VisitorWorld world(8, 2, kSchema);
  put_cities(world, 64);
  world.unavailable = {BucketId(4, 3)};
  Visit visit(world);
  SECTION("for a while") {
    CHECK_FALSE(visit.run(seconds(20)));
    CHECK(visit.done.size() == 15);
    world.unavailable.clear();
    REQUIRE(visit.run(seconds(20)));
    CHECK(visit.status->is_ok());
    CHECK(each_once(visit, 64));
  }
  SECTION("for ever") {
    REQUIRE(visit.run(seconds(70)));
    CHECK(visit.status->code() == StatusCode::Unavailable);
    CHECK(visit.status->message().find("no replica is up") != std::string::npos);
  }
}

TEST_CASE("the deadline ends a visit") {
  VisitorWorld world(9, 1, kSchema);
  put_cities(world, 5);
  world.unavailable = {BucketId(4, 3)};
  VisitorSessionOptions options;
  options.deadline = seconds(5);
  Visit visit(world, options);
  REQUIRE(visit.run(seconds(7)));
  CHECK(visit.status->code() == StatusCode::Timeout);
}

TEST_CASE("a session with an older cluster state gets the newer one and finishes") {
  VisitorWorld world(10, 2, kSchema);
  put_cities(world, 50);
  world.kill_node(0, true);  // the session still believes version 1
  Visit visit(world);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 50));
}

TEST_CASE("a paused session is given nothing until it is resumed") {
  VisitorWorld world(11, 1, kSchema);
  put_cities(world, 800, 2000);
  VisitorSessionOptions options;
  options.docblock_bytes = 10'000;
  Visit visit(world, options);
  visit.on_block = [&] { visit.session->pause(); };
  CHECK_FALSE(visit.run(seconds(20)));
  const auto seen = visit.seen.size();
  CHECK(seen > 0);
  CHECK_FALSE(visit.run(seconds(20)));
  CHECK(visit.seen.size() == seen);
  visit.on_block = nullptr;
  world.executor->post([&] { visit.session->resume(); });
  REQUIRE(visit.run());
  CHECK(each_once(visit, 800));
}

TEST_CASE("a cancelled session destroys its visitors and says no more") {
  VisitorWorld world(12, 1, kSchema);
  put_cities(world, 800, 2000);
  VisitorSessionOptions options;
  options.docblock_bytes = 10'000;
  Visit visit(world, options);
  bool settled = false;
  visit.on_block = [&] { visit.session->cancel([&] { settled = true; }); };
  CHECK(world.run_until([&] { return settled; }, seconds(5)));
  world.scheduler.run_for(seconds(30));
  CHECK_FALSE(visit.status.has_value());
  CHECK(world.transport.calls("destroyVisitor") == world.transport.calls("createVisitor"));
}

}  // namespace
}  // namespace fjord
