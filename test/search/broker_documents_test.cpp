// What a broker keeps as documents: the list of synonyms in force, and the log of queries.

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <utility>

#include "fjord/sim/sim_scheduler.h"
#include "query_recorder.h"
#include "synonym_list.h"

namespace fjord::search {
namespace {

/// Lists in memory, given when the test wants it.
struct Lists {
  std::map<std::uint64_t, std::string> texts;
  std::deque<std::pair<std::uint64_t, SynonymSource::Done>> asked;
  std::size_t reads = 0;

  void answer(const Status& error = Status::ok()) {
    auto [number, done] = std::move(asked.front());
    asked.pop_front();
    const auto at = texts.find(number);
    if (!error) return done(error);
    if (at == texts.end()) return done(Status(StatusCode::NotFound, "no"));
    done(at->second);
  }
};

class ListSource final : public SynonymSource {
 public:
  explicit ListSource(Lists& lists) : lists_(lists) {}
  void read(std::uint64_t number, Done done) override {
    ++lists_.reads;
    lists_.asked.emplace_back(number, std::move(done));
  }

 private:
  Lists& lists_;
};

/// The log of one broker.
struct Log {
  std::map<std::uint64_t, std::string> places;
  std::deque<QueryLogSink::Done> open;  ///< Writes that have not ended.
  bool answers = true;
  std::size_t writes = 0;

  std::size_t queries() const {
    std::size_t count = 0;
    for (const auto& [place, text] : places) {
      count += static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    }
    return count;
  }
};

class LogSink final : public QueryLogSink {
 public:
  explicit LogSink(Log& log) : log_(log) {}
  void write(std::uint64_t place, std::string queries, Done done) override {
    ++log_.writes;
    log_.places[place] = std::move(queries);
    if (log_.answers) return done(Status::ok());
    log_.open.push_back(std::move(done));
  }

 private:
  Log& log_;
};

class World {
 public:
  World() : executor_(process_->make_executor("search")), mailbox_(*executor_) {
    synonyms_ =
        std::make_unique<SynonymList>(scheduler_.clock(), tunables_, mailbox_, std::make_unique<ListSource>(lists));
    recorder_ = std::make_unique<QueryRecorder>(tunables_, metrics_, random_, *executor_, mailbox_,
                                                std::make_unique<LogSink>(log));
  }
  ~World() { mailbox_.close(); }

  void set(const std::string& setting, std::int64_t value) { REQUIRE(tunables_.set(setting, value)); }
  void pass(Duration duration) { scheduler_.run_for(duration); }
  /// Returns the forms of a query, or the error that a search has.
  Result<std::vector<std::string>> forms(const std::string& query) {
    std::vector<QueryVariant> forms = *parse_query(query);
    FJORD_TRY(synonyms_->add_forms(forms));
    std::vector<std::string> texts;
    for (const QueryVariant& form : forms) texts.push_back(form.text());
    return texts;
  }
  void record(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      recorder_->record("query " + std::to_string(recorded_++));
      pass(Duration(10));
    }
  }

  Lists lists;
  Log log;

