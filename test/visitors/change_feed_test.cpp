#include "fjord/visitors/change_feed.h"

#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "fjord/common/random.h"
#include "visitors/forwarding_provider.h"
#include "visitors/service_calls.h"
#include "visitors/visitor_world.h"

namespace fjord {
namespace {

using test::VisitorWorld;
using visitors::ChangeCursor;
using visitors::ChangeFeed;
using visitors::ChangeFeedOptions;
using visitors::ChangePosition;

constexpr const char* kSchema = R"(
document city { field name type string { header } field text type string { body } }
document town { field name type string { header } }
)";

Document city(VisitorWorld& world, int i, const std::string& name) {
  const std::string id = "id:t:city:n=" + std::to_string(i) + ":" + std::to_string(i);
  Document document(*world.types().find("city"), *DocumentId::parse(id));
  REQUIRE(document.set("name", name).is_ok());
  REQUIRE(document.set("text", std::string(100, 'x')).is_ok());
  return document;
}
std::string id_of(int i) { return "id:t:city:n=" + std::to_string(i) + ":" + std::to_string(i); }

/// A subscriber that keeps a copy of the documents, and counts its events.
struct Subscriber {
  explicit Subscriber(VisitorWorld& w, ChangeFeedOptions options = {},
                      std::function<void(const ChangeFeed&)> on_listed = nullptr)
      : world(w) {
    options.poll_interval = milliseconds(100);
    visitors::ChangeFeedCallbacks callbacks;
    callbacks.on_changes = [this](BucketId, const std::string& block, bool) {
      Timestamp before{0};
      DocBlockReader reader(block);
      while (const auto entry = reader.next()) {
        in_order = in_order && before <= entry->timestamp;
        before = entry->timestamp;
        ++told;
        if (entry->removed) {
          copy.erase(std::string(entry->id));
          removes.emplace_back(entry->id);
          continue;
        }
        const auto view = DocumentView::open(world.types(), entry->header, entry->body);
        REQUIRE(view.has_value());
        copy[std::string(view->id())] = entry->timestamp.us;
      }
    };
    if (on_listed) callbacks.on_listed = [this, on_listed] { on_listed(*feed); };
    callbacks.on_caught_up = [this] { ++rounds; };
    callbacks.on_resync = [this](Timestamp t) { resync = t; };
    callbacks.on_end = [this](const Status& s) { end = s; };
    feed = std::make_unique<ChangeFeed>(std::move(options), std::move(callbacks), world.transport, world.snapshot,
                                        world.scheduler.clock(), Random(7), *world.executor);
    world.executor->post([this] { feed->start(); });
  }

  /// Runs until the subscriber has looked at all buckets once more.
  bool catch_up() {
    const int until = rounds + 2;
    return world.run_until([&] { return rounds >= until || resync || end; }, seconds(60));
  }
  int told_since(int before) const { return told - before; }

  VisitorWorld& world;
  std::map<std::string, std::uint64_t> copy;
  std::vector<std::string> removes;
  int told = 0;
  int rounds = 0;
  bool in_order = true;
  std::optional<Timestamp> resync;
  std::optional<Status> end;
  std::unique_ptr<ChangeFeed> feed;
};

/// An engine that finds one entry lost when entries are read. It returns the entries before that one, and skips it from
/// then on.
class LosesOneWhenRead final : public test::ForwardingProvider {
 public:
  using ForwardingProvider::ForwardingProvider;

  Result<std::unique_ptr<spi::DocumentIterator>> iterate(BucketId bucket, const spi::IterateOptions& options) override {
    if (damaged_ == bucket) return Status(StatusCode::Corruption, "something was lost");
    return ForwardingProvider::iterate(bucket, options);
  }
  Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                   std::size_t max_bytes) override {
    if (!damaged_ && gids.size() > 1) {
      damaged_ = bucket;
      lost_ = gids[1];
      return ForwardingProvider::read_entries(bucket, gids.first(1), into, max_bytes);
    }
    if (damaged_ == bucket && gids[0] == lost_) return 1;
    return ForwardingProvider::read_entries(bucket, gids.first(1), into, max_bytes);
  }
  Result<bool> is_damaged(BucketId bucket) const override { return damaged_ == bucket; }
  bool has_lost() const { return damaged_.has_value(); }

