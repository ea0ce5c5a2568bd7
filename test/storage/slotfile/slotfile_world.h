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

/// Everything that can be read from a provider.
using State = std::map<BucketId, BucketState>;

struct Observed {
  State state;
  bool damaged = false;   ///< Some read answered Corruption, or take_damaged() named a bucket.
  std::string complaint;  ///< Not empty: the ways to read contradict each other, or one failed for another reason.
};
/// Reads all buckets in every way that there is.
Observed observe(spi::PersistenceProvider& provider);
/// Without removed entries older than this, which an engine may have forgotten or not.
State without_removes_before(State state, std::uint64_t timestamp_us);
/// In words, for messages.
std::string to_string(const State& state);

/// Something that is done to an engine. `on_provider` is done to a model too; what is null leaves no trace that a
/// reader could see.
struct Step {
  enum class Kind { Provider, Checkpoint, Compact, Maintain, Restart };
  std::string name;
  Kind kind = Kind::Provider;
  std::function<Status(spi::PersistenceProvider&)> on_provider = nullptr;
  /// Once it returned OK, it and everything before it survives a loss of power whatever the engine's durability is.
  bool durable = false;
  /// Of a put_step.
  BucketId bucket = {};
  std::vector<testing::OwnedWrite> writes = {};
  int count = 0;  ///< Of a maintain_step.
};

Step provider_step(std::string name, std::function<Status(spi::PersistenceProvider&)> what);
Step create_step(BucketId bucket);
Step put_step(BucketId bucket, std::vector<testing::OwnedWrite> writes,
              spi::Durability durability = spi::Durability::Process);
Step checkpoint_step();
/// Background work until nothing is left, with the least that may be dead in a slotfile.
Step compact_step();
/// Some steps of background work, which may leave a checkpoint or a rewrite half done.
Step maintain_step(int count);
/// The engine is closed without a word and opened again.
Step restart_step();

/// Any of them, about the buckets below; what it writes has timestamps from `timestamp_us` to a few more.
Step random_step(Random& random, std::uint64_t timestamp_us);

/// An engine on somebody's disk.
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

/// maintain() until there is nothing left to do.
void settle(spi::PersistenceProvider& provider);
/// FJORD_LONG is set in the environment: the tests leave nothing out, and take minutes.
bool is_long_run();
/// Under a sanitizer everything takes many times as long: tests that take one of many cases take one of so many of
/// those.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t kThinning = 10;
#else
inline constexpr std::uint64_t kThinning = 1;
#endif

/// Two buckets' worth of documents: even numbers belong to kWhole, odd ones to the two halves of kParent.
inline const BucketId kWhole(9, 0x012);
inline const BucketId kParent(9, 0x112);
inline const BucketId kHalf0(10, 0x112);  ///< number % 4 == 1
inline const BucketId kHalf1(10, 0x312);  ///< number % 4 == 3
/// A document that belongs to `bucket`; `n` tells several of them apart.
int number_in(BucketId bucket, int n);

}  // namespace fjord::slotfile_testing