 private:
  sim::SimScheduler scheduler_{1};
  std::unique_ptr<sim::SimNodeScheduler> process_ = scheduler_.make_node_scheduler("broker");
  std::unique_ptr<Executor> executor_;
  visitors::Mailbox mailbox_;
  TunableRegistry tunables_;
  MetricRegistry metrics_;
  Random random_{7};
  std::unique_ptr<SynonymList> synonyms_;
  std::unique_ptr<QueryRecorder> recorder_;
  std::size_t recorded_ = 0;
};

using Texts = std::vector<std::string>;

TEST_CASE("the first list is waited for, a later one counts when it is read, and 0 is none") {
  World world;
  world.lists.texts = {{1, "car, auto"}, {2, "car, wagon"}};
  CHECK(*world.forms("car") == Texts{"car"});
  CHECK(world.lists.reads == 0);
  world.set("search.synonyms", 1);
  CHECK(world.forms("car").error().code() == StatusCode::NotReady);
  CHECK(world.forms("car").error().code() == StatusCode::NotReady);
  CHECK(world.lists.reads == 1);
  world.lists.answer();
  world.pass(milliseconds(1));
  CHECK(*world.forms("car") == Texts{"car", "auto"});

  world.set("search.synonyms", 2);
  CHECK(*world.forms("car") == Texts{"car", "auto"});
  world.lists.answer();
  world.pass(milliseconds(1));
  CHECK(*world.forms("car") == Texts{"car", "wagon"});
  CHECK(world.lists.reads == 2);
  world.set("search.synonyms", 0);
  CHECK(*world.forms("car") == Texts{"car"});
}

TEST_CASE("a list that does not exist or is broken is an error of each search, until there is one") {
  World world;
  world.set("search.synonyms", 7);
  CHECK(world.forms("car").error().code() == StatusCode::NotReady);
  world.lists.answer();
  world.pass(milliseconds(1));
  const auto unknown = world.forms("car");
  CHECK(unknown.error().code() == StatusCode::NotFound);
  CHECK(unknown.error().message() == "search.synonyms is 7: there is no list 7 of synonyms");
  CHECK(world.lists.reads == 1);

  world.lists.texts[7] = "alone";
  world.pass(seconds(2));
  CHECK(world.forms("car").error().code() == StatusCode::NotFound);  // Asks again meanwhile.
  world.lists.answer();
  world.pass(milliseconds(1));
  CHECK(world.forms("car").error().code() == StatusCode::InvalidArgument);

  world.lists.texts[7] = "car, auto";
  world.pass(seconds(2));
  CHECK_FALSE(world.forms("car"));
  world.lists.answer(Status(StatusCode::Timeout, "away"));
  world.pass(milliseconds(1));
  CHECK(world.forms("car").error().code() == StatusCode::NotReady);
  world.pass(seconds(2));
  CHECK_FALSE(world.forms("car"));
  world.lists.answer();
  world.pass(milliseconds(1));
  CHECK(*world.forms("car") == Texts{"car", "auto"});
}

TEST_CASE("a list that was asked for before the setting changed again does not count") {
  World world;
  world.lists.texts = {{1, "car, auto"}, {2, "car, wagon"}};
  world.set("search.synonyms", 1);
  CHECK_FALSE(world.forms("car"));
  world.set("search.synonyms", 2);
  CHECK_FALSE(world.forms("car"));
  world.lists.answer();
  world.pass(milliseconds(1));
  CHECK_FALSE(world.forms("car"));
  world.lists.answer();
  world.pass(milliseconds(1));
  CHECK(*world.forms("car") == Texts{"car", "wagon"});
}

TEST_CASE("nothing is recorded unless the setting says so, and then the part that it says") {
  World world;
  world.record(100);
  world.pass(seconds(20));
  CHECK(world.log.writes == 0);
  world.set("search.log_part", 100);
  world.record(5);
  CHECK(world.log.writes == 0);  // A block that is not full is written later.
  world.pass(seconds(10));
  CHECK(world.log.queries() == 5);
  CHECK(world.log.places.begin()->second.substr(0, 20) == "query 100\nquery 101\n");

  World other;
  other.set("search.log_part", 10);
  other.record(5000);
  other.pass(seconds(20));
  CHECK(other.log.queries() > 400);
  CHECK(other.log.queries() < 600);
}

TEST_CASE("the log keeps so many queries, in places that are used in turns") {
  World world;
  world.set("search.log_part", 100);
  world.set("search.log_queries_max", 3000);
  world.record(10'500);
  world.pass(seconds(10));
  CHECK(world.log.queries() == 2500);  // Two full blocks, and one that has begun.
  std::string all;
  for (const auto& [place, text] : world.log.places) all += text;
  CHECK(all.find("query 10499\n") != std::string::npos);
  CHECK(all.find("query 8000\n") != std::string::npos);
  CHECK(all.find("query 7999\n") == std::string::npos);
}

TEST_CASE("while a full block cannot be stored further queries are dropped, and later ones recorded again") {
  World world;
  world.set("search.log_part", 100);
  world.log.answers = false;
  world.record(3000);
  CHECK(world.log.writes == 1);
  world.log.open.front()(Status(StatusCode::Timeout, "away"));
  world.log.open.pop_front();
  world.log.answers = true;
  world.pass(seconds(10));
  CHECK(world.log.writes == 2);
  world.record(1000);
  CHECK(world.log.queries() == 2000);
  CHECK(world.log.places.size() == 2);
}

TEST_CASE("a block that could not be stored is written again, without further queries") {
  World world;
  world.set("search.log_part", 100);
  world.log.answers = false;
  world.record(5);
  world.pass(seconds(10));
  REQUIRE(world.log.writes == 1);
  world.log.open.front()(Status(StatusCode::Timeout, "away"));
  world.log.open.pop_front();
  world.pass(seconds(11));
  CHECK(world.log.writes == 2);
}

}  // namespace
}  // namespace fjord::search
