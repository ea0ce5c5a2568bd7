#include "client_window.h"

#include <catch2/catch.hpp>
#include <string>

namespace fjord::distributor {
namespace {

using Windows = ClientWindows<std::string>;

MonotonicTime at(std::int64_t second) { return MonotonicTime{} + seconds(second); }

}  // namespace

TEST_CASE("client window: an operation is new once and a copy after that") {
  Windows windows;
  windows.advance(5, 1, at(0));
  auto [first, added] = windows.find_or_add(5, 1);
  REQUIRE(added);
  CHECK(first->state == Windows::State::Pending);
  CHECK(first->attempt == 0);
  CHECK(first->timestamp_us == 0);
  first->timestamp_us = 99;
  first->waiters.push_back("copy");

  auto [again, added_again] = windows.find_or_add(5, 1);
  CHECK_FALSE(added_again);
  CHECK(again == first);
  CHECK(again->timestamp_us == 99);
  CHECK(again->waiters.size() == 1);
  CHECK(windows.find_or_add(5, 2).second);  // A new number of client 5.
  CHECK(windows.find_or_add(6, 1).second);  // Number 1 of another client, 6.
}

TEST_CASE("client window: what was written into a record is kept until its client settles it") {
  Windows windows;
  windows.advance(5, 1, at(0));
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) windows.find_or_add(5, sequence);
  Windows::RequestRecord* record = windows.find(5, 3);
  REQUIRE(record != nullptr);
  record->state = Windows::State::InDoubt;
  record->attempt = 2;
  record->status = Status(StatusCode::Timeout, "no answer");
  record->timestamp_us = 1234;

  windows.advance(5, 3, at(1));
  CHECK(windows.find(5, 1) == nullptr);
  CHECK(windows.find(5, 2) == nullptr);
  REQUIRE(windows.find(5, 3) == record);
  CHECK(record->state == Windows::State::InDoubt);
  CHECK(record->attempt == 2);
  CHECK(record->timestamp_us == 1234);
  CHECK(windows.find(5, 4) != nullptr);

  windows.advance(5, 4, at(2));
  CHECK(windows.find(5, 3) == nullptr);
}

TEST_CASE("client window: below the first unsettled number everything is a late copy, forgotten or never seen") {
  Windows windows;
  CHECK_FALSE(windows.is_settled_duplicate(5, 1));  // Client 5 is unknown.
  windows.advance(5, 10, at(0));
  CHECK(windows.is_settled_duplicate(5, 9));
  CHECK(windows.is_settled_duplicate(5, 1));
  CHECK_FALSE(windows.is_settled_duplicate(5, 10));
  CHECK_FALSE(windows.is_settled_duplicate(6, 9));
}

TEST_CASE("client window: a delayed batch with an older window does not bring settled numbers back") {
  Windows windows;
  windows.advance(5, 10, at(0));
  windows.find_or_add(5, 10);
  windows.advance(5, 3, at(1));
  CHECK(windows.is_settled_duplicate(5, 9));
  CHECK(windows.find(5, 10) != nullptr);
}

TEST_CASE("client window: a client that is silent is forgotten with all its tokens, one that speaks is not") {
  Windows windows;
  windows.advance(5, 10, at(0));
  windows.find_or_add(5, 10);
  windows.advance(6, 10, at(0));
  windows.find_or_add(6, 10);
  windows.advance(6, 10, at(100));  // No new number for client 6, but it counts as contact.

  windows.forget_idle(at(100));
  CHECK(windows.find(5, 10) == nullptr);
  CHECK_FALSE(windows.is_settled_duplicate(5, 9));
  CHECK(windows.find(6, 10) != nullptr);
  CHECK(windows.is_settled_duplicate(6, 9));
  windows.forget_idle(at(101));
  CHECK(windows.find(6, 10) == nullptr);
}

}  // namespace fjord::distributor
