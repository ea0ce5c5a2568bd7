#include "crash_explorer.h"

#include <algorithm>
#include <fmt/core.h>

#include "fjord/common/check.h"
#include "fjord/storage/memory/memory_provider.h"

namespace fjord::slotfile_testing {

namespace {

/// The effect of the steps on an engine that cannot crash: the states after zero, one, two, ... steps.
struct History {
  std::vector<State> states;
  std::vector<bool> succeeds;
};

History history_of(const std::vector<Step>& steps, std::uint64_t forget_before_us) {
  const auto model = make_memory_provider();
  History history{.states = {State{}}, .succeeds = {}};
  for (const Step& step : steps) {
    history.succeeds.push_back(step.kind != Step::Kind::Provider || step.on_provider(*model).is_ok());
    history.states.push_back(without_removes_before(observe(*model).state, forget_before_us));
  }
  return history;
}

/// The range of states in the history that a crash may leave; if damage is reported, older ones too.
struct Expected {
  std::size_t first = 0;
  std::size_t last = 0;
  bool may_lose = false;
};

class Explorer {
 public:
  Explorer(const std::vector<Step>& steps, const ExploreOptions& options, Explored& total)
      : steps_(steps),
        options_(options),
        total_(total),
        history_(history_of(steps, options.forget_before_us)),
        engine_env_(options.wrap ? options.wrap(disk_) : nullptr) {}

  void run(std::size_t explored) {
    ++total_.workloads;
    Machine machine(engine_env_ ? *engine_env_ : disk_, options_.engine);
    FJORD_CHECK(machine.open().is_ok());
    marks_.push_back(disk_.changes());
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Status status = machine.run(steps_[i]);
      if (status.is_ok() != history_.succeeds[i]) return fail("running " + steps_[i].name, status.to_string());
      const Observed now = observe(machine.provider());
      if (state_of(now) != history_.states[i + 1] || now.damaged || !now.complaint.empty()) {
        return fail("after " + steps_[i].name, differences(now, i + 1));
      }
      marks_.push_back(disk_.changes());
    }
    machine.close();
    for (std::size_t k = marks_[steps_.size() - explored]; k <= marks_.back() && total_.failure.empty(); ++k) {
      ++total_.crash_points;
      if (options_.process_ends) {
        disk_.visit_process_ends(k, [&](const sim::DiskImage& image, const std::string& which) {
          check("process ends " + which, image, expected_after(k, false));
        });
      }
      if (options_.power_losses) {
        disk_.visit_power_losses(k, [&](const sim::DiskImage& image, const std::string& which) {
          if (sim::hash_of(image) % options_.sample == 0) check("power lost " + which, image, expected_after(k, true));
        });
      }
    }
  }

 private:
  Expected expected_after(std::size_t changes, bool power_loss) const {
    // Steps have returned if their mark is not behind the crash.
    const auto returned =
        static_cast<std::size_t>(std::upper_bound(marks_.begin() + 1, marks_.end(), changes) - (marks_.begin() + 1));
    Expected expected{.first = returned, .last = std::min(returned + 1, steps_.size()), .may_lose = false};
    if (power_loss && options_.engine.durability != Durability::Sync) {
      expected.may_lose = true;
      while (expected.first > 0 && !(steps_[expected.first - 1].durable && history_.succeeds[expected.first - 1])) {
        --expected.first;
      }
    }
    return expected;
  }

  State state_of(const Observed& observed) const {
    return without_removes_before(observed.state, options_.forget_before_us);
  }

  bool is_explained(const Observed& observed, const Expected& expected) {
    const State state = state_of(observed);
    if (!observed.complaint.empty()) return false;
    if (!observed.damaged) {
      for (std::size_t i = expected.first; i <= expected.last; ++i) {
        if (history_.states[i] == state) return true;
      }
    }
    if (!expected.may_lose || !observed.damaged) return false;
    ++total_.reported_losses;
    return all_was_written(state) && durable_is_there(state, expected);
  }

  /// True if `state` has every document whose version is equal in all states from the durable one on.
  bool durable_is_there(const State& state, const Expected& expected) const {
    const auto holds = [](const State& one, const GlobalId& gid, const Version& version) {
      return std::any_of(one.begin(), one.end(), [&](const auto& bucket) {
        const auto found = bucket.second.versions.find(gid);
        return found != bucket.second.versions.end() && found->second == version;
      });
    };
    for (const auto& [bucket, content] : history_.states[expected.first]) {
      for (const auto& [gid, version] : content.versions) {
        bool always = true;
        for (std::size_t i = expected.first; i <= expected.last; ++i) {
          always = always && holds(history_.states[i], gid, version);
        }
        if (always && !holds(state, gid, version)) return false;
      }
    }
    return true;
  }

