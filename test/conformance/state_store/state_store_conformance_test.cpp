#define CATCH_CONFIG_NO_POSIX_SIGNALS
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <vector>

#include "cluster_record.h"
#include "fjord/common/env.h"
#include "fjord/common/scheduler.h"
#include "fjord/fleetcontroller/leveldb_state_store.h"
#include "state_file.h"
#include "store_fixture.h"

namespace fjord::fleetcontroller::test {
namespace {

using Make = std::unique_ptr<StoreFixture> (*)();

/// A controller that uses a store, with a thread that waits for the answers.
class Candidate {
 public:
  Candidate(StoreFixture& fixture, std::string name) : name_(std::move(name)), store_(fixture.make_member()) {
    executor_ = scheduler_.make_executor("candidate");
    executor_->post([this] {
      store_->campaign(name_, *executor_, [this](const Leadership& now) {
        std::lock_guard lock(mutex_);
        heard_.push_back(now);
        changed_.notify_all();
      });
    });
  }
  ~Candidate() {
    store_->leave();
    end_executor(executor_);
  }

  /// Waits until `wanted` holds for the last leadership report.
  template <typename F>
  Leadership wait(F wanted) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::seconds(20), [&] { return !heard_.empty() && wanted(heard_.back()); });
    REQUIRE(came);
    return heard_.back();
  }
  std::uint64_t lead() {
    return wait([](const Leadership& now) { return now.mine; }).term;
  }
  bool leads() {
    std::lock_guard lock(mutex_);
    return !heard_.empty() && heard_.back().mine;
  }
  StoredRecord read(const std::string& record) {
    return *ask<Result<StoredRecord>>([&](auto done) { store_->read(record, std::move(done)); });
  }
  Result<std::uint64_t> write(std::uint64_t term, const std::string& record, std::uint64_t expected,
                              std::string content) {
    return ask<Result<std::uint64_t>>(
        [&](auto done) { store_->write(term, record, expected, std::move(content), std::move(done)); });
  }
  Status confirm(std::uint64_t term) {
    return ask<Status>([&](auto done) { store_->confirm(term, std::move(done)); });
  }
  void resign() {
    executor_->post([this] { store_->resign(); });
  }
  ClusterStateStore& store() { return *store_; }
  const std::string& name() const { return name_; }

