#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "fjord/fleetcontroller/memory_state_store.h"

namespace fjord::fleetcontroller {

/// A state store whose confirmations can be lost, whose writes can fail, and whose reads and writes can be slow.
class FaultyStore final : public ClusterStateStore {
 public:
  struct Faults {
    bool confirms_are_lost = false;
    bool writes_fail = false;
    Duration pause{0};  ///< Added to the time that an answer to a read or a write takes.
  };
  FaultyStore(MemoryStateEnsemble& ensemble, const Faults& faults) : store_(ensemble), faults_(faults) {}

  void campaign(const std::string& name, Executor& executor, OnLeadership on_change) override {
    executor_ = &executor;
    store_.campaign(name, executor, std::move(on_change));
  }
  void resign() override { store_.resign(); }
  void leave() override { store_.leave(); }
  void confirm(std::uint64_t term, OnConfirmed done) override {
    if (!faults_.confirms_are_lost) store_.confirm(term, std::move(done));
  }
  Duration session_timeout() const override { return store_.session_timeout(); }
  void read(std::string_view record, OnRead done) override { store_.read(record, late(std::move(done))); }
  void write(std::uint64_t term, std::string_view record, std::uint64_t expected, std::string content,
             OnWritten done) override {
    if (faults_.writes_fail) {
      executor_->post([done = std::move(done)]() mutable { done(Status(StatusCode::Timeout, "said the test")); });
      return;
    }
    int& under_way = writes_under_way_[std::string(record)];
    most_writes_at_once_ = std::max(most_writes_at_once_, ++under_way);
    OnWritten count = [&under_way, done = std::move(done)](Result<std::uint64_t> written) {
      --under_way;
      done(std::move(written));
    };
    store_.write(term, record, expected, std::move(content), late(std::move(count)));
  }

  /// Returns the largest number of writes of one record that were under way at the same time.
  int most_writes_at_once() const { return most_writes_at_once_; }

 private:
  /// Returns a callback that calls `done` after the pause.
  template <typename Answer>
  UniqueFunction<void(Answer)> late(UniqueFunction<void(Answer)> done) {
    if (faults_.pause == Duration(0)) return done;
    return [this, done = std::move(done)](Answer answer) mutable {
      executor_->post_after(
          faults_.pause, [done = std::move(done), answer = std::move(answer)]() mutable { done(std::move(answer)); });
    };
  }

  MemoryStateStore store_;
  const Faults& faults_;
  Executor* executor_ = nullptr;
  std::map<std::string, int> writes_under_way_;  // By name of the record.
  int most_writes_at_once_ = 0;
};

}  // namespace fjord::fleetcontroller
