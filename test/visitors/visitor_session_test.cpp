#include "fjord/visitors/visitor_session.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "visitors/forwarding_provider.h"
#include "visitors/visitor_world.h"

namespace fjord {
namespace {

using test::VisitorWorld;
using visitors::VisitorSession;
using visitors::VisitorSessionOptions;

constexpr const char* kSchema = "document city { field name type string { header } field text type string { body } }";

void put_cities(VisitorWorld& world, int count, std::size_t bytes = 100, const std::string& name = "city ") {
  for (int i = 0; i < count; ++i) {
    const std::string id = "id:t:city:n=" + std::to_string(i) + ":" + std::to_string(i);
    Document document(*world.types().find("city"), *DocumentId::parse(id));
    REQUIRE(document.set("name", name + std::to_string(i)).is_ok());
    REQUIRE(document.set("text", std::string(bytes, 'x')).is_ok());
    world.put(document);
  }
}

/// A visit and its results.
struct Visit {
  /// `snapshot`: the cluster information that the session begins with; null: that of the world.
  explicit Visit(VisitorWorld& w, VisitorSessionOptions options = {}, rpc::SnapshotHolder* snapshot = nullptr)
      : world(w) {
    visitors::VisitorSessionCallbacks callbacks;
    if (options.snapshot) {
      callbacks.on_bucket_dropped = [this](BucketId bucket) {
        ++dropped;
        for (const std::string& id : by_bucket[bucket]) --seen[id];
        by_bucket.erase(bucket);
        names.erase(bucket);
      };
    }
    callbacks.on_docblock = [this](BucketId bucket, std::string block) {
      DocBlockReader reader(block);
      while (const auto entry = reader.next()) {
        if (entry->removed) {
          ++removed[std::string(entry->id)];
          continue;
        }
        const auto view = DocumentView::open(world.types(), entry->header, entry->body);
        REQUIRE(view.has_value());
        ++seen[std::string(view->id())];
        by_bucket[bucket].emplace_back(view->id());
        names[bucket].insert(entry->header.find("new ") == std::string_view::npos ? "old" : "new");
      }
      if (on_block) on_block();
    };
    callbacks.on_bucket_done = [this](BucketId bucket, const std::string&) { ++done[bucket]; };
    callbacks.on_finished = [this](Status s) { status = std::move(s); };
    callbacks.on_processor_time = [this] { heard_us = session->progress().processor_us; };
    session = std::make_unique<VisitorSession>(std::move(options), std::move(callbacks), world.transport,
                                               snapshot == nullptr ? world.snapshot : *snapshot,
                                               world.scheduler.clock(), Random(5), *world.executor);
    world.executor->post([this] { session->start(); });
  }
  ~Visit() { session.reset(); }

  bool run(Duration limit = seconds(600)) {
    return world.run_until([this] { return status.has_value(); }, limit);
  }

