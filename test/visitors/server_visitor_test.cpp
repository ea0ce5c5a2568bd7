// How the storage node drives a visitor over its buckets, and how visitors end.

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "visitors/service_calls.h"

namespace fjord {
namespace {

using test::ask;
using test::dump_of;
using test::poll;
using test::put_city;
using test::VisitorWorld;

const BucketId kBucket(4, 1);

/// Adds the visitor library `name`; `make` makes each of its visitors from the visitor's context.
template <typename Make>
void add_library(VisitorWorld& world, const std::string& name, Make make) {
  world.nodes[0].registry->add(name, [make](visitors::VisitContext& context, const visitors::Parameters&) {
    return Result<std::unique_ptr<visitors::Visitor>>(make(context));
  });
}

/// A stripe whose tasks wait until the test runs them.
class ManualStripe final : public Executor {
 public:
  /// Replaces the stripe of the bucket on storage node 0, which keeps the new one.
  static ManualStripe& take_over(VisitorWorld& world, BucketId bucket) {
    auto made = std::make_unique<ManualStripe>();
    ManualStripe& stripe = *made;
    world.nodes[0].buckets->stripes[world.nodes[0].buckets->stripe_of(bucket)] = std::move(made);
    return stripe;
  }
  void post(Task task) override { tasks_.push_back(std::move(task)); }
  void post_after(Duration, Task task) override { post(std::move(task)); }
  bool is_current() const override { return false; }

