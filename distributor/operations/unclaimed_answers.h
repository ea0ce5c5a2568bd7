#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace fjord::distributor {

/// Keeps batches that were answered in part, until their clients ask for the other results. Each part has its own
/// number, so a duplicate of a request that was answered finds nothing. Confined to the distributor's executor.
template <typename Batch>
class UnclaimedAnswers {
 public:
  /// `first` is above every number that an earlier process of this distributor used.
  explicit UnclaimedAnswers(std::uint64_t first) : next_(first) {}

  /// Keeps the batch. Returns the number by which the client asks for the other results.
  std::uint64_t add(std::shared_ptr<Batch> batch) {
    batches_.emplace(next_, std::move(batch));
    return next_++;
  }
  /// Removes and returns a batch. Returns null if the number is unknown or belongs to another client.
  std::shared_ptr<Batch> take(std::uint64_t number, std::uint64_t client) {
    const auto at = batches_.find(number);
    if (at == batches_.end() || at->second->request.client_id != client) return nullptr;
    std::shared_ptr<Batch> batch = std::move(at->second);
    batches_.erase(at);
    return batch;
  }
  void drop(std::uint64_t number) { batches_.erase(number); }
  std::size_t size() const { return batches_.size(); }

 private:
  std::map<std::uint64_t, std::shared_ptr<Batch>> batches_;
  std::uint64_t next_;
};

}  // namespace fjord::distributor
