#include "fjord/visitors/visitor_service.h"

#include <catch2/catch.hpp>
#include <set>

#include "visitors/service_calls.h"

namespace fjord {
namespace {

using test::ask;
using test::city_id;
using test::dump_of;
using test::poll;
using test::put_city;
using test::VisitorWorld;

constexpr const char* kSchema = test::kCitySchema;

std::size_t documents_in(const std::vector<rpc::VisitorEvent>& events) {
  std::size_t count = 0;
  for (const auto& event : events) {
    DocBlockReader reader(event.docblock);
    while (reader.next()) ++count;
  }
  return count;
}

TEST_CASE("a dump visitor gives every document of its buckets, then says that they are done") {
  VisitorWorld world(1, 1, kSchema);
  for (int i = 0; i < 20; ++i) put_city(world, i % 2, i);
  CHECK(ask(world, dump_of({BucketId(4, 0), BucketId(4, 1)})).status.is_ok());
  std::vector<rpc::VisitorEvent> events;
  bool finished = false;
  while (!finished) {
    auto reply = poll(world, events.size());
    REQUIRE(reply.status.is_ok());
    for (auto& event : reply.events) {
      CHECK(event.sequence == events.size() + 1);
      events.push_back(std::move(event));
    }
    finished = reply.finished;
  }
  CHECK(documents_in(events) == 20);
  CHECK(std::count_if(events.begin(), events.end(), [](const auto& e) { return e.bucket_done && e.status; }) == 2);
}

TEST_CASE("a visitor is given the fields that are asked for") {
  VisitorWorld world(1, 1, kSchema);
  put_city(world, 1, 1);
  const auto visit = [&](std::uint64_t id, const std::string& fields) {
    auto create = dump_of({BucketId(4, 1)});
    create.visitor_id = id;
    create.field_set = fields;
    create.selection =
        // The visit does not return the field that the selection evaluates.
        "city.text == \"" + std::string(100, 'x') + "\"";
    REQUIRE(ask(world, create).status.is_ok());
    rpc::VisitorNext next;
    next.visitor_id = id;
    next.wait_us = 1'000'000;
    auto events = ask(world, next).events;
    REQUIRE(!events.empty());
    return events[0].docblock;
  };
  const auto check = [&](const std::string& block, bool id, bool name, bool text) {
    DocBlockReader reader(block);
    const auto entry = reader.next();
    REQUIRE(entry);
    CHECK(entry->header.empty() == !id);
    if (!id) return;
    const DocumentView view = *DocumentView::open(world.types(), entry->header, entry->body);
    CHECK(view.id() == city_id(1, 1));
    CHECK(view.field("name").has_value() == name);
    CHECK(view.field("text").has_value() == text);
  };
  check(visit(11, "[all]"), true, true, true);
  check(visit(12, "city:name"), true, true, false);
  check(visit(13, "city:text"), true, false, true);
  check(visit(14, "[id]"), true, false, false);
  check(visit(15, "[none]"), false, false, false);
  auto create = dump_of({BucketId(4, 1)});
  create.field_set = "city:nonsense";
  CHECK(ask(world, create).status.code() == StatusCode::InvalidField);
}

TEST_CASE("an engine hands on bodies only if some field of them is asked for") {
  constexpr std::size_t kBodyBytes = 10'000;
  VisitorWorld world(1, 1, kSchema);
  put_city(world, 1, 1, kBodyBytes);
  Counter& read = world.nodes[0].runtime->metrics.counter("fjord_visitor_docblock_bytes_total", "");
  std::uint64_t id = 10;
  const auto body_is_handed_on = [&](const std::string& fields, const std::string& selection = {}) {
    const std::uint64_t before = read.value();
    auto create = dump_of({BucketId(4, 1)});
    create.visitor_id = ++id;
    create.field_set = fields;
    create.selection = selection;
    REQUIRE(ask(world, create).status.is_ok());
    rpc::VisitorNext next;
    next.visitor_id = id;
    next.wait_us = 1'000'000;
    REQUIRE(documents_in(ask(world, next).events) == 1);
    return read.value() - before > kBodyBytes;
  };
  CHECK(body_is_handed_on(""));
  CHECK(body_is_handed_on("[all]"));
  CHECK(body_is_handed_on("city:text"));
  CHECK(body_is_handed_on("city:name,text"));
  CHECK_FALSE(body_is_handed_on("city:name"));
  CHECK_FALSE(body_is_handed_on("city:name", "city.name == \"city 1\""));
  // The body is read only for the selection, and is not handed on.
  CHECK_FALSE(body_is_handed_on("city:name", "city.text = \"x*\""));
  CHECK_FALSE(body_is_handed_on("[id]"));
  CHECK_FALSE(body_is_handed_on("[none]"));
}

TEST_CASE("a selection on the current time is asked with the node's clock") {
  VisitorWorld world(1, 1, kSchema);
  for (int i = 0; i < 3; ++i) put_city(world, 1, i);
  const auto visited = [&](std::uint64_t id, const std::string& selection) {
    auto create = dump_of({BucketId(4, 1)});
    create.visitor_id = id;
    create.selection = selection;
    REQUIRE(ask(world, create).status.is_ok());
    rpc::VisitorNext next;
    next.visitor_id = id;
    next.wait_us = 1'000'000;
    return documents_in(ask(world, next).events);
  };
  CHECK(visited(21, "city and now() > 0") == 3);
  CHECK(visited(22, "city and now() < 0") == 0);
  CHECK(visited(23, "city and not (now() < 0)") == 3);
}

TEST_CASE("a visitor stops reading while its client acknowledges nothing, and goes on when it does") {
  VisitorWorld world(2, 1, kSchema);
  for (int i = 0; i < 200; ++i) put_city(world, 1, i, 1000);
  auto create = dump_of({BucketId(4, 1)});
  create.docblock_bytes = 4000;
  REQUIRE(ask(world, create).status.is_ok());
  world.scheduler.run_for(seconds(10));
  const auto reply = poll(world, 0);
  CHECK(reply.events.size() == 4);
  const int tasks = world.nodes[0].buckets->stripe_tasks;
  world.scheduler.run_for(seconds(10));
  CHECK(world.nodes[0].buckets->stripe_tasks == tasks);

  CHECK(poll(world, 0).events.size() == 4);
  poll(world, 2);
  world.scheduler.run_for(seconds(1));
  CHECK(world.nodes[0].buckets->stripe_tasks == tasks + 2);
  CHECK(poll(world, 2).events.size() == 4);
}

/// 16 buckets of 3 documents of 300 bytes, all read by one visitor.
struct SmallBuckets {
  explicit SmallBuckets(VisitorWorld& w) : world(w) {
    for (int i = 0; i < 48; ++i) put_city(world, i % 16, i, 300);
    create = dump_of({});
    for (std::uint32_t i = 0; i < 16; ++i) create.buckets.push_back(BucketId(4, i));
    create.buckets_at_once = 16;
  }
  /// Returns the number of stripe tasks for a visit of all documents.
  int tasks_to_visit() {
    ++create.visitor_id;
    const int before = world.nodes[0].buckets->stripe_tasks;
    REQUIRE(ask(world, create).status.is_ok());
    std::size_t documents = 0;
    std::set<BucketId> done;
    rpc::VisitorNextReply reply;
    for (rpc::VisitorNext next{.visitor_id = create.visitor_id, .wait_us = 1'000'000}; !reply.finished;) {
      reply = ask(world, next);
      REQUIRE(reply.status.is_ok());
      documents += documents_in(reply.events);
      for (const auto& event : reply.events) {
        next.acknowledged = event.sequence;
        if (event.bucket_done && event.status) CHECK(done.insert(event.bucket).second);
      }
    }
    CHECK(documents == 48);
    CHECK(done.size() == 16);
    return world.nodes[0].buckets->stripe_tasks - before;
  }

