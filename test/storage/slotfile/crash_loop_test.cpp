#include <catch2/catch.hpp>
#include <chrono>

#include "fjord/sim/recording_env.h"
#include "fjord/storage/memory/memory_provider.h"
#include "fjord/testing/engine.h"
#include "slotfile_world.h"

namespace fjord {

namespace {

using namespace slotfile_testing;  // NOLINT: its test
using sim::DiskImage;
using sim::RecordingEnv;

/// A store that goes through many crashes, and a model of its expected content.
class Life {
 public:
  Life(std::uint64_t seed, Durability durability) : random_(seed) {
    options_ = testing::tiny_slotfile_options("/buckets");
    options_.limits.entries_max = 6;
    options_.durability = durability;
    env_ = std::make_unique<RecordingEnv>();
    machine_ = std::make_unique<Machine>(*env_, options_);
  }

  /// Opens the store, runs some operations, and crashes at a random change of the disk. Returns an empty string, or the
  /// error.
  std::string live_and_crash() {
    if (const Status status = machine_->open(); !status) return "opening: " + status.to_string();
    if (std::string wrong = compare(); !wrong.empty()) return wrong;
    // Sometimes the crash comes while the store is opened.
    env_->end_process_after(env_->changes() + random_.below(60));
    if (random_.below(4) == 0) static_cast<void>(machine_->open());
    in_doubt_.reset();
    while (machine_->is_open() && !in_doubt_) {
      const Step step = random_step(random_, timestamp_ += 10);
      const Status status = machine_->run(step);
      if (status && step.kind == Step::Kind::Provider) {
        static_cast<void>(step.on_provider(*model_));
      } else if (is_from_the_end(status)) {
        in_doubt_ = step;
      }
    }
    machine_->close();
    env_->start_process();
    ++crashes_;
    // Durability Process promises nothing after a power loss.
    if (options_.durability == Durability::Sync && random_.below(2) == 0) lose_power();
    return {};
  }

  std::uint64_t crashes() const { return crashes_; }

 private:
  static bool is_from_the_end(const Status& status) {
    return status.code() == StatusCode::IoError || status.code() == StatusCode::Timeout;
  }

  std::string compare() {
    const Observed found = observe(machine_->provider());
    if (!found.complaint.empty()) return found.complaint;
    if (found.damaged) return "damaged";
    State expected = observe(*model_).state;
    if (found.state == expected) return {};
    if (in_doubt_ && in_doubt_->kind == Step::Kind::Provider) {
      static_cast<void>(in_doubt_->on_provider(*model_));
      if (found.state == observe(*model_).state) return {};
    }
    return "found" + to_string(found.state) + "\nexpected" + to_string(expected) +
           (in_doubt_ ? "\nand perhaps " + in_doubt_->name : "");
  }

  void lose_power() {
    std::uint64_t count = 0;
    const std::size_t changes = env_->changes();
    env_->visit_power_losses(changes, [&](const DiskImage&, const std::string&) { ++count; });
    std::uint64_t chosen = random_.below(count);
    DiskImage left;
    env_->visit_power_losses(changes, [&](const DiskImage& image, const std::string&) {
      if (chosen-- == 0) left = image;
    });
    machine_.reset();
    env_ = std::make_unique<RecordingEnv>(left);
    machine_ = std::make_unique<Machine>(*env_, options_);
  }

  Random random_;
  SlotfileOptions options_;
  std::unique_ptr<RecordingEnv> env_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<spi::PersistenceProvider> model_ = make_memory_provider();
  std::optional<Step> in_doubt_;
  std::uint64_t timestamp_ = 100;
  std::uint64_t crashes_ = 0;
};

}  // namespace

TEST_CASE("slotfile: through crash after crash, what was acknowledged is there and nothing else") {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + std::chrono::minutes(3);
  constexpr std::uint64_t kCrashesOfOne = 60;
  std::uint64_t crashes = 0;
  const std::uint64_t seeds = is_long_run() ? ~std::uint64_t{0} : 30 / kThinning;
  for (std::uint64_t seed = 1; seed <= seeds && (!is_long_run() || steady_clock::now() < end); ++seed) {
    Life life(seed, seed % 3 == 0 ? Durability::Process : Durability::Sync);
    while (life.crashes() < kCrashesOfOne) {
      const std::string wrong = life.live_and_crash();
      INFO("seed " << seed << ", crash " << life.crashes() << ": " << wrong);
      REQUIRE(wrong.empty());
    }
    crashes += life.crashes();
  }
  CHECK(crashes >= 1000 / kThinning);
  if (is_long_run()) WARN(crashes << " crashes");
}

TEST_CASE("slotfile: writes whose bucket was never made, as power was lost, do not come to be another bucket's") {
  SlotfileOptions options = testing::tiny_slotfile_options("/buckets");
  options.durability = Durability::Process;
  RecordingEnv env;
  {
    Machine machine(env, options);
    REQUIRE(machine.open());
    REQUIRE(machine.run(create_step(kHalf0)));
    REQUIRE(machine.run(put_step(kHalf0, {testing::test_put(number_in(kHalf0, 0), 10)})));
  }
  env.start_process();
  unsigned without_bucket = 0;
  env.visit_power_losses(env.changes(), [&](const DiskImage& image, const std::string& what) {
    INFO(what);
    RecordingEnv left(image);
    {
      Machine machine(left, options);
      REQUIRE(machine.open());
      const bool only_writes =
          machine.provider().stats().lost_records != 0 && observe(machine.provider()).state.empty();
      if (!only_writes) return;
      ++without_bucket;
      REQUIRE(machine.run(create_step(kHalf1)));
    }
    left.start_process();
    Machine machine(left, options);
    REQUIRE(machine.open());
    const Observed found = observe(machine.provider());
    CHECK(found.complaint.empty());
    REQUIRE(found.state.contains(kHalf1));
    CHECK(found.state.at(kHalf1).versions.empty());
  });
  CHECK(without_bucket > 0);
}

}  // namespace fjord
