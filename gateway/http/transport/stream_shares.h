#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "fjord/common/thread_annotations.h"

namespace fjord::gateway {

/// The share of each client in answers that last as long as their clients like. A client has a share for each group of
/// paths, too: subscriptions that last for days leave its visits alone.
///
/// Threading: any thread.
class StreamShares {
 public:
  struct Limits {
    std::size_t client_max = 128;  ///< Answers of one client.
    std::size_t group_max = 32;    ///< Answers of one client in one group of paths.
  };

  /// Counts one answer until it is destroyed. Lifetime: StreamShares outlives it.
  class Share {
   public:
    Share(StreamShares& shares, std::string client, std::string_view group)
        : shares_(shares), client_(std::move(client)), group_(group) {}
    ~Share() { shares_.give_back(*this); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    friend class StreamShares;
    StreamShares& shares_;
    const std::string client_;
    const std::string_view group_;
  };

  explicit StreamShares(const Limits& limits) : limits_(limits) {}
  StreamShares() : StreamShares(Limits{}) {}

  /// Returns null if the client has all of its share. `group` is a constant.
  std::unique_ptr<Share> take(const std::string& client, std::string_view group);

 private:
  struct Count {
    std::size_t all = 0;
    std::map<std::string_view, std::size_t> groups;
  };

  void give_back(const Share& share);

  const Limits limits_;
  std::mutex mutex_;
  std::map<std::string, Count> clients_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord::gateway