  VisitorWorld& world;
  std::map<std::string, int> seen;
  std::map<std::string, int> removed;
  std::map<BucketId, int> done;
  std::map<BucketId, std::vector<std::string>> by_bucket;  ///< Ids that the visit returned and did not drop.
  std::map<BucketId, std::set<std::string>> names;         ///< The beginnings of the names of these documents: "new" or
                                                           ///< not.
  int dropped = 0;
  std::uint64_t heard_us = 0;  ///< Processor time of the visitors, in us.
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

TEST_CASE("visits for which there is no room on the storage nodes wait, and are complete") {
  VisitorWorld world(1, 3, kSchema);
  put_cities(world, 300);
  for (auto& node : world.nodes) {
    REQUIRE(node.runtime->tunables.set("storage.visitors_max", 1).is_ok());
    REQUIRE(node.runtime->tunables.set("storage.visitors_queued_max", 1).is_ok());
  }
  std::vector<std::unique_ptr<Visit>> visits;
  for (int i = 0; i < 8; ++i) visits.push_back(std::make_unique<Visit>(world));
  for (const auto& visit : visits) {
    REQUIRE(visit->run());
    CHECK(visit->status->is_ok());
    CHECK(each_once(*visit, 300));
  }
  std::uint64_t refused = 0;
  for (auto& node : world.nodes) refused += node.runtime->metrics.counter("fjord_visitor_refused_total", "").value();
  CHECK(refused > 0);
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

TEST_CASE("a client hears what processors have worked for visitors that are not done") {
  /// Reports 2 ms of processor time per document, and never ends.
  class Measured final : public visitors::Visitor {
   public:
    explicit Measured(visitors::VisitContext& context) : context_(context) {}
    Result<std::size_t> visit_some(BucketId, std::string& docblock, std::size_t) override {
      DocBlockReader reader(docblock);
      while (reader.next()) context_.note_processor_time(milliseconds(2));
      return docblock.size();
    }
    void end_bucket(BucketId, visitors::BucketDone done) override { done_.push_back(std::move(done)); }

   private:
    visitors::VisitContext& context_;
    std::vector<visitors::BucketDone> done_;
  };
  VisitorWorld world(2, 3, kSchema);
  put_cities(world, 300);
  for (auto& node : world.nodes) {
    node.registry->add("measured", [](visitors::VisitContext& context, const visitors::Parameters&) {
      return Result<std::unique_ptr<visitors::Visitor>>(std::make_unique<Measured>(context));
    });
  }
  VisitorSessionOptions options;
  options.library = "measured";
  options.visitors_per_node = 64;
  options.buckets_per_visitor = 1;
  options.poll_wait = milliseconds(100);
  for (auto& node : world.nodes) REQUIRE(node.runtime->tunables.set("storage.visitors_max", 64).is_ok());
  Visit visit(world, options);
  world.scheduler.run_for(seconds(1));
  CHECK_FALSE(visit.status.has_value());
  CHECK(visit.done.empty());
  CHECK(visit.session->progress().processor_us == 600'000);
  CHECK(visit.heard_us == 600'000);
  CHECK(visit.session->progress().documents_open == 300);
  CHECK(visit.session->progress().documents_read == 0);
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

/// An engine that has lost part of each bucket; it knows this from the start, or finds it when the bucket is read.
class HasLost final : public test::ForwardingProvider {
 public:
  HasLost(std::unique_ptr<spi::PersistenceProvider> inner, bool knows_it)
      : ForwardingProvider(std::move(inner)), knows_it_(knows_it) {}

  Result<std::unique_ptr<spi::DocumentIterator>> iterate(BucketId bucket, const spi::IterateOptions& options) override {
    knows_it_ = true;
    return ForwardingProvider::iterate(bucket, options);
  }
  Result<bool> is_damaged(BucketId) const override { return knows_it_; }

 private:
  bool knows_it_;
};

void lose_something(VisitorWorld::StorageNode& node, bool knows_it) {
  for (auto& provider : node.buckets->providers) provider = std::make_unique<HasLost>(std::move(provider), knows_it);
}

TEST_CASE("a replica that has lost something since it was listed is not read, one that was listed though it has is") {
  VisitorWorld world(31, 2, kSchema);
  put_cities(world, 200);
  const bool knows_it = GENERATE(true, false);
  lose_something(world.nodes[0], knows_it);
  const bool has_another = GENERATE(true, false);
  if (!has_another) lose_something(world.nodes[1], knows_it);
  world.even_damaged = !has_another;
  VisitorSessionOptions options;
  options.bucket_tries_max = 2;  // The second try goes to another replica, although the distributor has heard nothing.
  Visit visit(world, options);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 200));
  const auto by_node = visit.session->progress().buckets_by_node;
  CHECK(by_node.contains(1));
  CHECK(by_node.contains(0) == !has_another);
}

TEST_CASE("a node that keeps a visit waiting is relieved of its buckets, once") {
  const bool is_slow = GENERATE(true, false);
  const auto backup_after = GENERATE(Duration(0), Duration(seconds(1)));
  CAPTURE(is_slow, backup_after.count());
  VisitorWorld world(3, 3, kSchema);
  put_cities(world, 300);
  if (is_slow) world.transport.slow_down("storage1", seconds(4));
  VisitorSessionOptions options;
  options.visitors_per_node = 1;
  options.buckets_per_visitor = 1;
  options.backup_after = backup_after;
  const MonotonicTime start = world.scheduler.clock().now();
  Visit visit(world, options);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 300));
  const visitors::VisitProgress progress = visit.session->progress();
  CHECK(progress.buckets_done == 16);
  const Duration took = world.scheduler.clock().now() - start;
  if (is_slow && backup_after > Duration(0)) {
    CHECK(progress.buckets_relieved > 0);
    CHECK(progress.buckets_relieved <= 6);  // Each bucket is relieved at most once.
    CHECK(took < seconds(4));
  } else {
    CHECK(progress.buckets_relieved == 0);
    CHECK((is_slow ? took > seconds(30) : took < seconds(1)));
  }
}

TEST_CASE("a bucket that only one node has is begun again there, but not a third time") {
  VisitorWorld world(3, 1, kSchema);
  world.info.storage_addresses.push_back("storage1");  // storage1 holds no bucket, so it is idle.
  world.info.state = VisitorWorld::state_string(2);
  ++world.info.state_version;
  world.update(world.snapshot);
  put_cities(world, 100);
  world.transport.slow_down("storage0", seconds(4));
  VisitorSessionOptions options;
  options.visitors_per_node = 16;
  options.buckets_per_visitor = 1;
  options.backup_after = seconds(1);
  Visit visit(world, options);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 100));
  CHECK(visit.session->progress().buckets_relieved == 16);
  CHECK(visit.session->progress().buckets_repeated == 16);
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

TEST_CASE(
    "a snapshot has all documents of a bucket as they were at one moment, whatever is written and whoever fails") {
  VisitorWorld world(7, 3, kSchema);
  put_cities(world, 800, 2000, "old ");
  VisitorSessionOptions options;
  options.docblock_bytes = 10'000;
  options.visitors_per_node = 2;
  options.snapshot = true;
  SECTION("and without it there are mixtures") { options.snapshot = false; }
  const bool is_snapshot = options.snapshot;
  Visit visit(world, options);
  int blocks = 0;
  visit.on_block = [&] {
    ++blocks;
    if (blocks == 12) world.scheduler.outside().post([&] { put_cities(world, 800, 2000, "new "); });
    if (blocks == 30 && is_snapshot) world.scheduler.outside().post([&] { world.kill_node(1, true); });
  };
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 800));
  std::size_t mixed = 0;
  std::set<std::string> all;
  for (const auto& [bucket, words] : visit.names) {
    mixed += words.size() > 1 ? 1 : 0;
    all.insert(words.begin(), words.end());
  }
  CHECK(all == std::set<std::string>{"new", "old"});
  CHECK((mixed == 0) == is_snapshot);
  CHECK((visit.dropped > 0) == is_snapshot);
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

TEST_CASE("a bucket that was listed is not empty because its distributor knows nothing of it for a while") {
  VisitorWorld world(3, 3, kSchema);
  put_cities(world, 300);
  world.transport.lose_answers("createVisitor", 3);
  for (std::uint64_t i = 0; i < 16; ++i) world.hidden.insert(BucketId(4, i));
  world.scheduler.outside().post_after(seconds(20), [&] { world.hidden.clear(); });
  Visit visit(world);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 300));
}