 private:
  std::optional<BucketId> damaged_;
  GlobalId lost_;
};

TEST_CASE("a subscriber is told of every document once, and then of each change") {
  VisitorWorld world(1, 2, kSchema);
  for (int i = 0; i < 100; ++i) world.put(city(world, i, "old"));
  ChangeFeedOptions options;
  options.block_bytes = 2000;  // Small, so that a bucket has many pages.
  options.buckets_per_call = 3;
  Subscriber subscriber(world, options);
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.copy.size() == 100);
  CHECK(subscriber.told == 100);
  world.put(city(world, 3, "new"));
  world.put(city(world, 200, "first"));
  world.remove(id_of(4));
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.told == 103);
  CHECK(subscriber.copy.size() == 100);
  CHECK(subscriber.removes == std::vector<std::string>{id_of(4)});
  CHECK(subscriber.in_order);
}

TEST_CASE("what may still be overtaken is not told before it is stable") {
  VisitorWorld world(2, 1, kSchema);
  for (int i = 0; i < 10; ++i) world.put(city(world, i, "old"));
  world.stable_us = world.last_timestamp() - 4;
  Subscriber subscriber(world);
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.told == 6);
  world.stable_us = 0;
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.told == 10);
}

TEST_CASE("a document that no longer matches is told of as removed, others are not told of") {
  VisitorWorld world(3, 1, kSchema);
  world.put(city(world, 1, "wanted"));
  world.put(city(world, 2, "wanted"));
  ChangeFeedOptions options;
  options.selection = "city and city.name == \"wanted\"";
  Subscriber subscriber(world, options);
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.copy.size() == 2);
  world.put(city(world, 2, "unwanted"));
  world.remove("id:t:town:n=1:1");
  world.remove_as(id_of(1), "token:0123456789abcdef01234567:0123456789abcdef0123456789abcdef:1");
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.copy.size() == 1);
  CHECK(subscriber.removes == std::vector<std::string>{id_of(2)});
}

TEST_CASE("a token goes on in another process, after its text was read again") {
  VisitorWorld world(4, 2, kSchema);
  for (int i = 0; i < 50; ++i) world.put(city(world, i, "old"));
  ChangeFeedOptions options;
  {
    Subscriber first(world, options);
    REQUIRE(first.catch_up());
    options.resume = *ChangeCursor::parse(first.feed->cursor().to_text());
    CHECK(*options.resume == first.feed->cursor());
  }
  world.put(city(world, 7, "new"));
  Subscriber second(world, options);
  REQUIRE(second.catch_up());
  CHECK(second.told == 1);
  options.selection = "city";
  Subscriber other(world, options);
  REQUIRE(other.catch_up());
  CHECK(other.end->code() == StatusCode::InvalidArgument);
}

TEST_CASE("another replica set tells nothing anew unless something came in late") {
  VisitorWorld world(5, 1, kSchema);
  for (int i = 0; i < 40; ++i) world.put(city(world, i, "old"));
  Subscriber subscriber(world);
  REQUIRE(subscriber.catch_up());
  const int told = subscriber.told;
  world.raise_epochs();
  world.put(city(world, 500, "a document that was not there before is no gap"));
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.told_since(told) == 1);
  CHECK(subscriber.feed->progress().begun_again == 0);

  world.put_late(city(world, 100, "late"), 5);
  world.raise_epochs();
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.copy.contains(id_of(100)));
  CHECK(subscriber.feed->progress().begun_again == 1);
}

TEST_CASE("changes are read only under the replica set that the distributor named") {
  VisitorWorld world(1, 1, kSchema);
  world.put(city(world, 1, "here"));
  const BucketId bucket = DocumentId::parse(id_of(1))->bucket(4);
  const std::uint64_t epoch = world.nodes.front().buckets->provider(bucket).replica_set(bucket)->epoch;
  const auto status_under = [&](std::uint64_t asked) {
    rpc::ReadChanges question;
    question.buckets = {{.bucket = bucket, .epoch = asked, .until_us = world.last_timestamp()}};
    return test::ask(world, question).buckets.at(0).status.code();
  };
  CHECK(status_under(epoch) == StatusCode::Ok);
  CHECK(status_under(epoch - 1) == StatusCode::NotReady);
  CHECK(status_under(epoch + 1) == StatusCode::NotReady);
}

