#include "planner.h"

#include <algorithm>

#include "fjord/common/check.h"

namespace fjord::balancer {

Planner::Planner(const BalanceModel& model)
    : model_(model), by_node_(model.nodes.size()), loads_(node_loads(model)), budget_(model.step_bytes_max) {
  count_ = model_.slices.size();
  alive_.assign(count_, true);
  links_.reserve(count_);
  for (Index index = 0; index < count_; ++index) {
    rows_ += rows_of(model_, slice(index));
    links_.emplace_back(index == 0 ? kNone : index - 1, index + 1 == count_ ? kNone : index + 1);
    for (const Holder& holder : model_.slices[index].holders) by_node_[holder.node].push_back(index);
  }
  double sum = 0.0;
  double capacity = 0.0;
  for (std::uint16_t node = 0; node < loads_.size(); ++node) {
    sum += loads_[node] * model_.nodes[node].capacity;
    if (!model_.nodes[node].usable) continue;
    capacity += model_.nodes[node].capacity;
    by_load_.emplace(loads_[node], node);
  }
  FJORD_CHECK(!by_load_.empty());
  mean_ = sum / capacity;
  plan_.imbalance_before = imbalance();
}

std::optional<Planner::Index> Planner::next(Index index) const {
  const Index next = links_[index].second;
  return next == kNone ? std::nullopt : std::optional(next);
}

std::optional<Planner::Index> Planner::previous(Index index) const {
  const Index previous = links_[index].first;
  return previous == kNone ? std::nullopt : std::optional(previous);
}

double Planner::imbalance() const { return mean_ <= 0.0 ? 1.0 : by_load_.rbegin()->first / mean_; }

bool Planner::may_hold(Index index, std::uint16_t to) const {
  const BalanceNode& target = model_.nodes[to];
  if (!target.usable || !target.accepts) return false;
  return std::none_of(slice(index).holders.begin(), slice(index).holders.end(), [&](const Holder& holder) {
    return holder.node == to || model_.nodes[holder.node].group == target.group;
  });
}

bool Planner::is_allowed(Index index, std::uint16_t from, std::uint16_t to) const {
  const BalanceNode& target = model_.nodes[to];
  if (!target.usable || !target.accepts || from == to) return false;
  if (slice(index).in_transfer && model_.nodes[from].usable) return false;
  bool found = false;
  for (const Holder& holder : slice(index).holders) {
    if (holder.node == from) {
      found = true;
    } else if (holder.node == to || model_.nodes[holder.node].group == target.group) {
      return false;
    }
  }
  return found;
}

std::int64_t Planner::rows_added(Index index, std::uint16_t from, std::uint16_t to) const {
  if (model_.homes == nullptr || !model_.nodes[from].usable) return 0;
  std::int64_t added = 0;
  const BucketRange& range = slice(index).range;
  for (std::uint32_t bucket = range.begin; bucket < range.end; ++bucket) {
    const NodeList& home = (*model_.homes)[bucket];
    added += static_cast<int>(home.contains(from)) - static_cast<int>(home.contains(to));
  }
  return added;
}

bool Planner::may_move(Index index, std::uint16_t from, std::uint16_t to) const {
  if (!is_allowed(index, from, to)) return false;
  if (!model_.nodes[from].usable) return true;
  const std::int64_t rows = rows_added(index, from, to);
  return slice(index).bytes <= budget_ && (rows <= 0 || static_cast<std::size_t>(rows) <= rows_left());
}

double Planner::load_of(Index index, const Holder& holder) const {
  return slice(index).load_at(holder) / model_.nodes[holder.node].capacity;
}

void Planner::move(Index index, std::uint16_t from, std::uint16_t to, MoveReason reason) {
  FJORD_CHECK(may_move(index, from, to));
  Slice& moved = model_.slices[index];
  Holder& holder = *moved.holders.find(from);
  const bool counts = model_.nodes[from].usable;
  const double gain = load_of(index, holder);
  rows_ = static_cast<std::size_t>(static_cast<std::int64_t>(rows_) + rows_added(index, from, to));
  record({.kind = MoveKind::Place,
          .range = moved.range,
          .from = from,
          .to = to,
          .bytes = moved.bytes,
          .gain = gain,
          .reason = reason});
  add_load(from, -gain);
  drop(from, index);
  holder.node = to;
  add_load(to, load_of(index, holder));
  by_node_[to].push_back(index);
  if (counts) budget_ -= moved.bytes;
}

void Planner::place(Index index, std::uint16_t to, MoveReason reason) {
  FJORD_CHECK(may_hold(index, to));
  Slice& placed = model_.slices[index];
  for (const Holder& holder : placed.holders) add_load(holder.node, -load_of(index, holder));
  record(
      {.kind = MoveKind::Place, .range = placed.range, .from = to, .to = to, .bytes = placed.bytes, .reason = reason});
  placed.holders.push_back({.node = to});
  placed.holders.share_equally();
  for (const Holder& holder : placed.holders) add_load(holder.node, load_of(index, holder));
  by_node_[to].push_back(index);
}

void Planner::shift_reads(Index index, std::uint16_t from, std::uint16_t to, double share) {
  Slice& shifted = model_.slices[index];
  Holder& source = *shifted.holders.find(from);
  Holder& target = *shifted.holders.find(to);
  share = std::min(share, source.read_share);
  const double load = share * shifted.reads;
  record({.kind = MoveKind::ReadShare,
          .range = shifted.range,
          .from = from,
          .to = to,
          .share = share,
          .gain = load / model_.nodes[from].capacity,
          .reason = MoveReason::Hot});
  rows_ -= rows_of(model_, shifted);
  source.read_share -= share;
  target.read_share += share;
  rows_ += rows_of(model_, shifted);
  add_load(from, -load / model_.nodes[from].capacity);
  add_load(to, load / model_.nodes[to].capacity);
}

Planner::Index Planner::split(Index index, std::uint32_t at, MoveReason reason) {
  record({.kind = MoveKind::Split, .range = slice(index).range, .at = at, .reason = reason});
  const auto [first, second] = parts_of(slice(index), at);
  const Index added = index_end();
  model_.slices[index] = first;
  model_.slices.push_back(second);
  alive_.push_back(true);
  links_.emplace_back(index, links_[index].second);
  if (links_[index].second != kNone) links_[links_[index].second].first = added;
  links_[index].second = added;
  ++count_;
  for (const Holder& holder : second.holders) by_node_[holder.node].push_back(added);
  return added;
}

void Planner::merge_with_next(Index index) {
  const Index gone = *next(index);
  record({.kind = MoveKind::Merge, .range = slice(index).range, .reason = MoveReason::Cold});
  Slice& kept = model_.slices[index];
  const Slice& merged = slice(gone);
  FJORD_CHECK(kept.holders == merged.holders && !kept.in_transfer && !merged.in_transfer);
  kept.range.end = merged.range.end;
  kept.add(merged);
  for (const Holder& holder : merged.holders) drop(holder.node, gone);
  alive_[gone] = false;
  links_[index].second = links_[gone].second;
  if (links_[gone].second != kNone) links_[links_[gone].second].first = index;
  --count_;
}

Plan Planner::take_plan() {
  plan_.imbalance_after = imbalance();
  return std::move(plan_);
}

void Planner::add_load(std::uint16_t node, double load) {
  if (!model_.nodes[node].usable) {
    loads_[node] += load;
    return;
  }
  by_load_.erase({loads_[node], node});
  loads_[node] += load;
  by_load_.emplace(loads_[node], node);
}

void Planner::drop(std::uint16_t node, Index index) {
  std::vector<Index>& held = by_node_[node];
  const auto it = std::find(held.begin(), held.end(), index);
  FJORD_CHECK(it != held.end());
  *it = held.back();
  held.pop_back();
}

void Planner::record(const Move& move) {
  plan_.bytes += move.bytes;
  plan_.moves.push_back(move);
}

std::optional<std::uint16_t> coolest_for(const Planner& planner, Planner::Index index) {
  for (const auto& [load, node] : planner.by_load()) {
    if (planner.may_hold(index, node)) return node;
  }
  return std::nullopt;
}

void leave_gone_nodes(Planner& planner) {
  struct Homeless {
    Planner::Index index;
    std::uint16_t from;
    double load;
  };
  std::vector<Homeless> homeless;
  for (std::uint16_t node = 0; node < planner.model().nodes.size(); ++node) {
    if (planner.model().nodes[node].usable) continue;
    for (const Planner::Index index : planner.slices_of(node)) {
      const Slice& slice = planner.slice(index);
      homeless.push_back({index, node, slice.load_at(*slice.holders.find(node))});
    }
  }
  std::sort(homeless.begin(), homeless.end(), [](const Homeless& a, const Homeless& b) {
    return a.load != b.load ? a.load > b.load : a.index < b.index;
  });
  for (const Homeless& item : homeless) {
    for (const auto& [load, node] : planner.by_load()) {
      if (!planner.is_allowed(item.index, item.from, node)) continue;
      planner.move(item.index, item.from, node, MoveReason::NodeGone);
      break;
    }
  }
}

std::optional<std::uint32_t> cut_of(const Planner& planner, Planner::Index index) {
  const Slice& slice = planner.slice(index);
  const BucketRange& range = slice.range;
  if (range.size() < 2) return std::nullopt;
  const std::vector<HotBucket>& hot = planner.model().hot;
  auto it = std::lower_bound(hot.begin(), hot.end(), range.begin,
                             [](const HotBucket& bucket, std::uint32_t begin) { return bucket.bucket < begin; });
  const HotBucket* hottest = nullptr;
  for (; it != hot.end() && it->bucket < range.end; ++it) {
    if (hottest == nullptr || it->load > hottest->load) hottest = &*it;
  }
  if (hottest != nullptr && hottest->load > slice.load() / 2) {
    return hottest->bucket == range.begin ? range.begin + 1 : hottest->bucket;
  }
  return range.begin + range.size() / 2;
}

}  // namespace fjord::balancer