  std::size_t waiting() const { return tasks_.size(); }
  void run_all() {
    while (!tasks_.empty()) {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }

 private:
  std::deque<Task> tasks_;
};

TEST_CASE("a block that a visitor sends at the end of a bucket reaches the client before the bucket is done") {
  /// Sends a block when all documents were visited, and needs longer to finish the bucket.
  class SendsAtEnd final : public visitors::Visitor {
   public:
    explicit SendsAtEnd(visitors::VisitContext& context) : context_(context) {}
    Status visit(BucketId, std::string) override { return Status::ok(); }
    void end_bucket(BucketId bucket, visitors::BucketDone done) override {
      context_.send(bucket, "summary");
      done_ = std::move(done);
    }

   private:
    visitors::VisitContext& context_;
    visitors::BucketDone done_;
  };
  VisitorWorld world(1, 1, test::kCitySchema);
  put_city(world, 1, 1);
  add_library(world, "sends at end", [](auto& context) { return std::make_unique<SendsAtEnd>(context); });
  auto create = dump_of({kBucket});
  create.library = "sends at end";
  REQUIRE(ask(world, create).status.is_ok());
  const auto reply = poll(world, 0);
  REQUIRE(reply.events.size() == 1);
  CHECK(reply.events[0].docblock == "summary");
  CHECK_FALSE(reply.events[0].bucket_done);
  CHECK_FALSE(reply.finished);
}

TEST_CASE("a visitor object is destroyed after its last bucket, although its client still fetches the events") {
  /// A visitor that passes documents on.
  class Flagged final : public visitors::Visitor {
   public:
    Flagged(visitors::VisitContext& context, bool& is_destroyed) : context_(context), is_destroyed_(is_destroyed) {}
    ~Flagged() override { is_destroyed_ = true; }
    Status visit(BucketId bucket, std::string docblock) override {
      context_.send(bucket, std::move(docblock));
      return Status::ok();
    }

   private:
    visitors::VisitContext& context_;
    bool& is_destroyed_;
  };
  bool is_destroyed = false;
  VisitorWorld world(1, 1, test::kCitySchema);
  put_city(world, 1, 1);
  add_library(world, "flagged", [&](auto& context) { return std::make_unique<Flagged>(context, is_destroyed); });
  auto create = dump_of({kBucket});
  create.library = "flagged";
  REQUIRE(ask(world, create).status.is_ok());
  world.scheduler.run_for(seconds(1));
  CHECK(is_destroyed);
  CHECK(poll(world, 0).events.size() == 2);
}

TEST_CASE("a visitor that is destroyed early abandons its open buckets, and its readers are closed once") {
  /// A bucket reader that has no documents and counts how often it is closed.
  class CountsCloses final : public visitors::BucketReader {
   public:
    Result<bool> next(const visitors::BucketOnNode&, DocBlockBuilder&, std::size_t) override { return false; }
    void close() override { ++closes; }
    int closes = 0;
  };
  struct Seen {
    std::shared_ptr<CountsCloses> reader = std::make_shared<CountsCloses>();
    std::vector<BucketId> begun;
    std::vector<BucketId> abandoned;
  };
  class Recording final : public visitors::Visitor {
   public:
    explicit Recording(Seen& seen) : seen_(seen) {}
    Status begin_bucket(BucketId bucket) override {
      seen_.begun.push_back(bucket);
      return Status::ok();
    }
    std::shared_ptr<visitors::BucketReader> make_reader(BucketId) override { return seen_.reader; }
    void abandon_bucket(BucketId bucket) override { seen_.abandoned.push_back(bucket); }

   private:
    Seen& seen_;
  };
  Seen seen;
  VisitorWorld world(1, 1, test::kCitySchema);
  put_city(world, 1, 1);
  add_library(world, "recording", [&](auto&) { return std::make_unique<Recording>(seen); });
  ManualStripe& stripe = ManualStripe::take_over(world, kBucket);
  auto create = dump_of({kBucket});
  create.library = "recording";
  REQUIRE(ask(world, create).status.is_ok());
  world.scheduler.run_for(seconds(1));
  CHECK(seen.begun == std::vector<BucketId>{kBucket});
  REQUIRE(stripe.waiting() == 1);  // The read at the end of the bucket waits; it closes the reader.
  REQUIRE(ask(world, rpc::DestroyVisitor{.visitor_id = 7}).status.is_ok());
  world.scheduler.run_for(seconds(1));
  CHECK(seen.abandoned == std::vector<BucketId>{kBucket});
  REQUIRE(stripe.waiting() == 2);  // The visitor also closes the reader, because it has not received the block.
  stripe.run_all();
  CHECK(seen.reader->closes == 1);
}

TEST_CASE("a visitor whose turn is over lets the next one work, and goes on within its block later") {
  constexpr int kDocuments = 12;
  static constexpr Duration kWork = milliseconds(4);
  /// Shows the scheduler's time plus the time of the visitors' work.
  class WorkClock final : public Clock {
   public:
    explicit WorkClock(const Clock& inner) : inner_(inner) {}
    MonotonicTime now() const override { return inner_.now() + worked; }
    WallTime wall_now() const override { return inner_.wall_now(); }
    Duration worked{0};

   private:
    const Clock& inner_;
  };
  /// A visitor that takes one document per call; each call costs time.
  class Works final : public visitors::Visitor {
   public:
    Works(int number, std::vector<int>& log, WorkClock& clock) : number_(number), log_(log), clock_(clock) {}
    Result<std::size_t> visit_some(BucketId, std::string& docblock, std::size_t from) override {
      DocBlockReader reader(std::string_view(docblock).substr(from));
      REQUIRE(reader.next());
      log_.push_back(number_);
      clock_.worked += kWork;
      return docblock.size() - reader.remaining();
    }

   private:
    int number_;
    std::vector<int>& log_;
    WorkClock& clock_;
  };
  VisitorWorld world(1, 1, test::kCitySchema);
  VisitorWorld::StorageNode& node = world.nodes[0];
  for (int i = 0; i < kDocuments; ++i) put_city(world, 1, i);
  const Runtime& of_node = node.runtime->runtime;
  WorkClock clock(of_node.clock);
  MetricRegistry metrics;
  TunableRegistry tunables;
  Runtime working{clock, of_node.scheduler, of_node.bulk, of_node.env, of_node.random, metrics, tunables};
  node.service = std::make_unique<visitors::VisitorService>(visitors::VisitorServiceOptions{}, working, *node.buckets,
                                                            world.snapshot, *node.registry);
  world.transport.serve("storage0", node.service.get());
  REQUIRE(tunables.set("storage.visitors_max", 1).is_ok());  // The visitors share one thread.
  int made = 0;
  std::vector<int> log;
  add_library(world, "works", [&](auto&) { return std::make_unique<Works>(++made, log, clock); });
  ManualStripe& stripe = ManualStripe::take_over(world, kBucket);
  for (const std::uint64_t id : {1, 2}) {
    auto create = dump_of({kBucket});
    create.library = "works";
    create.visitor_id = id;
    create.group = id;
    REQUIRE(ask(world, create).status.is_ok());
  }
  world.scheduler.run_for(milliseconds(10));
  REQUIRE(stripe.waiting() == 2);
  stripe.run_all();  // Now both visitors have their blocks.
  world.scheduler.run_for(milliseconds(10));
  // Three documents fill a turn of 10 ms; how the later turns alternate is the pool's affair.
  REQUIRE(log.size() == 2 * kDocuments);
  CHECK(std::vector<int>(log.begin(), log.begin() + 6) == std::vector<int>{1, 1, 1, 2, 2, 2});
  CHECK(std::count(log.begin(), log.end(), 1) == kDocuments);
  node.service.reset();
}

/// Makes the executors of another scheduler. The executor `name` runs `on_end` while it is destroyed, as a real
/// executor waits for its thread while others go on, and counts the tasks that it is given during that time.
class SlowToEnd final : public Scheduler {
 public:
  SlowToEnd(Scheduler& inner, std::string name) : inner_(inner), name_(std::move(name)) {}

