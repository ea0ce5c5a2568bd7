#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "fjord/common/runtime.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/rpc/transport.h"
#include "local_buckets.h"

namespace fjord::storage {

/// Answers the polls of the fleet controller with what the stripes report of themselves. A poll waits for the stripes
/// for a moment only, and is then answered with what they reported before: a node that has a lot to do must not look as
/// if it were silent. The first polls after the start wait longer. A stripe that does not get to the question for
/// seconds hangs, for example on its disk, and the answer is an error.
///
/// Threading: any thread. Lifetime: `runtime` outlives it. It outlives the executors of the stripes.
class PollAnswers {
 public:
  struct Hooks {
    std::function<void(std::size_t stripe)> ask;  ///< Lets the stripe call reported().
    /// Fills in all that does not come from stripes.
    std::function<void(rpc::PollReply& reply, bool wants_settings)> fill_in;
  };
  /// How a stripe is.
  struct Condition {
    Status health;  ///< An error: its disk has failed, and the node no longer counts as up.
    Status fault;   ///< An error: writes or background work that fail at present.
  };
  PollAnswers(std::string node, std::size_t stripes, Runtime& runtime, Hooks hooks);

  void add(rpc::Responder respond, bool wants_settings);
  /// Answers nothing any more; polls that wait are dropped. Called before what the hooks use ends.
  void close();
  void reported(std::size_t stripe, const LocalBuckets::Totals& totals, Condition condition);
  /// Returns the number of buckets on all stripes, as last reported.
  std::uint64_t buckets() const;

 private:
  struct Stripe {
    LocalBuckets::Totals totals;
    Condition condition;
    std::uint64_t poll = 0;  ///< Number of the newest poll before the report; 0: it has not reported yet.
    bool is_asked = false;   ///< A question is in the stripe's queue.
    MonotonicTime asked_at;  ///< When it was asked last.
  };
  struct Poll {
    std::uint64_t number = 0;
    rpc::Responder respond;
    bool wants_settings = false;
  };
  /// Answers the polls up to this number, once every stripe has reported since the start.
  void answer(std::uint64_t up_to);
  rpc::PollReply reply(bool wants_settings) const;

  const std::string node_;
  const Clock& clock_;
  Hooks hooks_;
  Histogram& wait_;
  mutable std::mutex mutex_;
  std::vector<Stripe> stripes_ FJORD_GUARDED_BY(mutex_);
  std::deque<Poll> polls_ FJORD_GUARDED_BY(mutex_);  ///< In the order of their numbers.
  std::uint64_t last_poll_ FJORD_GUARDED_BY(mutex_) = 0;
  bool is_closed_ FJORD_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Executor> executor_;  // The last member, because its tasks use the others.
};

}  // namespace fjord::storage
