#include "bucket_activity.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "bucket_database.h"

namespace fjord::distributor {
namespace {

/// Returns one activity of each kind, with data that a transition has to keep.
std::vector<BucketActivity> all_activities() {
  Merge merge{.run = 7, .primary = 3, .filled = {5}};
  std::vector<BucketActivity> all;
  all.emplace_back(activity::Collecting{});
  all.emplace_back(activity::Unavailable{"a node is down"});
  all.emplace_back(activity::Installing{std::make_unique<Installation>()});
  all.emplace_back(activity::Idle{});
  all.emplace_back(activity::Merging{merge});
  all.emplace_back(activity::Draining{merge});
  all.emplace_back(activity::Comparing{merge});
  all.emplace_back(activity::Forgetting{40});
  all.emplace_back(activity::Reshaping{9});
  return all;
}

std::vector<BucketEvent> all_events() {
  std::vector<BucketEvent> all;
  all.emplace_back(event::NotAvailable{"another node is down"});
  all.emplace_back(event::SetConfirmed{});
  all.emplace_back(event::Install{std::make_unique<Installation>()});
  all.emplace_back(event::Installed{});
  all.emplace_back(event::MergeStarted{8, true});
  all.emplace_back(event::MergeStopped{});
  all.emplace_back(event::MergeSucceeded{});
  all.emplace_back(event::CompareStarted{});
  all.emplace_back(event::ForgetStarted{50});
  all.emplace_back(event::ReshapeStarted{10});
  all.emplace_back(event::Resumed{});
  return all;
}

/// For each activity, the activity to which each event leads. An activity refuses all events that are not in its row.
const std::map<std::string, std::map<std::string, std::string>> kTable = {
    {"Collecting", {{"NotAvailable", "Unavailable"}, {"SetConfirmed", "Idle"}, {"Install", "Installing"}}},
    {"Unavailable", {}},
    {"Installing", {{"Installed", "Idle"}}},
    {"Idle", {{"MergeStarted", "Merging"}, {"ForgetStarted", "Forgetting"}, {"ReshapeStarted", "Reshaping"}}},
    {"Merging", {{"MergeStopped", "Idle"}, {"MergeSucceeded", "Draining"}}},
    {"Draining", {{"Install", "Installing"}, {"CompareStarted", "Comparing"}, {"Resumed", "Idle"}}},
    {"Comparing", {{"Install", "Installing"}, {"Resumed", "Idle"}}},
    {"Forgetting", {{"Install", "Installing"}, {"Resumed", "Idle"}}},
    {"Reshaping", {{"Resumed", "Idle"}}},
};

}  // namespace

TEST_CASE("bucket activity: each event leads to the next activity of the table, or is refused") {
  const std::size_t activities = all_activities().size();
  const std::size_t events = all_events().size();
  CHECK(activities == std::variant_size_v<BucketActivity>);
  CHECK(events == std::variant_size_v<BucketEvent>);
  std::set<std::string> names;
  for (std::size_t a = 0; a < activities; ++a) {
    for (std::size_t e = 0; e < events; ++e) {
      BucketActivity from = std::move(all_activities()[a]);
      BucketEvent event = std::move(all_events()[e]);
      const std::string from_name = name_of(from);
      const std::string event_name = name_of(event);
      CAPTURE(from_name, event_name);
      names.insert({from_name, event_name});
      const auto& row = kTable.at(from_name);
      const auto next = row.find(event_name);
      REQUIRE(is_allowed(from, event) == (next != row.end()));
      if (next != row.end()) CHECK(name_of(transition(std::move(from), std::move(event))) == next->second);
    }
  }
  CHECK(names.size() == activities + events);  // Each activity and each event has a name of its own.
}

TEST_CASE("bucket activity: a transition carries the data of the event, and a merge keeps its own to the end") {
  BucketEntry entry;
  CHECK(entry.is<activity::Collecting>());
  auto work = std::make_unique<Installation>();
  work->removed = {4};
  entry.apply(event::Install{std::move(work)});
  CHECK(entry.lists(4));
  CHECK_FALSE(entry.has_set_in_force());
  entry.apply(event::Installed{});
  CHECK_FALSE(entry.lists(4));
  CHECK(entry.is_settled());

  entry.apply(event::MergeStarted{12, true});
  CHECK(entry.serves());
  CHECK_FALSE(entry.is_settled());
  CHECK(entry.merge()->run == 12);
  CHECK(entry.merge()->moves);
  entry.merge()->filled = {2, 6};
  entry.apply(event::MergeSucceeded{});
  CHECK_FALSE(entry.serves());
  CHECK(entry.has_set_in_force());
  entry.disturb_merge();
  entry.apply(event::CompareStarted{});
  CHECK(entry.merge()->run == 12);
  CHECK(entry.merge()->filled == NodeIndexes{2, 6});
  CHECK(entry.merge()->disturbed);
  entry.apply(event::Resumed{});
  CHECK(entry.merge() == nullptr);

  entry.apply(event::ReshapeStarted{3});
  CHECK(std::get<activity::Reshaping>(entry.activity).number == 3);
  entry.apply(event::Resumed{});
  entry.apply(event::ForgetStarted{77});
  CHECK(std::get<activity::Forgetting>(entry.activity).surplus_tokens_us == 77);

  BucketEntry lost;
  lost.apply(event::NotAvailable{"a node is down"});
  REQUIRE(lost.unavailable_because() != nullptr);
  CHECK(*lost.unavailable_because() == "a node is down");
}

TEST_CASE("bucket activity: an entry stays small, since a distributor has a million of them") {
  CHECK(sizeof(BucketActivity) <= 56);
  CHECK(sizeof(BucketEntry) <= 272);
}

}  // namespace fjord::distributor
