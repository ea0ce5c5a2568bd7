#include <catch2/catch.hpp>
#include <optional>
#include <set>

#include "fjord/sim/sim_env.h"
#include "fjord/storage/memory/memory_provider.h"
#include "fjord/testing/engine.h"
#include "slotfile_world.h"

namespace fjord {

namespace {

using namespace slotfile_testing;  // NOLINT: its test
using sim::FileFault;
using sim::FileOperation;
using sim::FileOperations;
using Effect = sim::FileFault::Effect;

constexpr int kSteps = 30;

std::vector<Step> random_trace(std::uint64_t seed) {
  Random random(seed);
  std::vector<Step> steps;
  for (const BucketId bucket : {kWhole, kHalf0, kHalf1}) {
    steps.push_back(create_step(bucket));
  }
  for (std::uint64_t i = 0; i < kSteps; ++i) steps.push_back(random_step(random, 100 + 10 * i));
  return steps;
}

/// The fault of a run.
struct Injection {
  FileFault fault;
  Durability durability = Durability::Process;
  bool lose_power = false;  ///< True: the power is cut at the end of the run.
};

/// True for a fault that is not reported: its data may be missing, which is noticed later or, at the end of the
/// journal, never.
bool is_silent(const Injection& injection) {
  return injection.fault.effect == Effect::LoseWrite || injection.fault.effect == Effect::MisdirectWrite;
}

/// A run of a trace on a disk that fails once.
class Run {
 public:
  Run(const std::vector<Step>& steps, std::uint64_t seed, const Injection& injection)
      : steps_(steps),
        injection_(injection),
        env_({.seed = seed, .power_loss = injection.lose_power || injection.fault.effect == Effect::FailSyncOldData}),
        machine_(env_, options()) {}

  /// Returns an empty string, or the error.
  std::string go() {
    if (injection_.fault.count > 0) env_.inject(injection_.fault);
    open_twice();
    for (const Step& step : steps_) {
      if (!failure_.empty()) return failure_;
      do_step(step);
    }
    if (failure_.empty()) restart_and_compare();
    return failure_;
  }

  const sim::SimEnv& env() const { return env_; }

 private:
  SlotfileOptions options() const {
    SlotfileOptions options = testing::tiny_slotfile_options("/buckets");
    options.limits.scrub_bytes_per_second = 0;
    options.limits.entries_max = 6;
    options.open_files_max = 1;
    options.durability = injection_.durability;
    return options;
  }

  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

  /// Opens the engine, twice if the fault hits the first attempt.
  void open_twice() {
    if (machine_.open()) return;
    if (const Status status = machine_.open(); !status) fail("opening twice: " + status.to_string());
  }

  void do_step(const Step& step) {
    const std::uint64_t hits = env_.faults_hit();
    const std::uint64_t syncs = env_.operations(FileOperation::Sync);
    const std::uint64_t writes = env_.operations(FileOperation::Write);
    const bool healthy = machine_.provider().health().is_ok();
    const Status status = step.writes.empty() ? machine_.run(step) : write(step);
    if (!machine_.is_open()) open_twice();
    if (!failure_.empty()) return;
    if (status) {
      if (!healthy && step.kind == Step::Kind::Provider && env_.operations(FileOperation::Write) != writes_) {
        fail(step.name + " succeeded after a sync had failed");
      }
      // An operation without effect may still succeed, judged by the state before the failed sync. After a lost split,
      // to create one of its halves has no effect either: it must not appear in the model without the split.
      const bool had_effect = !is_silent(injection_) || env_.operations(FileOperation::Write) != writes;
      if (step.kind == Step::Kind::Provider && healthy && had_effect) done_.push_back(step);
    } else if (status.code() == StatusCode::Timeout && step.kind == Step::Kind::Provider) {
      if (machine_.provider().health()) fail(step.name + " is in doubt, and the engine goes on");
      if (!in_doubt_) in_doubt_ = done_.size();
      done_.push_back(step);
    }
    writes_ = env_.operations(FileOperation::Write);
    if (!healthy && step.kind != Step::Kind::Restart && env_.operations(FileOperation::Sync) != syncs) {
      fail(step.name + " syncs again after a sync had failed");
    }
    if (step.kind == Step::Kind::Restart) settle_doubt();
    if (env_.faults_hit() != hits && !is_silent(injection_)) {
      check_sync_is_final(step);
      // After FailSyncOldData readers see old data, whose checksums do not verify.
      if (injection_.fault.effect != Effect::FailSyncOldData) compare("after the fault in " + step.name);
    }
  }

