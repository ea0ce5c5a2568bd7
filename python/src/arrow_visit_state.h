#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <sys/types.h>

#include "client_handle.h"
#include "fjord/library/arrow.h"

namespace fjord::python {

/// What a visit by columns and its stream of batches have in common.
///
/// Threading: stop() any thread; check_end() and `interrupt` need the interpreter lock.
class ArrowVisitState final : public Stoppable {
 public:
  explicit ArrowVisitState(std::shared_ptr<ArrowVisit> visit);
  ArrowVisitState(const ArrowVisitState&) = delete;
  ArrowVisitState& operator=(const ArrowVisitState&) = delete;
  ~ArrowVisitState() override;

  void stop() override;
  bool is_stopped() const { return is_stopped_; }
  bool is_own_process() const { return DeleteInOwnProcess::is_own_process(owner_); }
  ArrowVisit& visit() const { return *visit_; }

  /// Makes `out` a stream of the visit's batches. On the main thread, its get_next() ends with what a signal handler
  /// raises, which check_end() then raises: a stream of Arrow has only numbers and texts for errors. Errors: those of
  /// ArrowVisit::export_to().
  static Status export_to(const std::shared_ptr<ArrowVisitState>& state, ArrowArrayStream* out);

  /// Raises why the stream has failed. Returns if it has not.
  void check_end(const ClientHandle& handle);
  /// Keeps an exception for check_end(), and ends the visit.
  void interrupt(std::exception_ptr exception);

 private:
  std::shared_ptr<ArrowVisit> visit_;
  const pid_t owner_;
  std::atomic<bool> is_stopped_ = false;
  std::exception_ptr interrupt_;
};

}  // namespace fjord::python
