#include "fjord/sim/data_router.h"

namespace fjord::sim {

void DataRouter::take(const DataChange& change) {
  if (options_.order == ProcessingOrder::AsTheyArrive) return process(change);
  changes_.push_back(change);
  proceed();
}

void DataRouter::take(const Quantum& quantum) {
  if (options_.order == ProcessingOrder::AsTheyArrive) return process(quantum);
  quantums_.push_back(quantum);
  proceed();
}

void DataRouter::proceed() {
  while (!quantums_.empty()) {
    const std::uint64_t needed = quantums_.front().clock;
    while (clock_ < needed && !changes_.empty()) {
      process(changes_.front());
      clock_ = changes_.front().clock;
      changes_.pop_front();
    }
    if (clock_ < needed) return;
    process(quantums_.front());
    quantums_.pop_front();
  }
}

void DataRouter::process(const DataChange& change) {
  if (change.version == 0) {
    items_.erase(change.item);
  } else {
    items_[change.item] = change.version;
  }
  if (owners_[slice_of(change.item)] == options_.slave) send_(change.item, change.version, change.clock);
}

void DataRouter::process(const Quantum& quantum) {
  for (const SliceMove& move : quantum.moves) process(move);
}

void DataRouter::process(const SliceMove& move) {
  owners_[move.slice] = move.to;
  if (options_.slave != move.from && options_.slave != move.to) return;
  std::vector<std::uint32_t> items = move.items;
  if (options_.moved == MovedItems::OwnCopy) {
    items.clear();
    for (const auto& [item, version] : items_) {
      if (slice_of(item) == move.slice) items.push_back(item);
    }
  }
  for (const std::uint32_t item : items) {
    const auto known = items_.find(item);
    if (options_.slave == move.from) {
      send_(item, 0, 0);
    } else if (known != items_.end()) {
      send_(item, known->second, 0);
    }
  }
}

}  // namespace fjord::sim
