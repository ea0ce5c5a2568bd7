#include "balance_steps.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>

namespace fjord::fleetcontroller {
namespace {

// The most steps that are kept, and the most rows of all these steps together.
constexpr std::size_t kStepsMax = 500;
constexpr std::size_t kStepRowsMax = 50'000;

void drop_old_steps(std::vector<BalanceStep>& steps) {
  std::size_t rows = 0;
  std::size_t kept = 0;
  while (kept < steps.size() && kept < kStepsMax) {
    const BalanceStep& step = steps[steps.size() - 1 - kept];
    rows += step.removed.size() + step.added.size() + step.reads_removed.size() + step.reads_added.size();
    if (kept > 0 && rows > kStepRowsMax) break;
    ++kept;
  }
  steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(kept));
}

template <typename Row>
std::vector<Row> difference(const std::vector<Row>& a, const std::vector<Row>& b) {
  std::vector<Row> only_a;
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
    if (sorted(with_exceptions(bare, rows).ideal_nodes(bucket).to_vector()) == wanted) return true;
  } while (std::next_permutation(to.begin(), to.end()));
  return false;
}

/// Thousandths of reads, by bucket and node.
using ReadParts = std::map<std::uint64_t, std::map<std::uint16_t, std::uint16_t>>;

ReadParts parts_by_bucket(std::span<const ReadShare> rows) {
  ReadParts parts;
  for (const ReadShare& row : rows) parts[row.bucket][row.node] = row.permille;
  return parts;
}

/// Returns the parts of the bucket's reads that its nodes serve: those of the rows, or equal ones if there is none.
ReadParts::mapped_type parts_of(const ReadParts& rows, std::uint64_t bucket, const std::vector<std::uint16_t>& nodes) {
  const auto found = rows.find(bucket);
  ReadParts::mapped_type parts;
  for (const std::uint16_t node : nodes) {
    if (found == rows.end()) {
      parts[node] = static_cast<std::uint16_t>(1000 / nodes.size());
    } else if (const auto part = found->second.find(node); part != found->second.end()) {
      parts[node] = part->second;
    }
  }
  return parts;
}

/// Adds the moves of reads which make `now` what `then` is.
void add_shifts(std::uint64_t bucket, ReadParts::mapped_type now, ReadParts::mapped_type then,
                std::vector<BalancedReplica>& shifts) {
  for (auto& [from, has] : now) {
    for (auto& [to, wants] : then) {
      const int surplus = has - then[from];
      const int missing = wants - now[to];
      const int moved = std::min(surplus, missing);
      if (from == to || moved <= 0) continue;
      shifts.push_back({bucket, from, to, 0, static_cast<std::uint16_t>(moved)});
      has = static_cast<std::uint16_t>(has - moved);
      now[to] = static_cast<std::uint16_t>(now[to] + moved);
    }
  }
}

/// The table while moves are applied to it, by bucket.
class Changed {
 public:
  explicit Changed(const ClusterView& places) : bare_(with_exceptions(places, {})) {
    for (const PlacementException& row : places.state->exceptions()) exceptions_[row.bucket].push_back(row);
    reads_ = parts_by_bucket(places.state->read_shares());
    rows_ = places.state->exceptions().size() + reads_.size();
  }

  /// Returns why the move is left out; empty: it is applied.
  std::string apply(const BalancedReplica& move, std::size_t rows_max) {
    std::vector<std::uint16_t> nodes = nodes_of(move.bucket);
    const auto source = std::find(nodes.begin(), nodes.end(), move.from);
    const bool has_target = std::find(nodes.begin(), nodes.end(), move.to) != nodes.end();
    const bool moves_reads = move.read_permille != 0;
    if (source == nodes.end() || has_target != moves_reads) return "the replicas lie otherwise by now";
    if (moves_reads) return shift_reads(move, nodes, rows_max);
    *source = move.to;
    std::vector<PlacementException> has;
    if (!find_rows(bare_, BucketId(bare_.bits(), move.bucket), sorted(std::move(nodes)), has)) {
      return "the target takes no replicas, or shares a group with another one";
    }
    const std::size_t rows = rows_ - exceptions_[move.bucket].size() + has.size();
    if (rows > rows_max) return fmt::format("the table has room for {} rows", rows_max);
    rows_ = rows;
    exceptions_[move.bucket] = std::move(has);
    if (const auto reads = reads_.find(move.bucket); reads != reads_.end()) {
      auto part = reads->second.extract(move.from);
      reads->second.erase(move.to);
      if (!part.empty()) reads->second[move.to] = part.mapped();
    }
    return {};
  }

