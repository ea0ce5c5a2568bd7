// The rows of vectors/state/generation.tsv: the published state follows from the reports of nodes, the wishes of
// operators, and the limits. fleetcontroller_behaviours_check.py compares names and published states with the file.

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "state_generator.h"

namespace fjord::fleetcontroller {
namespace {

constexpr MonotonicTime kNow{1'000'000'000};

struct Given {
  Given(std::uint16_t nodes, std::string groups) : config(*DistributionConfig::parse("redundancy:1 " + groups)) {
    for (NodeType type : {NodeType::Distributor, NodeType::Storage}) {
      for (std::uint16_t i = 0; i < nodes; ++i) {
        NodeReport report;
        report.id = {type, i};
        report.answered = true;
        report.last_answer = kNow;
        report.incarnation = 1;
        report.reported = plain(NodeState::Up);
        reports.push_back(report);
      }
    }
    options.distribution_bits = 16;
    options.down_after = seconds(1);
  }
  NodeReport& storage(std::uint16_t i) { return reports[reports.size() / 2 + i]; }
  NodeReport& distributor(std::uint16_t i) { return reports[i]; }
  void down(NodeReport& report, std::int64_t since_ms_ago = 1'000'000) {
    report.reported = plain(NodeState::Down);
    report.last_answer = kNow - milliseconds(since_ms_ago);
  }
  void stopping(NodeReport& report, std::int64_t since_ms_ago) {
    report.reported = plain(NodeState::Stopping);
    report.stopping_since = kNow - milliseconds(since_ms_ago);
  }
  void initializing(NodeReport& report, double progress) {
    report.reported = plain(NodeState::Initializing);
    report.reported.init_progress = progress;
  }
  void want(NodeReport& report, NodeState state, std::string why = {}) {
    report.wanted = {state, std::move(why), "", 0};
  }

  std::string published(ClusterState::Print print = ClusterState::Print::Normal) const {
    ClusterState state = generate_state(ClusterState(), reports, config, options, kNow).state;
    state.set_version(0);
    state.set_replicas_assured(0);  // The table lists neither the assured replicas nor the nodes' versions.
    for (const NodeReport& report : reports) {
      NodeStateInfo info = state.node(report.id);
      info.up_since_version = 0;
      info.available_since_version = 0;
      info.past.reset();
      if (report.wanted.reason.empty()) info.description.clear();
      state.set_node(report.id, info);
    }
    return state.to_string(print);
  }

  DistributionConfig config;
  std::vector<NodeReport> reports;
  GeneratorOptions options;
};

struct Row {
  const char* test;
  std::uint16_t nodes;
  const char* groups;
  std::function<void(Given&)> given;
  const char* published;
};

constexpr const char* kFlat7 = "(root 0-6)";
constexpr const char* kThreeGroups = "(root (a 0-2) (b 3-5) (c 6-8))";

void in_transition(Given& g) { g.options.transition_time = milliseconds(2000); }

const Row kRows[] = {
    {"cluster_with_all_nodes_up_state_correct_distributor_and_storage_count", 6, kFlat7, [](Given&) {},
     "distributor:6 storage:6"},
    {"worse_storage_wanted_state_overrides_reported_state", 7, kFlat7,
     [](Given& g) {
       g.stopping(g.storage(2), 0);
       g.want(g.storage(2), NodeState::Maintenance);
       g.want(g.storage(4), NodeState::Retired);
       g.want(g.storage(5), NodeState::Down);
     },
     "distributor:7 storage:7 .2.s:m .4.s:r .5.s:d"},
    {"better_distributor_wanted_state_does_not_override_reported_state", 7, kFlat7,
     [](Given& g) {
       g.down(g.distributor(0));
       g.want(g.distributor(0), NodeState::Up);
     },
     "distributor:7 .0.s:d storage:7"},
    {"storage_node_in_init_mode_while_listing_buckets_is_marked_down", 3, kFlat7,
     [](Given& g) { g.initializing(g.storage(1), 0); }, "distributor:3 storage:3 .1.s:d"},
    {"distributor_nodes_in_init_mode_are_not_mapped_to_down", 3, kFlat7,
     [](Given& g) { g.initializing(g.distributor(1), 0); }, "distributor:3 .1.s:i .1.i:0.0 storage:3"},
    {"config_retired_mode_is_reflected_in_generated_state", 5, kFlat7,
     [](Given& g) { g.want(g.storage(2), NodeState::Retired); }, "distributor:5 storage:5 .2.s:r"},
    {"reported_down_node_within_transition_time_has_maintenance_generated_state", 5, kFlat7,
     [](Given& g) {
       in_transition(g);
       g.down(g.storage(1), 1000);
     },
     "distributor:5 storage:5 .1.s:m"},
    {"reported_stopping_node_within_transition_time_has_maintenance_generated_state", 5, kFlat7,
     [](Given& g) {
       in_transition(g);
       g.stopping(g.storage(1), 1000);
     },
     "distributor:5 storage:5 .1.s:m"},
    {"distributor_nodes_are_not_implicitly_transitioned_to_maintenance_mode", 5, kFlat7,
     [](Given& g) {
       in_transition(g);
       g.down(g.distributor(2), 1000);
     },
     "distributor:5 .2.s:d storage:5"},
    {"transient_maintenance_mode_does_not_override_wanted_down_state", 5, kFlat7,
     [](Given& g) {
       in_transition(g);
       g.down(g.storage(2), 1000);
       g.want(g.storage(2), NodeState::Down);
     },
     "distributor:5 storage:5 .2.s:d"},
    {"crash_count_exceeding_limit_marks_node_as_down", 5, kFlat7,
     [](Given& g) {
       g.options.crashes_max = 10;
       g.storage(3).crashes = 11;
       g.storage(2).crashes = 10;
     },
     "distributor:5 storage:5 .3.s:d"},
    {"exceeded_crash_count_does_not_override_wanted_maintenance_state", 5, kFlat7,
     [](Given& g) {
       g.options.crashes_max = 10;
       g.storage(1).crashes = 11;
       g.want(g.storage(1), NodeState::Maintenance);
     },
     "distributor:5 storage:5 .1.s:m"},
    {"unstable_retired_node_should_be_marked_down", 5, kFlat7,
     [](Given& g) {
       g.options.crashes_max = 10;
       g.storage(3).crashes = 11;
       g.want(g.storage(3), NodeState::Retired);
     },
     "distributor:5 storage:5 .3.s:d"},
    {"cluster_down_if_less_than_min_count_of_storage_nodes_available", 3, kFlat7,
     [](Given& g) {
       g.options.storage_up_min = 2;
       g.down(g.storage(0));
       g.down(g.storage(2));
     },
     "cluster:d distributor:3 storage:2 .0.s:d"},
    {"cluster_not_down_if_more_than_min_count_of_storage_nodes_are_available", 3, kFlat7,
     [](Given& g) {
       g.options.storage_up_min = 2;
       g.down(g.storage(0));
     },
     "distributor:3 storage:3 .0.s:d"},
    {"cluster_down_if_less_than_min_count_of_distributors_available", 3, kFlat7,
     [](Given& g) {
       g.options.distributors_up_min = 2;
       g.down(g.distributor(0));
       g.down(g.distributor(2));
     },
     "cluster:d distributor:2 .0.s:d storage:3"},
    {"cluster_not_down_if_more_than_min_count_of_distributors_are_available", 3, kFlat7,
     [](Given& g) {
       g.options.distributors_up_min = 2;
       g.down(g.distributor(0));
     },
     "distributor:3 .0.s:d storage:3"},
    {"cluster_down_if_less_than_min_ratio_of_distributors_available", 3, kFlat7,
     [](Given& g) {
       g.options.distributors_up_ratio_min = 0.5;
       g.down(g.distributor(0));
       g.down(g.distributor(2));
     },
     "cluster:d distributor:2 .0.s:d storage:3"},
    {"group_nodes_are_marked_down_if_group_availability_too_low", 9, kThreeGroups,
     [](Given& g) {
       g.options.group_up_ratio_min = 0.68;
       g.down(g.storage(4));
     },
     "distributor:9 storage:9 .3.s:d .4.s:d .5.s:d"},
    {"maintenance_nodes_in_downed_group_are_not_affected", 9, kThreeGroups,
     [](Given& g) {
       g.options.group_up_ratio_min = 0.68;
       g.down(g.storage(4));
       g.want(g.storage(3), NodeState::Maintenance);
     },
     "distributor:9 storage:9 .3.s:m .4.s:d .5.s:d"},
    {"distribution_bits_bounded_by_lowest_reporting_storage_node", 3, kFlat7,
     [](Given& g) {
       g.storage(0).min_bucket_bits = 6;
       g.storage(1).min_bucket_bits = 5;
     },
     "bits:5 distributor:3 storage:3"},
};

}  // namespace

TEST_CASE("B1120 state generation: what is published follows from reports, wishes and limits, row by row") {
  for (const Row& row : kRows) {
    INFO(row.test);
    Given given(row.nodes, row.nodes == 9 ? row.groups : "(root 0-" + std::to_string(row.nodes - 1) + ")");
    row.given(given);
    CHECK(given.published() == ClusterState::parse(row.published)->to_string());
  }
}

TEST_CASE("B1120 state generation: wanted_state_description_carries_over_to_generated_state") {
  Given given(7, kFlat7);
  given.want(given.storage(1), NodeState::Maintenance, "foo");
  given.want(given.storage(2), NodeState::Down, "bar");
  given.want(given.storage(3), NodeState::Retired, "baz");
  CHECK(given.published(ClusterState::Print::WithDescriptions) ==
        "distributor:7 storage:7 .1.s:m .1.m:foo .2.s:d .2.m:bar .3.s:r .3.m:baz");
}

TEST_CASE("B1120 state generation: published_state_jumps_to_configured_ideal_bits_when_all_nodes_report_it") {
  Given given(3, kFlat7);
  ClusterState current = generate_state(ClusterState(), given.reports, given.config, given.options, kNow).state;
  current.set_bits(5);
  for (NodeReport& report : given.reports) {
    report.published_incarnation = report.incarnation;
    report.min_bucket_bits = 16;
  }
  CHECK(generate_state(current, given.reports, given.config, given.options, kNow).state.bits() == 16);
  given.storage(1).min_bucket_bits = 8;
  CHECK(generate_state(current, given.reports, given.config, given.options, kNow).state.bits() == 5);
}

}  // namespace fjord::fleetcontroller