  VisitorWorld& world;
  rpc::CreateVisitor create;
};

TEST_CASE("a task of a stripe reads as many buckets as a block has room for") {
  VisitorWorld world(2, 1, kSchema);
  SmallBuckets small(world);
  CHECK(small.tasks_to_visit() == 2);  // One task for each stripe.
  small.create.docblock_bytes = 4000;  // A block holds about four buckets.
  const int tasks = small.tasks_to_visit();
  CHECK(tasks >= 4);
  CHECK(tasks <= 10);
  small.create.buckets_at_once = 1;
  small.create.docblock_bytes = 0;
  CHECK(small.tasks_to_visit() == 16);
}

TEST_CASE("a task of a stripe ends with the bucket that took its time") {
  /// A clock on which each call takes 0.3 ms.
  class SlowClock final : public Clock {
   public:
    MonotonicTime now() const override { return MonotonicTime() + Duration(300 * looks_++); }
    WallTime wall_now() const override { return {}; }

   private:
    mutable std::int64_t looks_ = 0;
  };
  VisitorWorld world(2, 1, kSchema);
  SmallBuckets small(world);
  SlowClock clock;
  VisitorWorld::StorageNode& node = world.nodes[0];
  const Runtime& of_node = node.runtime->runtime;
  MetricRegistry metrics;
  TunableRegistry tunables;
  Runtime slow{clock, of_node.scheduler, of_node.bulk, of_node.env, of_node.random, metrics, tunables};
  node.service = std::make_unique<visitors::VisitorService>(visitors::VisitorServiceOptions{}, slow, *node.buckets,
                                                            world.snapshot, *node.registry);
  world.transport.serve("storage0", node.service.get());
  CHECK(small.tasks_to_visit() == 8);  // Each task reads two buckets.
  node.service.reset();
}

TEST_CASE("events that were sent but not acknowledged are sent again") {
  VisitorWorld world(3, 1, kSchema);
  put_city(world, 1, 1);
  REQUIRE(ask(world, dump_of({BucketId(4, 1)})).status.is_ok());
  world.scheduler.run_for(seconds(1));
  const auto first = poll(world, 0);
  const auto again = poll(world, 0);
  REQUIRE(first.events.size() == 2);
  REQUIRE(again.events.size() == 2);
  CHECK(again.finished);
  CHECK(again.events[0].docblock == first.events[0].docblock);
  const auto rest = poll(world, 1);
  REQUIRE(rest.events.size() == 1);
  CHECK(rest.events[0].bucket_done);
}

TEST_CASE("creating a visitor again with its id changes nothing") {
  VisitorWorld world(4, 1, kSchema);
  put_city(world, 1, 1);
  CHECK(ask(world, dump_of({BucketId(4, 1)})).status.is_ok());
  CHECK(ask(world, dump_of({BucketId(4, 1)})).status.is_ok());
  world.scheduler.run_for(seconds(1));
  CHECK(documents_in(poll(world, 0).events) == 1);
}

TEST_CASE("what cannot be visited is refused with a reason") {
  VisitorWorld world(5, 1, kSchema);
  auto create = dump_of({BucketId(4, 1)});
  SECTION("unknown visitor") {
    create.library = "nonsense";
    const Status status = ask(world, create).status;
    CHECK(status.code() == StatusCode::InvalidArgument);
    CHECK(status.message().find("dump") != std::string::npos);
  }
  SECTION("selection that does not parse") {
    create.selection = "city.name ==";
    CHECK(ask(world, create).status.code() == StatusCode::InvalidSelection);
  }
  SECTION("schema that the node does not have yet") {
    create.schema_version = 2;
    CHECK(ask(world, create).status.code() == StatusCode::NotReady);
  }
  SECTION("no buckets") {
    create.buckets.clear();
    CHECK(ask(world, create).status.code() == StatusCode::InvalidArgument);
  }
  CHECK(poll(world, 0).status.code() == StatusCode::NotFound);
}

TEST_CASE("a bucket that is not there, or is still being filled, ends with that status") {
  VisitorWorld world(6, 1, kSchema);
  world.create_bucket(world.nodes[0], BucketId(4, 3), 0);
  REQUIRE(ask(world, dump_of({BucketId(4, 2), BucketId(4, 3)})).status.is_ok());
  world.scheduler.run_for(seconds(1));
  const auto reply = poll(world, 0);
  REQUIRE(reply.events.size() == 2);
  CHECK(reply.events[0].status.code() == StatusCode::NotFound);
  CHECK(reply.events[1].status.code() == StatusCode::NotReady);
  CHECK(reply.events[1].bucket_done);
}

TEST_CASE("a bucket that was split is visited as one, and not at all while a part of it is missing") {
  VisitorWorld world(16, 1, kSchema);
  for (int i = 0; i < 40; ++i) put_city(world, 1 + 16 * (i % 4), i, 1000);
  auto& provider = world.nodes[0].buckets->provider(BucketId(4, 1));
  REQUIRE(provider.split_bucket(BucketId(4, 1)).is_ok());
  REQUIRE(provider.split_bucket(BucketId(5, 17)).is_ok());
  auto create = dump_of({BucketId(4, 1)});
  create.docblock_bytes = 4000;
  SECTION("whole") {
    REQUIRE(ask(world, create).status.is_ok());
    std::size_t documents = 0;
    std::uint64_t acknowledged = 0;
    for (bool finished = false; !finished;) {
      const auto reply = poll(world, acknowledged);
      for (const auto& event : reply.events) {
        acknowledged = event.sequence;
        if (event.bucket_done) CHECK(event.status.is_ok());
      }
      documents += documents_in(reply.events);
      finished = reply.finished;
    }
    CHECK(documents == 40);
  }
  SECTION("a part is gone") {
    REQUIRE(provider.delete_bucket(BucketId(6, 17)).is_ok());
    REQUIRE(ask(world, create).status.is_ok());
    world.scheduler.run_for(seconds(1));
    const auto reply = poll(world, 0);
    REQUIRE(reply.events.size() == 1);
    CHECK(reply.events[0].status.code() == StatusCode::NotReady);
  }
  SECTION("a part is split meanwhile") {
    REQUIRE(ask(world, create).status.is_ok());
    world.scheduler.run_for(seconds(1));
    REQUIRE(provider.split_bucket(BucketId(5, 1)).is_ok());
    REQUIRE(provider.split_bucket(BucketId(6, 17)).is_ok());
    REQUIRE(provider.split_bucket(BucketId(6, 49)).is_ok());
    StatusCode end = StatusCode::Ok;
    std::uint64_t acknowledged = 0;
    for (bool finished = false; !finished;) {
      const auto reply = poll(world, acknowledged);
      for (const auto& event : reply.events) {
        acknowledged = event.sequence;
        if (event.bucket_done) end = event.status.code();
      }
      finished = reply.finished;
    }
    CHECK(end == StatusCode::NotFound);
  }
}

TEST_CASE("a bucket that is deleted while it is visited ends with NotFound, not as done") {
  VisitorWorld world(7, 1, kSchema);
  for (int i = 0; i < 100; ++i) put_city(world, 1, i, 1000);
  auto create = dump_of({BucketId(4, 1)});
  create.docblock_bytes = 4000;
  REQUIRE(ask(world, create).status.is_ok());
  world.scheduler.run_for(seconds(1));
  REQUIRE(world.nodes[0].buckets->provider(BucketId(4, 1)).delete_bucket(BucketId(4, 1)).is_ok());
  poll(world, 4);
  world.scheduler.run_for(seconds(1));
  const auto reply = poll(world, 4);
  REQUIRE(reply.finished);
  CHECK(reply.events.back().status.code() == StatusCode::NotFound);
}

TEST_CASE("a visitor whose client is silent is destroyed; a client that polls keeps it") {
  VisitorWorld world(8, 1, kSchema, {.idle_max = seconds(10)});
  put_city(world, 1, 1);
  REQUIRE(ask(world, dump_of({BucketId(4, 1)})).status.is_ok());
  for (int i = 0; i < 5; ++i) {
    world.scheduler.run_for(seconds(8));
    CHECK(poll(world, 0).status.is_ok());
  }
  world.scheduler.run_for(seconds(12));
  CHECK(poll(world, 0).status.code() == StatusCode::NotFound);
}

TEST_CASE("a visitor may ask to be destroyed sooner when its client is silent, not later") {
  class Brief final : public visitors::Visitor {
   public:
    explicit Brief(Duration idle) : idle_(idle) {}
    Status visit(BucketId, std::string) override { return Status::ok(); }
    std::optional<Duration> idle_max() const override { return idle_; }

   private:
    Duration idle_;
  };
  VisitorWorld world(8, 1, kSchema, {.idle_max = seconds(20)});
  for (const int idle_s : {5, 500}) {
    const auto make = [idle_s](visitors::VisitContext&, const visitors::Parameters&) {
      return Result<std::unique_ptr<visitors::Visitor>>(std::make_unique<Brief>(seconds(idle_s)));
    };
    world.nodes[0].registry->add("brief " + std::to_string(idle_s), make);
  }
  put_city(world, 1, 1);
  for (std::uint64_t id : {1, 2}) {
    auto request = dump_of({BucketId(4, 1)});
    request.visitor_id = id;
    request.library = id == 1 ? "brief 5" : "brief 500";
    REQUIRE(ask(world, request).status.is_ok());
  }
  const auto is_there = [&](std::uint64_t id) {
    return ask(world, rpc::VisitorNext{.visitor_id = id}).status.code() != StatusCode::NotFound;
  };
  world.scheduler.run_for(seconds(8));
  CHECK_FALSE(is_there(1));
  CHECK(is_there(2));
  world.scheduler.run_for(seconds(23));
  CHECK_FALSE(is_there(2));
}

TEST_CASE("visitors beyond the limit wait and run when another one is destroyed") {
  VisitorWorld world(9, 1, kSchema, {.cpus = 2});
  REQUIRE(world.nodes[0].runtime->tunables.set("storage.visitors_max", 1).is_ok());
  for (int i = 0; i < 100; ++i) put_city(world, 1, i, 1000);
  auto hog = dump_of({BucketId(4, 1)});
  hog.visitor_id = 1;
  hog.docblock_bytes = 4000;  // The visitor stays, as its events are never acknowledged.
  REQUIRE(ask(world, hog).status.is_ok());
  REQUIRE(ask(world, dump_of({BucketId(4, 1)})).status.is_ok());
  CHECK(poll(world, 0).events.empty());
  REQUIRE(ask(world, rpc::DestroyVisitor{.visitor_id = 1}).status.is_ok());
  CHECK_FALSE(poll(world, 0).events.empty());
}

/// Visitors that stay once they have begun, because their events are never acknowledged.
class Crowd {
 public:
  explicit Crowd(std::int64_t visitors_max) : world_(9, 1, kSchema, {.cpus = 2}) {
    REQUIRE(world_.nodes[0].runtime->tunables.set("storage.visitors_max", visitors_max).is_ok());
    for (int i = 0; i < 100; ++i) put_city(world_, 1, i, 1000);
  }
  void make(std::uint64_t id, rpc::Priority priority, std::uint64_t group = 0, std::uint32_t weight = 0) {
    auto visitor = dump_of({BucketId(4, 1)});
    visitor.visitor_id = id;
    visitor.docblock_bytes = 4000;
    visitor.priority = priority;
    visitor.group = group;
    visitor.weight = weight;
    REQUIRE(ask(world_, visitor).status.is_ok());
    known_.insert(id);
  }
  void destroy(std::uint64_t id) {
    REQUIRE(ask(world_, rpc::DestroyVisitor{.visitor_id = id}).status.is_ok());
    known_.erase(id);
  }
  std::set<std::uint64_t> begun() {
    std::set<std::uint64_t> ids;
    for (const std::uint64_t id : known_) {
      if (!ask(world_, rpc::VisitorNext{.visitor_id = id, .wait_us = 100'000}).events.empty()) ids.insert(id);
    }
    return ids;
  }

 private:
  VisitorWorld world_;
  std::set<std::uint64_t> known_;
};

using Ids = std::set<std::uint64_t>;

TEST_CASE("visitors that somebody waits for begin although those in the background have all there is for these") {
  Crowd crowd(2);
  for (std::uint64_t id = 1; id <= 5; ++id) crowd.make(id, rpc::Priority::Background);
  CHECK(crowd.begun() == Ids{1, 2});
  for (std::uint64_t id = 11; id <= 13; ++id) crowd.make(id, rpc::Priority::Normal);
  CHECK(crowd.begun() == Ids{1, 2, 11, 12});
  crowd.make(21, rpc::Priority::High);  // The visitor gets its share of the interactive visitors.
  crowd.make(22, rpc::Priority::High);
  crowd.make(23, rpc::Priority::High);
  CHECK(crowd.begun() == Ids{1, 2, 11, 12, 21, 22});
  // When a visitor ends, the first one that waits with its priority begins.
  crowd.destroy(11);
  CHECK(crowd.begun() == Ids{1, 2, 12, 21, 22});  // No other one begins, as more than two run.
  crowd.destroy(21);
  CHECK(crowd.begun() == Ids{1, 2, 12, 22, 23});
  crowd.destroy(22);
  crowd.destroy(23);
  CHECK(crowd.begun() == Ids{1, 2, 12, 13});
  crowd.destroy(1);
  CHECK(crowd.begun() == Ids{2, 3, 12, 13});
}

TEST_CASE("of the visitors that could begin now, one of high priority is the first") {
  Crowd crowd(4);
  for (std::uint64_t id = 1; id <= 3; ++id) crowd.make(id, rpc::Priority::Normal, 1, 100);
  for (std::uint64_t id = 11; id <= 12; ++id) crowd.make(id, rpc::Priority::Normal, 2);
  for (std::uint64_t id = 21; id <= 23; ++id) crowd.make(id, rpc::Priority::High, 3);
  for (const std::uint64_t id : {1, 2}) crowd.destroy(id);
  CHECK(crowd.begun() == Ids{3, 11, 21, 22});  // The groups have their shares: 2, 1 and 2.
  crowd.destroy(3);
  CHECK(crowd.begun() == Ids{11, 21, 22, 23});
}

TEST_CASE("a job or visit that comes late has its part of the visitors at once, by weight") {
  Crowd crowd(4);
  for (std::uint64_t id = 1; id <= 8; ++id) crowd.make(id, rpc::Priority::Background, 1);
  CHECK(crowd.begun() == Ids{1, 2, 3, 4});
  for (std::uint64_t id = 11; id <= 18; ++id) crowd.make(id, rpc::Priority::Background, 2);
  CHECK(crowd.begun() == Ids{1, 2, 3, 4, 11, 12});
  for (std::uint64_t id = 21; id <= 28; ++id) crowd.make(id, rpc::Priority::Background, 3, 60);
  CHECK(crowd.begun() == Ids{1, 2, 3, 4, 11, 12, 21, 22, 23});  // Group 3 has 60/80 of 4 visitors.
  // Each group is brought to its share: 1, 1 and 3.
  for (const std::uint64_t id : {1, 2, 3}) crowd.destroy(id);
  CHECK(crowd.begun() == Ids{4, 11, 12, 21, 22, 23});
  for (const std::uint64_t id : {4, 11, 12}) crowd.destroy(id);
  CHECK(crowd.begun() == Ids{5, 13, 21, 22, 23});
  // The third group has no visitors left, so its share goes to the others.
  for (std::uint64_t id = 21; id <= 28; ++id) crowd.destroy(id);
  CHECK(crowd.begun() == Ids{5, 6, 13, 14});
}

TEST_CASE("a visitor that stops within a block is given the rest of it, once, before the bucket ends") {
  struct Seen {
    std::vector<GlobalId> documents;
    std::size_t calls = 0;
    std::size_t at_end = 0;
  };
  /// A visitor that takes one document per call.
  class Slow final : public visitors::Visitor {
   public:
    Slow(Seen& seen, visitors::VisitContext& context) : seen_(seen), context_(context) {}
    Result<std::size_t> visit_some(BucketId, std::string& docblock, std::size_t from) override {
      DocBlockReader reader(std::string_view(docblock).substr(from));
      seen_.documents.push_back(reader.next()->gid);
      ++seen_.calls;
      context_.note_processor_time(milliseconds(2));
      return docblock.size() - reader.remaining();
    }
    void end_bucket(BucketId, visitors::BucketDone done) override {
      seen_.at_end = seen_.documents.size();
      done({});
    }

   private:
    Seen& seen_;
    visitors::VisitContext& context_;
  };
  VisitorWorld world(8, 1, kSchema);
  for (int i = 0; i < 50; ++i) put_city(world, 1, i, 1000);
  Seen seen;
  world.nodes[0].registry->add("slow", [&seen](visitors::VisitContext& context, const visitors::Parameters&) {
    return Result<std::unique_ptr<visitors::Visitor>>(std::make_unique<Slow>(seen, context));
  });
  auto request = dump_of({BucketId(4, 1)});
  request.library = "slow";
  request.docblock_bytes = 10'000;  // Small, so that there are several blocks.
  REQUIRE(ask(world, request).status.is_ok());
  const auto reply = poll(world, 0);
  REQUIRE(reply.events.size() == 1);
  CHECK(reply.events[0].bucket_done);
  CHECK(reply.events[0].documents_matched == 50);
  CHECK(reply.processor_us == 100'000);
  CHECK(seen.at_end == 50);
  CHECK(seen.calls == 50);
  CHECK(std::set<GlobalId>(seen.documents.begin(), seen.documents.end()).size() == 50);
}

TEST_CASE("visitors for which there is no room to wait are refused with BUSY, those in the background first") {
  VisitorWorld world(9, 1, kSchema, {.cpus = 2});
  REQUIRE(world.nodes[0].runtime->tunables.set("storage.visitors_max", 1).is_ok());
  REQUIRE(world.nodes[0].runtime->tunables.set("storage.visitors_queued_max", 10).is_ok());
  for (int i = 0; i < 100; ++i) put_city(world, 1, i, 1000);
  std::uint64_t made = 0;
  const auto make = [&](rpc::Priority priority) {
    auto visitor = dump_of({BucketId(4, 1)});
    visitor.visitor_id = ++made;
    visitor.docblock_bytes = 4000;  // The visitor stays, as its events are never acknowledged.
    visitor.priority = priority;
    return ask(world, visitor).status.code();
  };
  const auto make_until_refused = [&](rpc::Priority priority) {
    int taken = 0;
    while (taken < 20 && make(priority) == StatusCode::Ok) ++taken;
    CHECK(make(priority) == StatusCode::Busy);
    return taken;
  };
  CHECK(make_until_refused(rpc::Priority::Background) == 6);  // One runs, five wait: 50 % of the queue.
  CHECK(make_until_refused(rpc::Priority::Normal) == 5);      // A second one runs, and nine wait: 90 %.
  CHECK(make_until_refused(rpc::Priority::High) == 2);        // A third one runs, and ten wait: 100 %.
  CHECK(make(rpc::Priority::Default) == StatusCode::Busy);
  CHECK(ask(world,
            [&] {  // An existing visitor is not refused when its client repeats the request.
              auto again = dump_of({BucketId(4, 1)});
              again.visitor_id = 1;
              return again;
            }())
            .status.is_ok());
  for (std::uint64_t id = 1; id <= made; ++id) {
    REQUIRE(ask(world, rpc::DestroyVisitor{.visitor_id = id}).status.is_ok());
  }
  CHECK(make(rpc::Priority::Background) == StatusCode::Ok);
}

TEST_CASE("a poll waits for events at most as long as asked") {
  VisitorWorld world(10, 1, kSchema);
  REQUIRE(world.nodes[0].runtime->tunables.set("storage.visitors_max", 1).is_ok());
  for (int i = 0; i < 100; ++i) put_city(world, 1, i, 1000);
  auto hog = dump_of({BucketId(4, 1)});
  hog.visitor_id = 1;
  hog.docblock_bytes = 4000;
  REQUIRE(ask(world, hog).status.is_ok());
  REQUIRE(ask(world, dump_of({BucketId(4, 1)})).status.is_ok());
  const MonotonicTime before = world.scheduler.clock().now();
  CHECK(poll(world, 0, seconds(3)).events.empty());
  const Duration waited = world.scheduler.clock().now() - before;
  CHECK(waited >= seconds(3));
  CHECK(waited < seconds(4));
}

}  // namespace
}  // namespace fjord