TEST_CASE("changes with the same timestamp are in one answer, however long it becomes") {
  VisitorWorld world(1, 1, kSchema);
  for (int i = 0; i < 20; ++i) {
    Document document(*world.types().find("city"), *DocumentId::parse(test::city_id(1, i)));
    REQUIRE(document.set("text", std::string(100, 'x')).is_ok());
    world.put_late(document, 1000);
  }
  world.put(city(world, 100, "another one, so that what is told is past the others"));
  world.stable_us = 2000;
  ChangeFeedOptions options;
  options.block_bytes = 300;  // Two or three documents.
  Subscriber subscriber(world, options);
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.told == 21);
}

TEST_CASE("splits and joins of buckets lose nothing") {
  const unsigned bits = GENERATE(6u, 2u);
  VisitorWorld world(6, 2, kSchema);
  for (int i = 0; i < 60; ++i) world.put(city(world, i, "old"));
  Subscriber subscriber(world);
  REQUIRE(subscriber.catch_up());
  world.change_bits(bits);
  world.put(city(world, 7, "new"));
  world.put(city(world, 77, "new"));
  world.remove(id_of(8));
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.copy.size() == 60);
  CHECK(subscriber.copy.at(id_of(77)) == world.last_timestamp() - 1);
  CHECK_FALSE(subscriber.copy.contains(id_of(8)));
}

TEST_CASE("a token older than what is kept of removes is answered with RESYNC, a new subscriber is not") {
  VisitorWorld world(7, 1, kSchema);
  for (int i = 0; i < 20; ++i) world.put(city(world, i, "old"));
  ChangeFeedOptions options;
  {
    Subscriber first(world, options);
    REQUIRE(first.catch_up());
    options.resume = first.feed->cursor();
  }
  world.remove(id_of(3));
  world.put(city(world, 19, "new"));
  world.forget_removes(Timestamp{world.last_timestamp()});
  Subscriber late(world, options);
  REQUIRE(late.catch_up());
  REQUIRE(late.resync.has_value());
  CHECK(late.resync->us == world.last_timestamp());
  Subscriber fresh(world);
  REQUIRE(fresh.catch_up());
  CHECK_FALSE(fresh.resync.has_value());
  CHECK(fresh.copy.size() == 19);
}

TEST_CASE("who was told more than a resumed token says is told RESYNC when a remove of that is gone") {
  VisitorWorld world(7, 1, kSchema);
  for (int i = 0; i < 20; ++i) world.put(city(world, i, "old"));
  world.remove(id_of(5));
  world.forget_removes(Timestamp{world.last_timestamp() + 1});  // The first copy need not contain this remove.
  ChangeFeedOptions options;
  std::optional<ChangeCursor> first;
  Subscriber subscriber(world, options, [&](const ChangeFeed& feed) {
    if (!first) first = feed.cursor();
  });
  REQUIRE(subscriber.catch_up());
  REQUIRE_FALSE(subscriber.resync.has_value());
  CHECK(subscriber.copy.size() == 19);

  SECTION("a token of when nothing was told yet can be resumed") {
    options.resume = ChangeCursor::parse(first->to_text()).value();
    Subscriber resumed(world, options);
    REQUIRE(resumed.catch_up());
    CHECK_FALSE(resumed.resync.has_value());
    CHECK(resumed.told == 19);
  }
  SECTION("but not if something was removed and forgotten since") {
    options.resume = ChangeCursor::parse(first->to_text()).value();
    world.remove(id_of(3));
    world.forget_removes(Timestamp{world.last_timestamp() + 1});
    Subscriber resumed(world, options);
    REQUIRE(resumed.catch_up());
    CHECK(resumed.resync.has_value());
  }
  SECTION("nor in a bucket that the token does not know") {
    options.resume = ChangeCursor(options.fingerprint());
    world.remove(id_of(3));
    world.forget_removes(Timestamp{world.last_timestamp() + 1});
    Subscriber resumed(world, options);
    REQUIRE(resumed.catch_up());
    CHECK(resumed.resync.has_value());
  }
}

