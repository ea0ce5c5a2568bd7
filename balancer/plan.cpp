#include "fjord/balancer/plan.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/common/result.h"

namespace fjord::balancer {
namespace {

/// Returns the slice that has exactly this range; end() if there is none.
std::vector<Slice>::iterator find_slice(BalanceModel& model, const BucketRange& range) {
  auto it = std::lower_bound(model.slices.begin(), model.slices.end(), range.begin,
                             [](const Slice& slice, std::uint32_t begin) { return slice.range.begin < begin; });
  return it != model.slices.end() && it->range == range ? it : model.slices.end();
}

Status refused(const Move& move, std::string_view why) {
  return {StatusCode::InvalidArgument,
          fmt::format("{} of buckets {} to {} from node {} to node {}: {}", to_string(move.kind), move.range.begin,
                      move.range.end, move.from, move.to, why)};
}

Status place(const Move& move, Slice& slice) {
  if (slice.holders.find(move.to) != nullptr) return refused(move, "the target holds it already");
  if (move.from == move.to) {
    slice.holders.push_back({.node = move.to});
    slice.holders.share_equally();
    return Status::ok();
  }
  Holder* const holder = slice.holders.find(move.from);
  if (holder == nullptr) return refused(move, "the source does not hold it");
  holder->node = move.to;
  return Status::ok();
}

Status shift_reads(const Move& move, Slice& slice) {
  Holder* const from = slice.holders.find(move.from);
  Holder* const to = slice.holders.find(move.to);
  if (from == nullptr || to == nullptr) return refused(move, "both must hold it");
  if (move.share < 0.0 || move.share > from->read_share + 1e-9)
    return refused(move, "the source has less of its reads");
  from->read_share = std::max(0.0, from->read_share - move.share);
  to->read_share += move.share;
  return Status::ok();
}

/// What leaves a node that is gone needs no row, as the cluster itself finds it another place.
bool needs_rows(const Move& move, const BalanceModel& model) {
  if (move.kind == MoveKind::ReadShare) return true;
  return move.kind == MoveKind::Place && move.from != move.to && move.from < model.nodes.size() &&
         model.nodes[move.from].usable;
}

std::size_t rows_of_range(BalanceModel& model, const BucketRange& range) {
  const auto slice = find_slice(model, range);
  return slice == model.slices.end() ? 0 : rows_of(model, *slice);
}

Status merge(const Move& move, BalanceModel& model, std::vector<Slice>::iterator slice) {
  const auto next = slice + 1;
  if (next == model.slices.end()) return refused(move, "there is no slice behind it");
  if (!(next->holders == slice->holders)) return refused(move, "the two have other holders or read shares");
  if (next->in_transfer || slice->in_transfer) return refused(move, "one is in transfer");
  slice->range.end = next->range.end;
  slice->add(*next);
  model.slices.erase(next);
  return Status::ok();
}

}  // namespace

std::pair<Slice, Slice> parts_of(const Slice& slice, std::uint32_t at) {
  const double part = static_cast<double>(at - slice.range.begin) / slice.range.size();
  Slice first = slice;
  Slice second = slice;
  first.range.end = second.range.begin = at;
  first.scale_loads(part);
  first.bytes = static_cast<std::uint64_t>(static_cast<double>(slice.bytes) * part);
  second.scale_loads(1.0 - part);
  second.bytes -= first.bytes;
  return {first, second};
}

std::string_view to_string(MoveKind kind) {
  switch (kind) {
    case MoveKind::Place:
      return "place";
    case MoveKind::Split:
      return "split";
    case MoveKind::Merge:
      return "merge";
    case MoveKind::ReadShare:
      return "read share";
  }
  return "";
}

std::string_view to_string(MoveReason reason) {
  switch (reason) {
    case MoveReason::NodeGone:
      return "its node is gone";
    case MoveReason::FirstPlace:
      return "it had no node";
    case MoveReason::Hot:
      return "its node is hot";
    case MoveReason::Swap:
      return "comes back for one that left";
    case MoveReason::Cold:
      return "cold neighbours";
    case MoveReason::Home:
      return "it is cold, and needs no row at home";
    case MoveReason::TooHotToMove:
      return "too hot to move whole";
    case MoveReason::Rule:
      return "the rule of the algorithm";
  }
  return "";
}

Status apply(const Move& move, BalanceModel& model) {
  if (move.from >= model.nodes.size() || move.to >= model.nodes.size()) return refused(move, "no such node");
  const auto slice = find_slice(model, move.range);
  if (slice == model.slices.end()) return refused(move, "no slice has these bounds");
  switch (move.kind) {
    case MoveKind::Place:
      return place(move, *slice);
    case MoveKind::ReadShare:
      return shift_reads(move, *slice);
    case MoveKind::Merge:
      return merge(move, model, slice);
    case MoveKind::Split:
      break;
  }
  if (move.at <= move.range.begin || move.at >= move.range.end) return refused(move, "the cut is not inside of it");
  const auto [first, second] = parts_of(*slice, move.at);
  *slice = first;
  model.slices.insert(slice + 1, second);
  return Status::ok();
}

Status check(const Plan& plan, BalanceModel model) {
  std::uint64_t bytes = 0;
  std::size_t rows = 0;
  for (const Slice& slice : model.slices) rows += rows_of(model, slice);
  for (const Move& move : plan.moves) {
    const bool needs_row = needs_rows(move, model);
    const std::size_t before = needs_row ? rows_of_range(model, move.range) : 0;
    if (move.kind == MoveKind::Place && move.to < model.nodes.size()) {
      const BalanceNode& target = model.nodes[move.to];
      if (!target.usable || !target.accepts) return refused(move, "the target takes nothing");
      const auto slice = find_slice(model, move.range);
      if (slice == model.slices.end()) return refused(move, "no slice has these bounds");
      for (const Holder& holder : slice->holders) {
        if (holder.node != move.from && model.nodes[holder.node].group == target.group) {
          return refused(move, "another replica is in the group of the target");
        }
      }
      if (move.from != move.to && model.nodes[move.from].usable) {
        if (slice->in_transfer) return refused(move, "it is in transfer");
        bytes += slice->bytes;
        if (bytes > model.step_bytes_max) return refused(move, "the step moves more bytes than it may");
      }
    }
    FJORD_TRY(apply(move, model));
    if (!needs_row) continue;
    const std::size_t after = rows_of_range(model, move.range);
    rows += after - before;
    if (after > before && rows > model.rows_max) return refused(move, "the table of overrides has no row for it");
  }
  return Status::ok();
}

}  // namespace fjord::balancer