 private:
  template <typename Answer, typename Start>
  Answer ask(Start start) {
    std::promise<Answer> promise;
    auto future = promise.get_future();
    executor_->post([&] { start([&](Answer answer) { promise.set_value(std::move(answer)); }); });
    REQUIRE(future.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    return future.get();
  }

  std::string name_;
  ThreadScheduler scheduler_;
  std::unique_ptr<ClusterStateStore> store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Leadership> heard_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace

#define FJORD_FOR_EACH_STORE()                                                                      \
  const Make make = GENERATE(&make_memory_fixture, &make_leveldb_fixture, &make_zookeeper_fixture); \
  const std::unique_ptr<StoreFixture> fixture = make();                                             \
  if (fixture == nullptr) return

TEST_CASE("state store: a single candidate leads, and what it writes is read again by revision") {
  FJORD_FOR_EACH_STORE();
  Candidate one(*fixture, "one:1");
  const std::uint64_t term = one.lead();
  CHECK(term > 0);
  CHECK(one.confirm(term));
  CHECK(one.store().session_timeout() > Duration(0));
  CHECK(one.read("cluster") == StoredRecord{});
  const std::string content(20'000, '\0');
  const auto first = one.write(term, "cluster", 0, content);
  REQUIRE(first);
  CHECK(one.read("cluster") == StoredRecord{*first, content});
  const auto second = one.write(term, "cluster", *first, "");
  REQUIRE(second);
  CHECK(*second > *first);
  CHECK(one.read("cluster") == StoredRecord{*second, ""});
  CHECK(one.read("schemas") == StoredRecord{});  // The write does not affect another record.
}

TEST_CASE("state store: of two writes that are based on one revision the second is refused") {
  FJORD_FOR_EACH_STORE();
  Candidate one(*fixture, "one:1");
  const std::uint64_t term = one.lead();
  const auto first = one.write(term, "cluster", 0, "a");
  REQUIRE(first);
  CHECK(one.write(term, "cluster", 0, "b").status().code() == StatusCode::TestAndSetFailed);
  CHECK(one.write(term, "cluster", *first + 1, "b").status().code() == StatusCode::TestAndSetFailed);
  CHECK(one.write(term, "schemas", 3, "b").status().code() == StatusCode::TestAndSetFailed);
  CHECK(one.read("cluster") == StoredRecord{*first, "a"});
}

TEST_CASE("state store: what was written is there for the next process, which has a higher term") {
  FJORD_FOR_EACH_STORE();
  std::uint64_t term = 0;
  std::uint64_t revision = 0;
  {
    Candidate one(*fixture, "one:1");
    term = one.lead();
    revision = *one.write(term, "cluster", 0, "kept");
  }
  Candidate again(*fixture, "one:1");
  const std::uint64_t next = again.lead();
  CHECK(next > term);
  CHECK(again.read("cluster") == StoredRecord{revision, "kept"});
  CHECK(again.write(term, "cluster", revision, "old").status().code() == StatusCode::WrongDistribution);
  CHECK(again.confirm(term).code() == StatusCode::WrongDistribution);
  CHECK(again.write(next, "cluster", revision, "new"));
}

TEST_CASE("state store: who resigns leads no more in that term") {
  FJORD_FOR_EACH_STORE();
  Candidate one(*fixture, "one:1");
  const std::uint64_t term = one.lead();
  one.resign();
  const std::uint64_t next = one.wait([&](const Leadership& now) { return now.mine && now.term > term; }).term;
  CHECK(one.write(term, "cluster", 0, "old").status().code() == StatusCode::WrongDistribution);
  CHECK(one.write(next, "cluster", 0, "new"));
}

TEST_CASE("state store: of several candidates one leads, the others hear who, and one of them is next") {
  FJORD_FOR_EACH_STORE();
  if (!fixture->has_elections()) return;
  std::vector<std::unique_ptr<Candidate>> candidates;
  for (const char* name : {"a:1", "b:1", "c:1"}) {
    candidates.push_back(std::make_unique<Candidate>(*fixture, name));
    if (candidates.size() == 1) candidates[0]->lead();
  }
  std::uint64_t term = 0;
  std::uint64_t revision = 0;
  for (std::size_t round = 0; round < 2; ++round) {
    std::size_t leader = 0;
    Leadership seen = candidates[0]->wait([&](const Leadership& now) { return now.term > term; });
    while (candidates[leader]->name() != seen.leader) ++leader;
    candidates[leader]->lead();
    for (auto& other : candidates) {
      const Leadership heard = other->wait([&](const Leadership& now) { return now.term == seen.term; });
      CHECK(heard.leader == seen.leader);
      CHECK(heard.mine == (other == candidates[leader]));
      if (!heard.mine) CHECK_FALSE(other->write(seen.term, "cluster", revision, "not mine"));
    }
    CHECK(seen.term > term);
    term = seen.term;
    const auto written = candidates[leader]->write(term, "cluster", revision, candidates[leader]->name());
    REQUIRE(written);
    revision = *written;
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(leader));
  }
  CHECK(candidates[0]->wait([&](const Leadership& now) { return now.mine && now.term > term; }).mine);
}

TEST_CASE("state store: who gives up while others wait goes to the end, and its term is over for writes") {
  FJORD_FOR_EACH_STORE();
  if (!fixture->has_elections()) return;
  Candidate one(*fixture, "one:1");
  const std::uint64_t term = one.lead();
  Candidate two(*fixture, "two:1");
  two.wait([&](const Leadership& now) { return now.term == term; });
  one.resign();
  const std::uint64_t next = two.lead();
  CHECK(next > term);
  CHECK(one.wait([&](const Leadership& now) { return now.term == next; }).leader == "two:1");
  CHECK_FALSE(one.write(term, "cluster", 0, "old"));
  CHECK_FALSE(one.confirm(term));
  CHECK(two.write(next, "cluster", 0, "new"));
  CHECK(two.confirm(next));
}

TEST_CASE("embedded state store: takes the state file of earlier versions over, once") {
  std::string folder = (std::filesystem::temp_directory_path() / "fjord-takeover-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  auto env = make_posix_env();
  PersistedState old;
  old.state = "version:7 bits:8 distributor:1 storage:2";
  old.schema_version = 3;
  old.schemas = {"document a { }"};
  old.incarnations = {{"storage.0", 5}};
  REQUIRE(save_state(*env, folder, old));
  struct Fixture final : StoreFixture {
    Fixture(Env& e, std::string d) : env(e), directory(std::move(d)) {}
    std::unique_ptr<ClusterStateStore> make_member() override {
      auto opened = LevelDbStateStore::open(env, directory);
      REQUIRE(opened);
      return std::move(*opened);
    }
    bool has_elections() const override { return false; }
    Env& env;
    std::string directory;
  } fixture(*env, folder);
  {
    Candidate one(fixture, "one:1");
    const std::uint64_t term = one.lead();
    const StoredRecord stored = one.read("cluster");
    const auto record = parse_cluster_record(stored.content);
    REQUIRE(record);
    CHECK(record->active.version == 7);
    CHECK(record->active.state == old.state);
    CHECK(record->incarnations == old.incarnations);
    const auto schemas = parse_schema_record(one.read("schemas").content);
    REQUIRE(schemas);
    CHECK(schemas->version == 3);
    CHECK(schemas->schemas == old.schemas);
    CHECK(one.write(term, "cluster", stored.revision, "later"));
  }
  Candidate again(fixture, "one:1");
  CHECK(again.read("cluster").content == "later");
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

TEST_CASE("embedded state store: a damaged record is told, and never read as an empty one") {
  ClusterRecord record;
  record.active = {7, "version:7 bits:8 distributor:1 storage:2", "redundancy:1 (root 0 1)", {"d:1"}, {"a:1", "b:1"}};
  record.wanted["storage.1"] = {NodeState::Retired, "old", "ann", 5};
  record.configs.push_back({1, 2, "ann", {{"cluster.redundancy", "2"}}});
  record.add_history({7, 1, 2, 3, "what", "why", "who"});
  std::string bytes = encode(record);
  CHECK(*parse_cluster_record(bytes) == record);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    CHECK(parse_cluster_record(bytes).status().code() == StatusCode::Corruption);
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
  }
  CHECK_FALSE(parse_cluster_record(bytes.substr(0, bytes.size() - 1)));
  CHECK_FALSE(parse_cluster_record(""));
}

}  // namespace fjord::fleetcontroller::test
