#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

namespace fjord::sim {

/// A change in the backend database [KBD 2020, 6.3.8]. Changes are numbered from 1 by the database's clock.
struct DataChange {
  std::uint64_t clock = 0;
  std::uint32_t item = 0;
  /// Version of the item from here on; 0: it is removed.
  std::uint64_t version = 0;
};

/// A slice goes from one slave to another.
struct SliceMove {
  std::uint32_t slice = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  /// Items (numbers of documents) of the slice that the mapper had in its index when it decided on the move.
  std::vector<std::uint32_t> items;
};

/// All moves of one iteration of the balancing algorithm, and the last change that the mapper had processed before.
struct Quantum {
  std::uint64_t clock = 0;
  std::vector<SliceMove> moves;
};

/// The moment at which a distributor processes what has arrived.
enum class ProcessingOrder {
  AsTheyArrive,
  /// Algorithm 3 of [KBD 2020, 6.3.8]: a quantum after the changes up to its clock, a change after the quantum that has
  /// seen it.
  Causal
};

/// Decides from where a distributor takes the items of a slice that moves.
enum class MovedItems {
  NamedByMapper,  ///< The mapper lists the items in the quantum, as in figure 6.4.
  OwnCopy         ///< The distributor takes the items of the slice that it knows itself.
};

/// The core of a distributor, which sends the data of one slave [KBD 2020, 6.3.4]. It knows all items and all slices.
class DataRouter {
 public:
  struct Options {
    ProcessingOrder order = ProcessingOrder::Causal;
    MovedItems moved = MovedItems::NamedByMapper;
    std::uint32_t slave = 0;
    std::uint32_t slices = 1;
  };
  /// Called for each item that changes on the slave. `version`: the item's new version; 0: the slave is to remove it.
  /// `clock`: that of the change that is passed on; 0: a move is the reason.
  using Send = std::function<void(std::uint32_t item, std::uint64_t version, std::uint64_t clock)>;

  /// `owners` has the slave of each slice, `items` the version of each item that exists at first.
  DataRouter(Options options, std::vector<std::uint32_t> owners, std::map<std::uint32_t, std::uint64_t> items,
             Send send)
      : options_(options), owners_(std::move(owners)), items_(std::move(items)), send_(std::move(send)) {}

  /// Receives a change or a quantum. Changes arrive in the order of their clocks, and so do quantums.
  void take(const DataChange& change);
  void take(const Quantum& quantum);

  /// Number of quantums that wait for earlier changes, plus changes that wait for a quantum (ProcessingOrder::Causal).
  std::size_t waiting() const { return changes_.size() + quantums_.size(); }

 private:
  void proceed();
  void process(const DataChange& change);
  void process(const Quantum& quantum);
  void process(const SliceMove& move);
  std::uint32_t slice_of(std::uint32_t item) const { return item % options_.slices; }

  Options options_;
  std::vector<std::uint32_t> owners_;
  std::map<std::uint32_t, std::uint64_t> items_;
  Send send_;
  std::uint64_t clock_ = 0;
  std::deque<DataChange> changes_;
  std::deque<Quantum> quantums_;
};

}  // namespace fjord::sim