  std::unique_ptr<Executor> make_executor(const std::string& name) override {
    auto executor = inner_.make_executor(name);
    if (name != name_) return executor;
    return std::make_unique<Ending>(std::move(executor), *this);
  }

  std::function<void()> on_end;
  int posts_at_end = 0;

 private:
  class Ending final : public Executor {
   public:
    Ending(std::unique_ptr<Executor> inner, SlowToEnd& owner) : inner_(std::move(inner)), owner_(owner) {}
    ~Ending() override {
      is_ending_ = true;
      if (owner_.on_end) owner_.on_end();
    }
    void post(Task task) override {
      if (is_ending_) ++owner_.posts_at_end;
      inner_->post(std::move(task));
    }
    void post_after(Duration delay, Task task) override { inner_->post_after(delay, std::move(task)); }
    bool is_current() const override { return inner_->is_current(); }

   private:
    std::unique_ptr<Executor> inner_;
    SlowToEnd& owner_;
    bool is_ending_ = false;
  };

  Scheduler& inner_;
  std::string name_;
};

TEST_CASE("a stripe that ends a read while the service is destroyed posts nothing to the service's executor") {
  VisitorWorld world(1, 1, test::kCitySchema);
  VisitorWorld::StorageNode& node = world.nodes[0];
  put_city(world, 1, 1);
  const Runtime& of_node = node.runtime->runtime;
  SlowToEnd scheduler(of_node.scheduler, "visitors");
  MetricRegistry metrics;
  TunableRegistry tunables;
  Runtime runtime{of_node.clock, scheduler, of_node.bulk, of_node.env, of_node.random, metrics, tunables};
  node.service = std::make_unique<visitors::VisitorService>(visitors::VisitorServiceOptions{}, runtime, *node.buckets,
                                                            world.snapshot, *node.registry);
  ManualStripe& stripe = ManualStripe::take_over(world, kBucket);
  rpc::Request request = rpc::ReadChanges{
      .buckets = {{.bucket = kBucket}}, .selection = {}, .field_set = {}, .max_bytes = 0, .schema_version = 0};
  rpc::Responder respond = [](const rpc::Reply&) {};
  REQUIRE(node.service->handle(request, respond));
  world.scheduler.run_for(seconds(1));
  REQUIRE(stripe.waiting() == 1);
  scheduler.on_end = [&] { stripe.run_all(); };
  node.service.reset();
  CHECK(stripe.waiting() == 0);
  CHECK(scheduler.posts_at_end == 0);
}

}  // namespace
}  // namespace fjord