  /// One of several writes may fail if an index cannot be read.
  Status write(const Step& step) {
    const auto results = testing::apply(machine_.provider(), step.bucket, step.writes);
    std::vector<testing::OwnedWrite> ok;
    Status failure;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].status) ok.push_back(step.writes[i]);
      if (!results[i].status) failure = results[i].status;
    }
    if (!failure && !ok.empty()) done_.push_back(put_step(step.bucket, ok));
    return failure;
  }

  void check_sync_is_final(const Step& step) {
    const bool of_sync = injection_.fault.operations.contains(FileOperation::Sync) &&
                         !injection_.fault.operations.contains(FileOperation::Read);
    // The error of a background job is reported at the next step.
    if (of_sync && step.kind == Step::Kind::Maintain) static_cast<void>(machine_.run(maintain_step(1)));
    if (of_sync && step.kind != Step::Kind::Restart && machine_.provider().health()) {
      fail("a sync failed in " + step.name + ", and the engine goes on");
    }
  }

  /// After a restart the state shows whether the operation in doubt was applied.
  void settle_doubt() {
    if (!in_doubt_) return;
    const State state = observe(machine_.provider()).state;
    if (state != model()) done_.erase(done_.begin() + static_cast<std::ptrdiff_t>(*in_doubt_));
    in_doubt_.reset();
  }

  /// Returns the state after the operations that succeeded, except `without`.
  State model(std::optional<std::size_t> without = {}) const {
    const auto provider = make_memory_provider();
    for (std::size_t i = 0; i < done_.size(); ++i) {
      if (i != without) static_cast<void>(done_[i].on_provider(*provider));
    }
    return observe(*provider).state;
  }

  void compare(const std::string& when) {
    const Observed found = observe(machine_.provider());
    if (!found.complaint.empty()) return fail(when + ": " + found.complaint);
    if (is_silent(injection_)) return compare_after_silence(when, found);
    if (found.damaged) return fail(when + ": damaged");
    if (found.state == model() || (in_doubt_ && found.state == model(in_doubt_))) return;
    fail(when + ": found" + to_string(found.state) + "\nexpected" + to_string(model()));
  }

  /// I2 and I13: all entries read were written, and missing entries are reported, unless they were at the end of the
  /// journal when the engine was opened.
  void compare_after_silence(const std::string& when, const Observed& found) {
    check_all_was_written(when, found.state);
    if (found.damaged || injection_.fault.effect == Effect::MisdirectWrite || found.state == model()) return;
    for (std::size_t lost = 0; lost < done_.size(); ++lost) {
      if (found.state == model(lost)) return;
    }
    fail(when + ": found" + to_string(found.state) + "\nexpected" + to_string(model()));
  }

  void check_all_was_written(const std::string& when, const State& state) {
    std::map<GlobalId, std::set<Version>> written;
    for (const Step& step : done_) {
      for (const testing::OwnedWrite& write : step.writes) {
        written[write.gid].insert({write.timestamp.us, write.remove, write.header, write.body});
      }
    }
    for (const auto& [bucket, content] : state) {
      for (const auto& [gid, version] : content.versions) {
        if (!written[gid].contains(version)) fail(when + ": a version that nobody wrote");
      }
    }
  }

  void restart_and_compare() {
    machine_.close();
    env_.clear_faults();
    if (injection_.lose_power) env_.lose_power();
    open_twice();
    if (!failure_.empty()) return;
    compare("after a restart");
    if (is_silent(injection_)) return;
    settle_doubt();
    const State before = observe(machine_.provider()).state;
    for (const auto& [bucket, content] : before) {
      const Step late = put_step(bucket, {testing::test_put(number_in(bucket, 1), 1'000'000)});
      if (const Status status = machine_.run(late); !status) return fail("afterwards: " + status.to_string());
    }
    if (const Status status = machine_.run(checkpoint_step()); !status) return fail("late: " + status.to_string());
    if (const Status status = machine_.open(); !status) return fail("late: " + status.to_string());
    State after = observe(machine_.provider()).state;
    for (const auto& [bucket, content] : before) {
      const testing::OwnedWrite late = testing::test_put(number_in(bucket, 1), 1'000'000);
      State expected = before;
      expected[bucket].versions[late.gid] = {1'000'000, false, late.header, late.body};
      if (after[bucket] != expected[bucket]) fail("after writing and another restart: " + to_string(after));
    }
  }

  const std::vector<Step>& steps_;
  const Injection injection_;
  sim::SimEnv env_;
  Machine machine_;
  std::vector<Step> done_;               ///< Steps that succeeded, and the one in doubt.
  std::optional<std::size_t> in_doubt_;  ///< Index in done_ of the step in doubt.
  std::uint64_t writes_ = 0;
  std::string failure_;
};

std::string words(const Injection& injection) {
  return std::string(to_string(injection.fault.code)) + " effect " +
         std::to_string(static_cast<int>(injection.fault.effect)) + " at operation " +
         std::to_string(injection.fault.skip) + (injection.durability == Durability::Sync ? ", sync" : ", process") +
         (injection.lose_power ? ", power lost" : "");
}