  OverrideTable table() const {
    OverrideTable table;
    for (const auto& [bucket, rows] : exceptions_) {
      table.exceptions.insert(table.exceptions.end(), rows.begin(), rows.end());
    }
    for (const auto& [bucket, parts] : reads_) {
      for (const auto& [node, permille] : parts) table.reads.push_back({bucket, node, permille});
    }
    return table;
  }

 private:
  std::vector<std::uint16_t> nodes_of(std::uint64_t bucket) const {
    const auto rows = exceptions_.find(bucket);
    const auto has = rows == exceptions_.end() ? std::vector<PlacementException>{} : rows->second;
    return with_exceptions(bare_, has).ideal_nodes(BucketId(bare_.bits(), bucket)).to_vector();
  }

  std::string shift_reads(const BalancedReplica& move, const std::vector<std::uint16_t>& nodes, std::size_t rows_max) {
    const auto found = reads_.find(move.bucket);
    if (found == reads_.end() && rows_ + 1 > rows_max) return fmt::format("the table has room for {} rows", rows_max);
    ReadParts::mapped_type parts = parts_of(reads_, move.bucket, nodes);
    // Thousandths are rounded, so a plan may move one thousandth more than the source has.
    const std::uint16_t moved = std::min(parts[move.from], move.read_permille);
    if (moved + 1 < move.read_permille || parts[move.to] + moved > 1000) return "the reads are shared otherwise by now";
    parts[move.from] = static_cast<std::uint16_t>(parts[move.from] - moved);
    parts[move.to] = static_cast<std::uint16_t>(parts[move.to] + moved);
    if (found == reads_.end()) ++rows_;
    reads_[move.bucket] = std::move(parts);
    return {};
  }

  const ClusterView bare_;
  std::map<std::uint64_t, std::vector<PlacementException>> exceptions_;
  ReadParts reads_;
  std::size_t rows_ = 0;
};

}  // namespace

std::size_t OverrideTable::rows() const {
  std::size_t rows = exceptions.size();
  for (std::size_t i = 0; i < reads.size(); ++i) rows += i == 0 || reads[i].bucket != reads[i - 1].bucket ? 1 : 0;
  return rows;
}

ClusterView with_exceptions(const ClusterView& places, std::vector<PlacementException> exceptions) {
  auto state = std::make_shared<ClusterState>(*places.state);
  state->set_exceptions(std::move(exceptions));
  return {std::move(state), places.distribution};
}

OverrideTable table_of(const ClusterState& state) {
  return {{state.exceptions().begin(), state.exceptions().end()},
          {state.read_shares().begin(), state.read_shares().end()}};
}

OverrideTable table_of(const NodeTable& nodes) { return {nodes.exceptions, nodes.read_shares}; }

std::uint64_t change_table(ClusterRecord& record, OverrideTable table, unsigned bits, BalanceStep step) {
  std::sort(table.exceptions.begin(), table.exceptions.end());
  std::sort(table.reads.begin(), table.reads.end());
  NodeTable& nodes = record.nodes;
  if (nodes.exceptions_bits != bits) {
    if (table == OverrideTable{} && table_of(nodes) == OverrideTable{}) return 0;
    nodes.exceptions.clear();
    nodes.read_shares.clear();
    nodes.exceptions_bits = bits;
    record.balance_steps.clear();
  }
  std::sort(nodes.exceptions.begin(), nodes.exceptions.end());
  if (table == table_of(nodes)) return 0;
  step.id = ++record.balance_step;
  step.removed = difference(nodes.exceptions, table.exceptions);
  step.added = difference(table.exceptions, nodes.exceptions);
  step.reads_removed = difference(nodes.read_shares, table.reads);
  step.reads_added = difference(table.reads, nodes.read_shares);
  nodes.exceptions = std::move(table.exceptions);
  nodes.read_shares = std::move(table.reads);
  record.balance_steps.push_back(std::move(step));
  drop_old_steps(record.balance_steps);
  return record.balance_step;
}