TEST_CASE("a list of buckets that was made under two states is made anew") {
  VisitorWorld world(3, 3, kSchema);
  put_cities(world, 300);
  int lists = 0;
  world.transport.on_reply = [&](const rpc::Request& request, rpc::Reply& reply) {
    const auto* asked = std::get_if<rpc::GetBucketNodes>(&request);
    if (asked == nullptr || !asked->all || ++lists > 1) return;
    auto& buckets = std::get<rpc::GetBucketNodesReply>(reply).buckets;
    REQUIRE(buckets.size() == 16);
    buckets.pop_back();  // The bucket belongs to another distributor, which did not know that yet when it was asked.
    buckets.back().status = Status(StatusCode::WrongDistribution, "another distributor owns it");
  };
  Visit visit(world);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 300));
  CHECK(lists == 2);
}

TEST_CASE("of buckets that were joined since, each part is given for itself") {
  VisitorWorld world(3, 3, kSchema);
  put_cities(world, 300);
  world.change_bits(2);
  world.update(world.snapshot);
  VisitorSessionOptions options;
  options.deduplicate = false;
  options.buckets.emplace();
  for (std::uint64_t i = 0; i < 16; ++i) options.buckets->emplace_back(4, i);
  Visit visit(world, options);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 300));
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
  world.kill_node(0, true);  // The session still has cluster state 1.
  Visit visit(world);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 50));
}

TEST_CASE("a session without a cluster state asks a bootstrap address, and begins as soon as that answers") {
  VisitorWorld world(10, 2, kSchema);
  put_cities(world, 50);
  rpc::SnapshotHolder snapshot;
  VisitorSessionOptions options;
  options.bootstrap = {"distributor"};
  const MonotonicTime start = world.scheduler.clock().now();
  Visit visit(world, options, &snapshot);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 50));
  // The visit takes a dozen messages of 1 ms each. Without an event the session would look only after 500 ms.
  CHECK(world.scheduler.clock().now() - start < milliseconds(100));
}