/// Runs all traces with the fault at every operation that it can hit, or at every `stride`-th.
void sweep(Injection injection, std::uint64_t stride, std::uint64_t least) {
  const std::uint64_t traces = is_long_run() ? 250 : 50 / kThinning;
  std::uint64_t injections = 0;
  std::uint64_t hits = 0;
  for (std::uint64_t seed = 1; seed <= traces; ++seed) {
    const std::vector<Step> steps = random_trace(seed);
    std::uint64_t count = 0;
    {
      Injection none = injection;
      none.fault.count = 0;
      Run run(steps, seed, none);
      const std::string failure = run.go();
      INFO("seed " << seed << " without a fault: " << failure);
      REQUIRE(failure.empty());
      for (int operation = 0; operation < static_cast<int>(sim::kFileOperations); ++operation) {
        const auto one = static_cast<FileOperation>(operation);
        if (injection.fault.operations.contains(one)) count += run.env().operations(one);
      }
    }
    for (std::uint64_t k = is_long_run() ? 0 : seed % stride; k < count; k += is_long_run() ? 1 : stride) {
      injection.fault.skip = k;
      Run run(steps, seed, injection);
      const std::string failure = run.go();
      ++injections;
      hits += run.env().faults_hit();
      if (failure.empty()) continue;
      INFO("seed " << seed << ", " << words(injection) << ": " << failure);
      REQUIRE(failure.empty());
    }
  }
  CHECK(hits > least / kThinning);
  if (is_long_run()) WARN(words(injection) << " (the last one): " << injections << " injections, " << hits << " hits");
}

}  // namespace

TEST_CASE("slotfile: an error of any one file operation has no effect, or is said to be in doubt") {
  Injection injection;
  injection.fault.operations = FileOperations::all();
  injection.fault.code = GENERATE(StatusCode::IoError, StatusCode::NoSpace);
  sweep(injection, 7, 500);
}

TEST_CASE("slotfile: a write that fails after it stored everything has no effect") {
  Injection injection;
  injection.fault.operations = FileOperation::Write;
  injection.fault.effect = Effect::FailAfterwards;
  sweep(injection, 2, 500);
}

TEST_CASE("slotfile: a file that cannot be opened once is none that was written") {
  Injection injection;
  injection.fault.operations = FileOperation::Open | FileOperation::Create;
  sweep(injection, 2, 500);
}

TEST_CASE("slotfile: with durability sync an error of any one file operation and a loss of power lose nothing") {
  Injection injection;
  injection.fault.operations = FileOperations::all();
  injection.durability = Durability::Sync;
  injection.lose_power = true;
  sweep(injection, 7, 300);
}

TEST_CASE("slotfile: after any failed sync nothing is written any more, and what was acknowledged is there later") {
  Injection injection;
  injection.fault.operations = FileOperation::Sync;
  injection.fault.effect = GENERATE(Effect::Fail, Effect::FailSyncOldData);
  injection.durability = Durability::Sync;
  injection.lose_power = true;
  sweep(injection, 2, 200);
}

TEST_CASE("slotfile: a lost or misdirected write is never read as something else, and is reported") {
  Injection injection;
  injection.fault.operations = FileOperation::Write;
  injection.fault.effect = GENERATE(Effect::LoseWrite, Effect::MisdirectWrite);
  sweep(injection, 3, 200);
}

TEST_CASE("slotfile: on a full disk nothing is lost, removes work, and writes do when there is space again (I14)") {
  int removes = 0;
  for (std::uint64_t capacity = 16 << 10; capacity < 48 << 10; capacity += 1000) {
    INFO("capacity " << capacity);
    sim::SimEnv env;
    Machine machine(env, testing::tiny_slotfile_options("/buckets"));
    REQUIRE(machine.open().is_ok());
    REQUIRE(machine.provider().create_bucket(kWhole).is_ok());
    env.set_capacity(capacity);
    int stored = 0;
    Status status;
    while (stored < 300) {
      status = machine.run(put_step(kWhole, {testing::test_put(number_in(kWhole, stored), 10, std::string(300, 'x'))}));
      if (!status) break;
      ++stored;
    }
    REQUIRE(status.code() == StatusCode::NoSpace);
    CHECK(machine.provider().health().is_ok());
    settle(machine.provider());
    CHECK(machine.provider().bucket_info(kWhole)->documents == static_cast<std::uint64_t>(stored));
    if (machine.run(put_step(kWhole, {testing::test_remove(number_in(kWhole, 0), 20)}))) ++removes;
    const Status reopened = machine.open();
    INFO(reopened.to_string());
    REQUIRE(reopened.is_ok());
    CHECK(observe(machine.provider()).state[kWhole].versions.size() == static_cast<std::size_t>(stored));
    env.set_capacity(1 << 20);
    settle(machine.provider());
    CHECK(machine.run(put_step(kWhole, {testing::test_put(number_in(kWhole, stored), 10)})).is_ok());
    CHECK(machine.provider().checkpoint().is_ok());
  }
  CHECK(removes > 0);
}

}  // namespace fjord
