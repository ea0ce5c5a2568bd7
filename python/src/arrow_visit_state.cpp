#include "arrow_visit_state.h"

#include <cerrno>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "errors.h"
#include "gil.h"

namespace fjord::python {

namespace {

/// The stream of the client library, which is not touched in a process that was forked later.
class InnerStream {
 public:
  explicit InnerStream(pid_t owner) : owner_(owner) {}
  InnerStream(const InnerStream&) = delete;
  InnerStream& operator=(const InnerStream&) = delete;
  ~InnerStream() {
    if (stream_.release != nullptr && DeleteInOwnProcess::is_own_process(owner_)) stream_.release(&stream_);
  }
  ArrowArrayStream* get() { return &stream_; }

 private:
  const pid_t owner_;
  ArrowArrayStream stream_{};
};

/// The result of get_next().
struct Batch {
  Batch() = default;
  Batch(Batch&& other) noexcept
      : array(std::exchange(other.array, {})), code(other.code), error(std::move(other.error)) {}
  Batch& operator=(Batch&&) = delete;
  ~Batch() {
    if (array.release != nullptr) array.release(&array);
  }

  ArrowArray array{};
  int code = 0;
  std::string error;
};

Batch next_of(InnerStream& inner) {
  Batch batch;
  batch.code = inner.get()->get_next(inner.get(), &batch.array);
  if (batch.code != 0) {
    const char* const text = inner.get()->get_last_error(inner.get());
    batch.error = text == nullptr ? "" : text;
  }
  return batch;
}

struct OuterStream {
  std::shared_ptr<ArrowVisitState> state;
  std::shared_ptr<InnerStream> inner;
  std::string error;
};

OuterStream& outer(ArrowArrayStream* stream) { return *static_cast<OuterStream*>(stream->private_data); }

Status closed() { return {StatusCode::Cancelled, "the visit was closed"}; }

/// Signal handlers run on the first thread of the process only.
bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

/// Waits on another thread, and looks for signals on this one. The caller may or may not hold the interpreter lock.
Batch next_with_signals(const OuterStream& own) {
  const nb::gil_scoped_acquire locked;
  std::stop_source stop;
  const std::stop_callback on_stop(stop.get_token(), [&] { own.state->stop(); });
  try {
    return call_blocking([inner = own.inner] { return next_of(*inner); }, [] {}, {.stop = &stop});
  } catch (nb::python_error&) {
    own.state->interrupt(std::current_exception());
  }
  Batch ended;
  ended.code = EINTR;
  ended.error = "a signal handler has ended the visit";
  return ended;
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  ArrowArrayStream* const inner = outer(stream).inner->get();
  return inner->get_schema(inner, out);
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  OuterStream& own = outer(stream);
  *out = {};
  if (!own.state->is_own_process() || own.state->is_stopped()) {
    own.error = own.state->is_stopped() ? closed().to_string() : "the visit belongs to the process before the fork";
    return EIO;
  }
  Batch batch = is_main_thread() ? next_with_signals(own) : next_of(*own.inner);
  own.error = std::move(batch.error);
  *out = std::exchange(batch.array, {});
  return batch.code;
}

const char* get_last_error(ArrowArrayStream* stream) {
  const std::string& error = outer(stream).error;
  return error.empty() ? nullptr : error.c_str();
}

void release(ArrowArrayStream* stream) {
  delete &outer(stream);
  stream->release = nullptr;
}

}  // namespace

ArrowVisitState::ArrowVisitState(std::shared_ptr<ArrowVisit> visit) : visit_(std::move(visit)), owner_(getpid()) {}

ArrowVisitState::~ArrowVisitState() {
  // In a process that was forked later, the threads are missing that the destructor waits for.
  if (!is_own_process()) static_cast<void>(new std::shared_ptr<ArrowVisit>(visit_));
}

void ArrowVisitState::stop() {
  is_stopped_ = true;
  if (is_own_process()) visit_->stop();
}

void ArrowVisitState::interrupt(std::exception_ptr exception) {
  interrupt_ = std::move(exception);
  stop();
}

void ArrowVisitState::check_end(const ClientHandle& handle) {
  DeleteInOwnProcess::check_own_process(owner_);
  if (interrupt_ != nullptr) std::rethrow_exception(std::exchange(interrupt_, nullptr));
  if (is_stopped_) {
    handle.check_open();
    raise(closed());
  }
  check(visit_->status());
}

Status ArrowVisitState::export_to(const std::shared_ptr<ArrowVisitState>& state, ArrowArrayStream* out) {
  auto inner = std::make_shared<InnerStream>(state->owner_);
  FJORD_TRY(ArrowVisit::export_to(state->visit_, inner->get()));
  *out = {get_schema, get_next, get_last_error, release, new OuterStream{state, std::move(inner), {}}};
  return Status::ok();
}

}  // namespace fjord::python