TEST_CASE("a new subscriber that reads a bucket in many parts is not told RESYNC in the middle") {
  VisitorWorld world(13, 1, kSchema);
  for (int i = 0; i < 60; ++i) world.put(city(world, i, "old"));
  world.remove(id_of(3));
  world.forget_removes(Timestamp{world.last_timestamp() + 1});
  ChangeFeedOptions options;
  options.block_bytes = 100;
  Subscriber subscriber(world, options);
  REQUIRE(subscriber.catch_up());
  CHECK_FALSE(subscriber.resync.has_value());
  CHECK(subscriber.copy.size() == 59);
}

TEST_CASE("a subscriber that keeps up does not notice that removes are dropped, only that one may have come late") {
  VisitorWorld world(11, 1, kSchema);
  for (int i = 0; i < 30; ++i) world.put(city(world, i, "old"));
  for (int i = 0; i < 5; ++i) world.remove(id_of(i));
  Subscriber subscriber(world);
  REQUIRE(subscriber.catch_up());
  const int told = subscriber.told;
  world.forget_removes(Timestamp{world.last_timestamp() + 1});  // Drops only removes that the subscriber has received.
  world.raise_epochs();
  world.put(city(world, 100, "new"));
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.told_since(told) == 1);
  CHECK(subscriber.feed->progress().begun_again == 0);
  CHECK(*ChangeCursor::parse(subscriber.feed->cursor().to_text()) == subscriber.feed->cursor());

  // A late version came, and no removes were dropped meanwhile: the whole bucket is sent again.
  world.put_late(city(world, 200, "late"), 5);
  world.raise_epochs();
  REQUIRE(subscriber.catch_up());
  CHECK_FALSE(subscriber.resync.has_value());
  CHECK(subscriber.copy.contains(id_of(200)));

  // Removes were dropped meanwhile; a late remove may be among them.
  world.put_late(city(world, 300, "late"), 6);
  world.forget_removes(Timestamp{world.last_timestamp() + 1});
  world.raise_epochs();
  world.put(city(world, 20, "anew"));
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.resync.has_value());
}

TEST_CASE("from now on means only what changes later, in buckets that come later too") {
  VisitorWorld world(8, 1, kSchema);
  world.put(city(world, 1, "old"));
  ChangeFeedOptions options;
  options.from_now = true;
  Subscriber subscriber(world, options);
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.told == 0);
  world.put(city(world, 2, "new"));
  world.put(city(world, 17, "in the bucket of the old one"));
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.copy.size() == 2);
}

TEST_CASE("a bucket that cannot be read now is told of later, and losses of answers lose nothing") {
  VisitorWorld world(9, 2, kSchema);
  for (int i = 0; i < 60; ++i) world.put(city(world, i, "old"));
  world.unavailable = {BucketId(4, 3)};
  world.transport.lose_answers("readChanges", 2);
  world.transport.lose_answers("getBucketNodes", 1);
  Subscriber subscriber(world);
  CHECK_FALSE(world.run_until([&] { return subscriber.rounds > 0; }, seconds(40)));
  CHECK(subscriber.copy.size() > 40);
  CHECK(subscriber.feed->progress().waiting == 1);
  world.unavailable.clear();
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.copy.size() == 60);
}

TEST_CASE("what a replica finds to be lost while it is read is told from another one") {
  VisitorWorld world(12, 3, kSchema);  // The distributor names the nodes of a bucket in turn.
  std::vector<LosesOneWhenRead*> lossy;
  for (auto& provider : world.nodes[0].buckets->providers) {
    auto made = std::make_unique<LosesOneWhenRead>(std::move(provider));
    lossy.push_back(made.get());
    provider = std::move(made);
  }
  for (int i = 0; i < 60; ++i) world.put(city(world, i, "old"));
  Subscriber subscriber(world);
  REQUIRE(subscriber.catch_up());
  CHECK(std::any_of(lossy.begin(), lossy.end(), [](const LosesOneWhenRead* one) { return one->has_lost(); }));
  CHECK(subscriber.copy.size() == 60);
}

TEST_CASE("a selection that does not parse ends the feed with the reason") {
  VisitorWorld world(10, 1, kSchema);
  world.put(city(world, 1, "old"));
  ChangeFeedOptions options;
  options.selection = "nonsense.field == 3";
  Subscriber subscriber(world, options);
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.end->code() == StatusCode::InvalidSelection);
}