Result<OverrideTable> table_before(const ClusterRecord& record, std::uint64_t id) {
  const auto& steps = record.balance_steps;
  const bool is_kept = std::any_of(steps.begin(), steps.end(), [&](const BalanceStep& step) { return step.id == id; });
  if (!is_kept) {
    return Status(StatusCode::NotFound,
                  fmt::format("step {} is not kept; `fjord balance history` lists those that are", id));
  }
  std::set<PlacementException> exceptions(record.nodes.exceptions.begin(), record.nodes.exceptions.end());
  std::set<ReadShare> reads(record.nodes.read_shares.begin(), record.nodes.read_shares.end());
  for (auto step = steps.rbegin(); step != steps.rend() && step->id >= id; ++step) {
    for (const PlacementException& row : step->added) exceptions.erase(row);
    exceptions.insert(step->removed.begin(), step->removed.end());
    for (const ReadShare& row : step->reads_added) reads.erase(row);
    reads.insert(step->reads_removed.begin(), step->reads_removed.end());
  }
  return OverrideTable{{exceptions.begin(), exceptions.end()}, {reads.begin(), reads.end()}};
}

std::vector<BalancedReplica> moves_between(const ClusterView& places, const OverrideTable& after,
                                           std::span<const std::uint64_t> bucket_bytes) {
  std::set<std::uint64_t> touched;
  for (const PlacementException& row : places.state->exceptions()) touched.insert(row.bucket);
  for (const PlacementException& row : after.exceptions) touched.insert(row.bucket);
  const ReadParts reads_now = parts_by_bucket(places.state->read_shares());
  const ReadParts reads_then = parts_by_bucket(after.reads);
  for (const ReadParts* reads : {&reads_now, &reads_then}) {
    for (const auto& [bucket, parts] : *reads) touched.insert(bucket);
  }
  const ClusterView then = with_exceptions(places, after.exceptions);
  std::vector<BalancedReplica> moves;
  std::vector<BalancedReplica> shifts;
  for (const std::uint64_t key : touched) {
    const BucketId bucket(places.bits(), key);
    const std::vector<std::uint16_t> old_nodes = sorted(places.ideal_nodes(bucket).to_vector());
    const std::vector<std::uint16_t> new_nodes = sorted(then.ideal_nodes(bucket).to_vector());
    const std::vector<std::uint16_t> from = without(old_nodes, new_nodes);
    const std::vector<std::uint16_t> to = without(new_nodes, old_nodes);
    ReadParts::mapped_type parts = parts_of(reads_now, key, old_nodes);
    for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
      moves.push_back({key, from[i], to[i], key < bucket_bytes.size() ? bucket_bytes[key] : 0});
      parts[to[i]] = parts[from[i]];  // A replica that moves keeps its reads.
      parts.erase(from[i]);
    }
    add_shifts(key, std::move(parts), parts_of(reads_then, key, new_nodes), shifts);
  }
  moves.insert(moves.end(), shifts.begin(), shifts.end());
  return moves;
}

TableChange with_moves(const ClusterView& places, std::span<const BalancedReplica> moves, std::size_t rows_max) {
  Changed changed(places);
  TableChange change;
  for (const BalancedReplica& move : moves) {
    std::string why = changed.apply(move, rows_max);
    if (why.empty()) {
      change.moves.push_back(move);
    } else {
      change.left_out.push_back(text_of(move) + ": " + std::move(why));
    }
  }
  change.table = changed.table();
  return change;
}

std::string text_of(const BalancedReplica& move) {
  const std::string what = move.read_permille == 0 ? fmt::format("bucket {:x}", move.bucket)
                                                   : fmt::format("{:.1f} % of the reads of bucket {:x}",
                                                                 move.read_permille / 10.0, move.bucket);
  return fmt::format("{} from storage.{} to storage.{}", what, move.from, move.to);
}

}  // namespace fjord::fleetcontroller
