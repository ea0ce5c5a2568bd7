#include "balance_steps.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>

namespace fjord::fleetcontroller {
namespace {

// Steps that are kept, and rows of all of them.
constexpr std::size_t kStepsMax = 500;
constexpr std::size_t kStepRowsMax = 50'000;

void drop_old_steps(std::vector<BalanceStep>& steps) {
  std::size_t rows = 0;
  std::size_t kept = 0;
  while (kept < steps.size() && kept < kStepsMax) {
    const BalanceStep& step = steps[steps.size() - 1 - kept];
    rows += step.removed.size() + step.added.size();
    if (kept > 0 && rows > kStepRowsMax) break;
    ++kept;
  }
  steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(kept));
}

std::vector<PlacementException> difference(const std::vector<PlacementException>& a,
                                           const std::vector<PlacementException>& b) {
  std::vector<PlacementException> only_a;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only_a));
  return only_a;
}

std::vector<std::uint16_t> sorted(std::vector<std::uint16_t> nodes) {
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<std::uint16_t> without(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) {
  std::vector<std::uint16_t> left;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(left));
  return left;
}

ClusterView with_table(const ClusterView& places, std::vector<PlacementException> table) {
  auto state = std::make_shared<ClusterState>(*places.state);
  state->set_exceptions(std::move(table));
  return {std::move(state), places.distribution};
}

/// Returns the rows with which `bucket` lies on exactly the nodes of `wanted`; false if no rows do that.
bool find_rows(const ClusterView& bare, BucketId bucket, const std::vector<std::uint16_t>& wanted,
               std::vector<PlacementException>& rows) {
  const std::vector<std::uint16_t> ideal = sorted(bare.ideal_nodes(bucket).to_vector());
  const std::vector<std::uint16_t> from = without(ideal, wanted);
  std::vector<std::uint16_t> to = without(wanted, ideal);
  if (from.size() != to.size()) return false;
  // Rows are applied one after another, so their pairs of nodes make a difference to the groups.
  do {
    rows.clear();
    for (std::size_t i = 0; i < from.size(); ++i) rows.push_back({bucket.bits(), from[i], to[i]});
    if (sorted(with_table(bare, rows).ideal_nodes(bucket).to_vector()) == wanted) return true;
  } while (std::next_permutation(to.begin(), to.end()));
  return false;
}

std::string text_of(const BalancedReplica& move) {
  return fmt::format("bucket {:x} from storage.{} to storage.{}", move.bucket, move.from, move.to);
}

}  // namespace

std::uint64_t change_table(ClusterRecord& record, std::vector<PlacementException> table, unsigned bits,
                           BalanceStep step) {
  std::sort(table.begin(), table.end());
  NodeTable& nodes = record.nodes;
  if (nodes.exceptions_bits != bits) {
    if (table.empty() && nodes.exceptions.empty()) return 0;
    nodes.exceptions.clear();
    nodes.exceptions_bits = bits;
    record.balance_steps.clear();
  }
  std::sort(nodes.exceptions.begin(), nodes.exceptions.end());
  if (table == nodes.exceptions) return 0;
  step.id = ++record.balance_step;
  step.removed = difference(nodes.exceptions, table);
  step.added = difference(table, nodes.exceptions);
  nodes.exceptions = std::move(table);
  record.balance_steps.push_back(std::move(step));
  drop_old_steps(record.balance_steps);
  return record.balance_step;
}

Result<std::vector<PlacementException>> table_before(const ClusterRecord& record, std::uint64_t id) {
  const auto& steps = record.balance_steps;
  const bool is_kept = std::any_of(steps.begin(), steps.end(), [&](const BalanceStep& step) { return step.id == id; });
  if (!is_kept) {
    return Status(StatusCode::NotFound,
                  fmt::format("step {} is not kept; `fjord balance history` lists those that are", id));
  }
  std::set<PlacementException> table(record.nodes.exceptions.begin(), record.nodes.exceptions.end());
  for (auto step = steps.rbegin(); step != steps.rend() && step->id >= id; ++step) {
    for (const PlacementException& row : step->added) table.erase(row);
    table.insert(step->removed.begin(), step->removed.end());
  }
  return std::vector<PlacementException>(table.begin(), table.end());
}

std::vector<BalancedReplica> moves_between(const ClusterView& places, const std::vector<PlacementException>& after,
                                           std::span<const std::uint64_t> bucket_bytes) {
  std::set<std::uint64_t> touched;
  for (const PlacementException& row : places.state->exceptions()) touched.insert(row.bucket);
  for (const PlacementException& row : after) touched.insert(row.bucket);
  const ClusterView then = with_table(places, after);
  std::vector<BalancedReplica> moves;
  for (const std::uint64_t key : touched) {
    const BucketId bucket(places.bits(), key);
    const std::vector<std::uint16_t> old_nodes = sorted(places.ideal_nodes(bucket).to_vector());
    const std::vector<std::uint16_t> new_nodes = sorted(then.ideal_nodes(bucket).to_vector());
    const std::vector<std::uint16_t> from = without(old_nodes, new_nodes);
    const std::vector<std::uint16_t> to = without(new_nodes, old_nodes);
    for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
      moves.push_back({key, from[i], to[i], key < bucket_bytes.size() ? bucket_bytes[key] : 0});
    }
  }
  return moves;
}

TableChange with_moves(const ClusterView& places, std::span<const BalancedReplica> moves, std::size_t rows_max) {
  const ClusterView bare = with_table(places, {});
  std::map<std::uint64_t, std::vector<PlacementException>> table;
  for (const PlacementException& row : places.state->exceptions()) table[row.bucket].push_back(row);
  std::size_t rows = places.state->exceptions().size();
  TableChange change;
  for (const BalancedReplica& move : moves) {
    const BucketId bucket(places.bits(), move.bucket);
    const auto old_rows = table.find(move.bucket);
    const std::vector<PlacementException> had =
        old_rows == table.end() ? std::vector<PlacementException>{} : old_rows->second;
    std::vector<std::uint16_t> wanted = with_table(bare, had).ideal_nodes(bucket).to_vector();
    const auto source = std::find(wanted.begin(), wanted.end(), move.from);
    const bool is_there = std::find(wanted.begin(), wanted.end(), move.to) != wanted.end();
    if (source == wanted.end() || is_there) {
      change.left_out.push_back(text_of(move) + ": the replicas lie otherwise by now");
      continue;
    }
    *source = move.to;
    std::vector<PlacementException> has;
    if (!find_rows(bare, bucket, sorted(std::move(wanted)), has)) {
      change.left_out.push_back(text_of(move) + ": the target takes no replicas, or shares a group with another one");
      continue;
    }
    if (rows - had.size() + has.size() > rows_max) {
      change.left_out.push_back(fmt::format("{}: the table has room for {} rows", text_of(move), rows_max));
      continue;
    }
    rows = rows - had.size() + has.size();
    table[move.bucket] = std::move(has);
    change.moves.push_back(move);
  }
  for (const auto& [bucket, of_bucket] : table) {
    change.table.insert(change.table.end(), of_bucket.begin(), of_bucket.end());
  }
  return change;
}

}  // namespace fjord::fleetcontroller