  /// I2: documents may be missing, but every version present was written.
  bool all_was_written(const State& state) const {
    const auto was_written = [&](const GlobalId& gid, const Version& version) {
      return std::any_of(history_.states.begin(), history_.states.end(), [&](const State& past) {
        return std::any_of(past.begin(), past.end(), [&](const auto& bucket) {
          const auto found = bucket.second.versions.find(gid);
          return found != bucket.second.versions.end() && found->second == version;
        });
      });
    };
    for (const auto& [bucket, content] : state) {
      for (const auto& [gid, version] : content.versions) {
        if (!was_written(gid, version)) return false;
      }
    }
    return true;
  }

  void check(const std::string& which, const sim::DiskImage& image, const Expected& expected) {
    if (!total_.failure.empty()) return;
    ++total_.images;
    sim::RecordingEnv disk(image);
    const auto wrapped = options_.wrap ? options_.wrap(disk) : nullptr;
    Machine machine(wrapped ? *wrapped : disk, options_.engine);
    if (const Status status = machine.open(); !status) return fail(which, "opening: " + status.to_string());
    const Observed found = observe(machine.provider());
    if (!is_explained(found, expected)) return fail(which, differences(found, expected.first));
    const std::string trouble = go_on(machine, found);
    if (!trouble.empty()) return fail(which, trouble);
    if (options_.sample_second != 0 && sim::hash_of(image) / 7 % options_.sample_second == 0) {
      check_second_crashes(which, disk, found);
    }
  }

  /// Writes, empties the journal, opens the engine again and compares. Returns an empty string, or the error.
  std::string go_on(Machine& machine, const Observed& found) {
    State state = state_of(found);
    constexpr std::uint64_t kLate = 1'000'000;
    for (auto& [bucket, content] : state) {
      const testing::OwnedWrite write = testing::test_put(number_in(bucket, 20), kLate, "afterwards");
      const auto result = testing::apply(machine.provider(), bucket, write);
      if (!result.status) return "writing afterwards: " + result.status.to_string();
      content.versions[write.gid] = {kLate, false, write.header, write.body};
    }
    if (const Status status = machine.run(checkpoint_step()); !status) return "checkpoint: " + status.to_string();
    if (const Status status = machine.open(); !status) return "opening again: " + status.to_string();
    const Observed again = observe(machine.provider());
    if (!again.complaint.empty()) return "opened again: " + again.complaint;
    if (again.damaged && !found.damaged) return "opened again: damage that was not there before";
    if (state_of(again) != state) {
      return "opened again: expected" + to_string(state) + "\nfound" + to_string(again.state);
    }
    machine.close();
    return {};
  }

  /// An engine on `disk` was opened, wrote, and was opened again. Tries a crash at each moment: nothing may be lost.
  void check_second_crashes(const std::string& which, const sim::RecordingEnv& disk, const Observed& found) {
    const bool may_lose = options_.engine.durability != Durability::Sync;
    const auto check_one = [&](const sim::DiskImage& image, const std::string& second) {
      if (!total_.failure.empty() || sim::hash_of(image) % options_.sample != 0) return;
      ++total_.second_crashes;
      sim::RecordingEnv again(image);
      Machine machine(again, options_.engine);
      const std::string words = which + ", then " + second;
      if (const Status status = machine.open(); !status) return fail(words, "opening: " + status.to_string());
      Observed now = observe(machine.provider());
      if (!now.complaint.empty()) return fail(words, now.complaint);
      // The writes of go_on() may or may not be present.
      State state = state_of(now);
      for (auto& [bucket, content] : state) content.versions.erase(testing::test_id(number_in(bucket, 20)).gid());
      if (state == state_of(found) && (found.damaged || may_lose || !now.damaged)) return;
      fail(words, "expected" + to_string(found.state) + "\nfound" + to_string(state) + (now.damaged ? " damaged" : ""));
    };
    for (std::size_t k = 0; k <= disk.changes(); ++k) {
      disk.visit_process_ends(k, check_one);
      disk.visit_power_losses(k, check_one);
    }
  }

  std::string differences(const Observed& found, std::size_t first) const {
    return found.complaint + (found.damaged ? " damaged; " : "; ") + "found" + to_string(found.state) + "\nexpected" +
           to_string(history_.states[first]) + "\n(or a later one)";
  }

  void fail(const std::string& which, const std::string& what) {
    if (!total_.failure.empty()) return;
    for (const Step& step : steps_) total_.failure += step.name + "; ";
    total_.failure += fmt::format("({}, marks", options_.engine.durability == Durability::Sync ? "sync" : "process");
    for (const std::size_t mark : marks_) total_.failure += fmt::format(" {}", mark);
    total_.failure += ")\n" + which + "\n" + what;
  }

  const std::vector<Step>& steps_;
  const ExploreOptions& options_;
  Explored& total_;
  const History history_;
  sim::RecordingEnv disk_;
  const std::unique_ptr<Env> engine_env_;
  std::vector<std::size_t> marks_;  ///< Number of disk changes when the engine was open, and when each step had
                                    ///< returned.
};

}  // namespace

void explore(const std::vector<Step>& steps, std::size_t explored, const ExploreOptions& options, Explored& total) {
  if (total.failure.empty()) Explorer(steps, options, total).run(explored);
}

}  // namespace fjord::slotfile_testing
