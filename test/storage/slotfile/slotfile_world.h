#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fjord/common/random.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/testing/test_documents.h"

namespace fjord::slotfile_testing {

/// The newest version of one document id.
struct Version {
  std::uint64_t timestamp_us = 0;
  bool removed = false;
  std::string header;
  std::string body;

  friend auto operator<=>(const Version&, const Version&) = default;
};

struct BucketState {
  ReplicaSet replicas;
  std::map<GlobalId, Version> versions;

  friend bool operator==(const BucketState&, const BucketState&) = default;
};

/// All content that can be read from a provider.
using State = std::map<BucketId, BucketState>;

struct Observed {
  State state;
  bool damaged = false;   ///< A read returned Corruption, or take_damaged() returned a bucket.
  std::string complaint;  ///< Not empty: the ways to read contradict each other, or a read failed with another error.
};
/// Reads all buckets in every possible way.
Observed observe(spi::PersistenceProvider& provider);
/// Removes from `state` the remove entries older than `timestamp_us`, which an engine may or may not have dropped.
State without_removes_before(State state, std::uint64_t timestamp_us);
/// Returns the state as text for messages.
std::string to_string(const State& state);

/// An action on an engine. `on_provider` is also applied to a model; steps where it is null change nothing that a
/// reader can see.
struct Step {
  enum class Kind { Provider, Checkpoint, Compact, Maintain, Restart };
  std::string name;
  Kind kind = Kind::Provider;
  std::function<Status(spi::PersistenceProvider&)> on_provider = nullptr;
  /// True: once the step has returned OK, this and all earlier steps survive a power loss, whatever the engine's
  /// durability.
  bool durable = false;
  /// Used by a put_step: its bucket.
  BucketId bucket = {};
  std::vector<testing::OwnedWrite> writes = {};
  int count = 0;  ///< Used by a maintain_step: number of calls.
};

Step provider_step(std::string name, std::function<Status(spi::PersistenceProvider&)> what);
Step create_step(BucketId bucket);
Step put_step(BucketId bucket, std::vector<testing::OwnedWrite> writes,
              spi::Durability durability = spi::Durability::Process);
Step checkpoint_step();
/// Runs background work until none is left, with the smallest limit of dead bytes in a slotfile.
Step compact_step();
/// Runs `count` steps of background work, which may leave a checkpoint or a rewrite unfinished.
Step maintain_step(int count);
/// Drops the engine without closing steps and opens it again.
Step restart_step();

/// Returns any of these steps, on the buckets below. The step's writes have timestamps from `timestamp_us` on.
Step random_step(Random& random, std::uint64_t timestamp_us);

/// An engine on the disk of the caller.
class Machine {
 public:
  Machine(Env& env, SlotfileOptions options) : env_(env), options_(std::move(options)) {}

  Status open();
  void close() { provider_.reset(); }
  Status run(const Step& step);
  SlotfileProvider& provider() { return *provider_; }
  bool is_open() const { return provider_ != nullptr; }

 private:
  Env& env_;
  SlotfileOptions options_;
  MonotonicTime now_{1'000'000};
  std::unique_ptr<SlotfileProvider> provider_;
};

/// Calls maintain() until no work is left.
void settle(spi::PersistenceProvider& provider);
/// Marks the bucket as repaired, after its files were rewritten.
Status mark_repaired(spi::PersistenceProvider& provider, BucketId bucket);
/// True if FJORD_LONG is set in the environment. The tests then leave out no case and take minutes.
bool is_long_run();
/// Under a sanitizer tests take many times as long, so they run only one of kThinning cases.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t kThinning = 10;
#else
inline constexpr std::uint64_t kThinning = 1;
#endif

/// Buckets of the tests. Documents with even numbers belong to kWhole, those with odd numbers to kParent and its half.
inline const BucketId kWhole(9, 0x012);
inline const BucketId kParent(9, 0x112);
inline const BucketId kHalf0(10, 0x112);  ///< Documents with number % 4 == 1.
inline const BucketId kHalf1(10, 0x312);  ///< Documents with number % 4 == 3.
/// Returns the number of a document that belongs to `bucket`; another one for each `n`.
int number_in(BucketId bucket, int n);

}  // namespace fjord::slotfile_testing
