#include "fjord/sim/history.h"

#include <catch2/catch.hpp>

#include "linearizability.h"

namespace fjord::sim {
namespace {

using Kind = History::Kind;

/// Adds an operation that lasted from `begin` to `end`, in microseconds.
History::Event& add(History& history, Kind kind, const std::string& value, std::int64_t begin, std::int64_t end,
                    Outcome outcome = Outcome::Applied, std::uint64_t timestamp_us = 0) {
  const std::size_t event = history.begin(kind, "d", kind == Kind::Get ? "" : value, MonotonicTime{begin});
  history.end(event, outcome, value, MonotonicTime{end});
  history.at(event).once = true;
  history.at(event).timestamp_us = timestamp_us;
  return history.at(event);
}

bool is_linearizable(const History& history) {
  unsigned undecided = 0;
  const bool found = history.check_linearizable(&undecided).empty();
  CHECK(undecided == 0);
  return found;
}

TEST_CASE("history: a read gives what was acknowledged before it") {
  History history;
  add(history, Kind::Put, "a", 1, 2);
  add(history, Kind::Put, "b", 3, 4);
  add(history, Kind::Get, "b", 5, 6);
  CHECK(history.check().empty());
  CHECK(is_linearizable(history));
  add(history, Kind::Get, "a", 7, 8);
  CHECK(history.check().starts_with("I1"));
  CHECK_FALSE(is_linearizable(history));
}

TEST_CASE("history: a remove that was acknowledged and is missed is I4") {
  History history;
  add(history, Kind::Put, "a", 1, 2);
  add(history, Kind::Remove, "", 3, 4);
  add(history, Kind::Get, "a", 5, 6);
  CHECK(history.check().starts_with("I4"));
}

TEST_CASE("history: a write that was reported as failed is not seen") {
  History history;
  add(history, Kind::Put, "a", 1, 2, Outcome::NotApplied);
  add(history, Kind::Get, "a", 3, 4);
  CHECK(history.check().starts_with("I6"));
}

TEST_CASE("history: two test-and-sets on one version are I5") {
  History history;
  add(history, Kind::Put, "a", 1, 2);
  add(history, Kind::TestAndSet, "b", 3, 4).expected = "a";
  CHECK(history.check().empty());
  add(history, Kind::TestAndSet, "c", 5, 6).expected = "a";
  CHECK(history.check().starts_with("I5"));
  CHECK_FALSE(is_linearizable(history));
}

TEST_CASE("history: a put without a token that has not ended may come back behind a test-and-set") {
  for (const std::int64_t end : {10, 2}) {
    History history;
    add(history, Kind::Put, "a", 1, end).once = false;
    add(history, Kind::TestAndSet, "b", 3, 4).expected = "a";
    add(history, Kind::TestAndSet, "c", 11, 12).expected = "a";
    CHECK(history.check().empty() == (end == 10));
  }
}

TEST_CASE("history: one timestamp does not stand for two versions") {
  History history;
  add(history, Kind::Put, "a", 1, 2, Outcome::Applied, 100);
  add(history, Kind::Put, "b", 1, 2, Outcome::Applied, 100);
  CHECK(history.check().starts_with("I2"));
}

TEST_CASE("history: a client does not go back behind what it read or wrote") {
  History history;
  add(history, Kind::Put, "a", 1, 2, Outcome::Applied, 10);
  add(history, Kind::Put, "b", 1, 20, Outcome::InDoubt);
  add(history, Kind::Get, "b", 3, 4, Outcome::Applied, 20);
  add(history, Kind::Get, "a", 5, 6, Outcome::Applied, 10).client = 1;
  CHECK(history.check_sessions().empty());
  add(history, Kind::Get, "a", 7, 8, Outcome::Applied, 10);
  CHECK(history.check_sessions().starts_with("I7"));
}

TEST_CASE("history: the new version and then the old one is not linearizable, whoever reads") {
  History history;
  add(history, Kind::Put, "a", 1, 2);
  add(history, Kind::Put, "b", 3, 20);
  add(history, Kind::Get, "b", 4, 5).client = 1;
  CHECK(is_linearizable(history));
  add(history, Kind::Get, "a", 6, 7).client = 2;
  CHECK(history.check().empty());  // No violation: the write of b had not ended.
  CHECK_FALSE(is_linearizable(history));
}

TEST_CASE("history: a write in doubt may happen late, or never, or be seen") {
  History history;
  add(history, Kind::Put, "a", 1, 2);
  add(history, Kind::Put, "b", 3, 4, Outcome::InDoubt);
  add(history, Kind::Remove, "", 3, 4, Outcome::InDoubt);
  add(history, Kind::Get, "a", 5, 6);
  CHECK(is_linearizable(history));
  add(history, Kind::Get, "b", 7, 8);
  CHECK(is_linearizable(history));
  add(history, Kind::Get, "", 9, 10);
  CHECK(is_linearizable(history));
  add(history, Kind::Get, "b", 11, 12);
  CHECK_FALSE(is_linearizable(history));
}

TEST_CASE("history: a test-and-set that was refused saw another version") {
  History history;
  add(history, Kind::Put, "a", 1, 2);
  History::Event& refused = add(history, Kind::TestAndSet, "b", 3, 4, Outcome::NotApplied);
  refused.expected = "a";
  refused.refused = true;
  CHECK_FALSE(is_linearizable(history));
  add(history, Kind::Put, "c", 2, 10, Outcome::InDoubt);
  CHECK(is_linearizable(history));
}

TEST_CASE("history: documents with writes that may be applied again are not judged by linearizability") {
  History history;
  add(history, Kind::Put, "a", 1, 2).once = false;
  add(history, Kind::Put, "b", 3, 4);
  add(history, Kind::Get, "a", 5, 6);
  CHECK(is_linearizable(history));
}

TEST_CASE("linearizability: many operations at once are decided soon") {
  std::vector<RegisterOperation> operations;
  for (std::uint32_t i = 1; i <= 400; ++i) {
    operations.push_back({RegisterOperation::Kind::Write, i * 10, i * 10 + 85, i, 0, false});
    operations.push_back({RegisterOperation::Kind::Read, i * 10 + 20, i * 10 + 90, i, 0, false});
  }
  CHECK(check_register(operations) == Linearizability::Yes);
  operations.push_back({RegisterOperation::Kind::Read, 5000, 5001, 3, 0, false});
  CHECK(check_register(operations) == Linearizability::No);
}

}  // namespace
}  // namespace fjord::sim