TEST_CASE("a visit that is given documents makes progress, however long a bucket takes") {
  VisitorWorld world(10, 1, kSchema);
  for (int i = 0; i < 100; ++i) {
    const std::string id = "id:t:city:n=1:" + std::to_string(i);
    Document document(*world.types().find("city"), *DocumentId::parse(id));
    REQUIRE(document.set("text", std::string(2000, 'x')).is_ok());
    world.put(document);
  }
  world.transport.slow_down("storage0", milliseconds(200));
  VisitorSessionOptions options;
  options.docblock_bytes = 4000;
  options.no_progress_limit = seconds(1);
  const MonotonicTime start = world.scheduler.clock().now();
  Visit visit(world, options);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 100));
  CHECK(visit.done.size() == 1);
  CHECK(world.scheduler.clock().now() - start > 2 * options.no_progress_limit);
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

VisitorSessionOptions slice_options(std::uint64_t index, std::uint64_t count) {
  VisitorSessionOptions options;
  options.slice = visitors::PositionRange::slice(index, count);
  options.follow_bits = true;
  return options;
}

TEST_CASE("slices are disjoint and complete, any number of them, also while the number of bits changes") {
  const std::uint64_t slices = GENERATE(1, 2, 3, 7, 16, 50);
  const unsigned bits = GENERATE(4u, 6u, 2u);
  VisitorWorld world(13, 2, kSchema);
  put_cities(world, 300);
  std::map<std::string, int> seen;
  for (std::uint64_t i = 0; i < slices; ++i) {
    if (i == slices / 2) world.change_bits(bits);
    Visit visit(world, slice_options(i, slices));
    REQUIRE(visit.run());
    REQUIRE(visit.status->is_ok());
    for (const auto& [id, times] : visit.seen) seen[id] += times;
  }
  CHECK(seen.size() == 300);
  CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& entry) { return entry.second == 1; }));
}

TEST_CASE("an interrupted visit goes on from its token and gives what is missing, after splits and joins too") {
  const unsigned bits = GENERATE(4u, 6u, 3u);
  VisitorWorld world(14, 2, kSchema);
  put_cities(world, 800, 2000);
  VisitorSessionOptions options;
  options.docblock_bytes = 10'000;
  options.visitors_per_node = 1;
  options.buckets_per_visitor = 1;
  options.follow_bits = true;
  std::map<std::string, int> seen;
  std::string token;
  {
    Visit first(world, options);
    REQUIRE(world.run_until([&] { return first.done.size() == 5; }, seconds(60)));
    token = first.session->cursor().to_text();
    // A client may keep the documents of unfinished buckets; this one drops them.
    const auto parsed = visitors::SessionCursor::parse(token);
    for (const auto& [id, times] : first.seen) {
      if (parsed->done.contains(visitors::position_of(DocumentId::parse(id)->gid()))) seen[id] += times;
    }
  }
  CHECK(seen.size() > 100);
  world.change_bits(bits);
  options.resume = *visitors::SessionCursor::parse(token);
  Visit second(world, options);
  REQUIRE(second.run());
  CHECK(second.status->is_ok());
  CHECK(second.session->progress().skipped_as_done > 0);
  for (const auto& [id, times] : second.seen) seen[id] += times;
  CHECK(seen.size() == 800);
  CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& entry) { return entry.second == 1; }));
}

TEST_CASE("a token that covers everything leaves nothing to visit") {
  VisitorWorld world(15, 1, kSchema);
  put_cities(world, 40);
  VisitorSessionOptions options;
  Visit first(world, options);
  REQUIRE(first.run());
  options.resume = first.session->cursor();
  Visit second(world, options);
  REQUIRE(second.run());
  CHECK(second.status->is_ok());
  CHECK(second.seen.empty());
}

TEST_CASE("a token of another visit is refused") {
  VisitorWorld world(16, 1, kSchema);
  put_cities(world, 3);
  VisitorSessionOptions options;
  options.resume = visitors::SessionCursor{.question = options.fingerprint(), .done = {}};
  options.selection = "city.name == \"city 1\"";
  Visit visit(world, options);
  REQUIRE(visit.run());
  CHECK(visit.status->code() == StatusCode::InvalidArgument);
  CHECK(world.transport.calls("getBucketNodes") == 0);  // A refused visit asks for nothing.
}