TEST_CASE("a paused feed tells nothing until it is resumed") {
  VisitorWorld world(11, 1, kSchema);
  Subscriber subscriber(world);
  REQUIRE(subscriber.catch_up());
  world.executor->post([&] { subscriber.feed->pause(); });
  world.scheduler.run_for(seconds(2));
  world.put(city(world, 1, "new"));
  world.scheduler.run_for(seconds(5));
  CHECK(subscriber.told == 0);
  world.executor->post([&] { subscriber.feed->resume(); });
  REQUIRE(subscriber.catch_up());
  CHECK(subscriber.told == 1);
}

TEST_CASE("positions of split and joined buckets are what is known of their parts") {
  ChangeCursor token(9);
  const BucketId whole(4, 3);
  const auto [low, high] = halves_of(whole);
  CHECK(token.at(whole) == ChangePosition{});
  token.set(whole, {.after_us = 100, .epoch = 5, .checksum = 77, .until_us = 110});
  CHECK(token.at(whole) == ChangePosition{100, 5, 77, 110});
  CHECK(token.at(low) == ChangePosition{100, 0, 0, 110});
  CHECK_FALSE(token.knows(low));
  token.set(low, {.after_us = 150, .epoch = 6, .checksum = 7, .until_us = 160});
  CHECK(token.at(high) == ChangePosition{100, 0, 0, 110});
  CHECK(token.at(whole) == ChangePosition{100, 0, 0, 110});
  token.set(high, {.after_us = 150, .epoch = 8, .checksum = 9, .until_us = 150});
  CHECK(token.at(whole) == ChangePosition{150, 0, 16, 150});
  CHECK(token.at(BucketId(3, 3)) == ChangePosition{});  // The position of the other half is unknown.
  CHECK(token.at(BucketId(4, 2)) == ChangePosition{});
  CHECK(token.knows_part_of(whole));
  CHECK(token.knows_part_of(low));
  CHECK(token.knows_part_of(BucketId(3, 3)));
  CHECK_FALSE(token.knows_part_of(BucketId(4, 2)));
  CHECK_FALSE(token.knows_part_of(BucketId(4, 5)));
}

TEST_CASE("the position of a joined bucket replaces those of its parts") {
  ChangeCursor token(9);
  const BucketId whole(4, 3);
  const auto [low, high] = halves_of(whole);
  token.set(low, {.after_us = 100, .epoch = 5, .checksum = 7, .until_us = 110});
  token.set(high, {.after_us = 100, .epoch = 5, .checksum = 9, .until_us = 110});
  token.set(BucketId(4, 2), {.after_us = 120, .epoch = 4, .checksum = 8, .until_us = 120});
  token.set(whole, {.after_us = 150, .epoch = 6, .checksum = 16, .until_us = 160});
  CHECK(token.size() == 2);
  CHECK(token.at(whole) == ChangePosition{150, 6, 16, 160});
  CHECK(token.at(low) == ChangePosition{150, 0, 0, 160});
  CHECK(token.at(high) == ChangePosition{150, 0, 0, 160});
  CHECK(token.at(BucketId(4, 2)) == ChangePosition{120, 4, 8, 120});
  const auto parsed = ChangeCursor::parse(token.to_text());
  REQUIRE(parsed.has_value());
  CHECK(*parsed == token);
}

TEST_CASE("a subscription token says the same after it was text, and any change of the text is noticed") {
  ChangeCursor token(0xabcdef);
  Random random(4);
  for (std::uint64_t i = 0; i < 8; ++i) token.set(BucketId(4, i), {random.next() >> 10, i, random.next(), i * 7});
  const std::string text = token.to_text();
  REQUIRE(ChangeCursor::parse(text + "\n").has_value());
  CHECK(*ChangeCursor::parse(text) == token);
  CHECK(*ChangeCursor::parse(ChangeCursor(3).to_text()) == ChangeCursor(3));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string wrong = text;
    wrong[i] = wrong[i] == '1' ? '2' : '1';
    CHECK_FALSE(ChangeCursor::parse(wrong).has_value());
    CHECK_FALSE(ChangeCursor::parse(text.substr(0, i)).has_value());
  }
}

}  // namespace
}  // namespace fjord
