#pragma once

#include <string>
#include <utility>

#include "fjord/fleetcontroller/memory_state_store.h"

namespace fjord::fleetcontroller {

/// A state store whose confirmations can be lost and whose writes can fail.
class FaultyStore final : public ClusterStateStore {
 public:
  struct Faults {
    bool confirms_are_lost = false;
    bool writes_fail = false;
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
  void read(std::string_view record, OnRead done) override { store_.read(record, std::move(done)); }
  void write(std::uint64_t term, std::string_view record, std::uint64_t expected, std::string content,
             OnWritten done) override {
    if (!faults_.writes_fail) return store_.write(term, record, expected, std::move(content), std::move(done));
    executor_->post([done = std::move(done)]() mutable { done(Status(StatusCode::Timeout, "said the test")); });
  }

 private:
  MemoryStateStore store_;
  const Faults& faults_;
  Executor* executor_ = nullptr;
};

}  // namespace fjord::fleetcontroller