TEST_CASE("a visit follows more distribution bits while it runs, and gives each document once") {
  VisitorWorld world(17, 2, kSchema);
  put_cities(world, 400, 2000);
  VisitorSessionOptions options;
  options.docblock_bytes = 10'000;
  options.visitors_per_node = 1;
  options.buckets_per_visitor = 1;
  options.follow_bits = true;
  Visit visit(world, options);
  int blocks = 0;
  visit.on_block = [&] {
    if (++blocks == 8) world.scheduler.outside().post([&] { world.change_bits(6); });
  };
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 400));
  CHECK(visit.session->progress().buckets_done == visit.session->progress().buckets_total);
}

TEST_CASE("a part of a bucket that never held a document is done when a visit follows more distribution bits") {
  VisitorWorld world(17, 2, kSchema);
  for (int i = 0; i < 400; ++i) {
    const std::string id = "id:t:city:n=" + std::to_string(i % 16) + ":" + std::to_string(i);
    Document document(*world.types().find("city"), *DocumentId::parse(id));
    REQUIRE(document.set("text", std::string(2000, 'x')).is_ok());
    world.put(document);
  }
  // With 6 bits all documents are in buckets 0 to 15, so the others stay hidden.
  for (std::uint64_t i = 16; i < 64; ++i) world.hidden.insert(BucketId(6, i));
  VisitorSessionOptions options;
  options.docblock_bytes = 10'000;
  options.visitors_per_node = 1;
  options.buckets_per_visitor = 1;
  options.follow_bits = true;
  Visit visit(world, options);
  int blocks = 0;
  visit.on_block = [&] {
    if (++blocks == 8) world.scheduler.outside().post([&] { world.change_bits(6); });
  };
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 400));
  CHECK(visit.session->progress().buckets_total > 16);  // Some buckets were visited in parts.
  CHECK(visit.session->progress().buckets_done == visit.session->progress().buckets_total);
}

TEST_CASE("a selection that names its documents' location reads only the bucket that can hold them") {
  const bool follow_bits = GENERATE(true, false);
  VisitorWorld world(18, 2, kSchema);
  put_cities(world, 64);
  VisitorSessionOptions options;
  options.selection = "id.user == 5";
  options.follow_bits = follow_bits;
  Visit visit(world, options);
  REQUIRE(visit.run());
  CHECK(visit.status->is_ok());
  CHECK(each_once(visit, 1));
  CHECK(visit.session->progress().buckets_done == 1);
  CHECK(visit.session->progress().skipped_by_selection == 15);
  CHECK(visit.session->progress().located == follow_bits);
}

TEST_CASE("a time range gives the versions that were written in it") {
  VisitorWorld world(19, 1, kSchema);
  put_cities(world, 20);
  VisitorSessionOptions options;
  options.from = Timestamp{world.last_timestamp() - 9};
  options.to = Timestamp{world.last_timestamp() - 5};
  Visit visit(world, options);
  REQUIRE(visit.run());
  CHECK(each_once(visit, 5));
  CHECK(visit.seen.contains("id:t:city:n=10:10"));
  CHECK(visit.seen.contains("id:t:city:n=14:14"));
}

TEST_CASE("removed documents are given when they are asked for, those of tokens and of other types are not") {
  VisitorWorld world(20, 1, kSchema);
  put_cities(world, 10);
  world.remove("id:t:city:n=3:3");
  world.remove("id:t:town:n=4:4");
  world.remove_as("id:t:city:n=3:3", "token:0123456789abcdef01234567:0123456789abcdef0123456789abcdef:1");
  VisitorSessionOptions options;
  options.selection = "city and city.name != \"city 5\"";
  SECTION("asked for") {
    options.include_removed = true;
    Visit visit(world, options);
    REQUIRE(visit.run());
    CHECK(each_once(visit, 8));
    CHECK(visit.removed == std::map<std::string, int>{{"id:t:city:n=3:3", 1}});
  }
  SECTION("not asked for") {
    Visit visit(world, options);
    REQUIRE(visit.run());
    CHECK(each_once(visit, 8));
    CHECK(visit.removed.empty());
  }
}

TEST_CASE("progress tells what was read, what matched and from where") {
  VisitorWorld world(21, 2, kSchema);
  put_cities(world, 64);
  VisitorSessionOptions options;
  options.selection = "city.name == \"city 5\"";
  Visit visit(world, options);
  REQUIRE(visit.run());
  const visitors::VisitProgress progress = visit.session->progress();
  CHECK(progress.documents_read == 64);
  CHECK(progress.documents_matched == 1);
  CHECK(progress.buckets_by_node.size() == 2);
}

}  // namespace
}  // namespace fjord
