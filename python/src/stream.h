#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>

#include "client_handle.h"
#include "completions.h"
#include "errors.h"
#include "fjord/document/docblock.h"
#include "fjord/library/client.h"
#include "fjord/library/detail/client_core.h"
#include "values.h"

namespace fjord::python {

/// A visit or a subscription that Python iterates over. `Source` is fjord::Visit or fjord::Subscription.
///
/// Threading: the interpreter lock; only one thread at a time may take values (checked). Lifetime: `handle` outlives it
/// (nb::keep_alive).
template <typename Source>
class Stream {
 public:
  Stream(ClientHandle& handle, std::shared_ptr<Client> client, std::unique_ptr<Source> source)
      : handle_(handle), shared_(std::make_shared<Shared>(std::move(client), std::move(source))) {
    handle.stop_with_client(shared_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    const Unlocked unlocked;
    shared_.reset();
  }

  ClientHandle& handle() { return handle_; }
  /// Raises ForkedProcess in a process that was forked later: the threads that fill the source are not there.
  Source& source() {
    DeleteInOwnProcess::check_own_process(shared_->owner);
    return *shared_->source;
  }
  /// Returns true if no value comes any more. After stop(), those that have arrived do not count.
  bool is_over() { return shared_->is_stopped || source().is_over(); }
  /// Ends the stream and what the storage nodes do for it.
  void stop() { shared_->stop(); }

  /// Waits until there may be more, or the stream is over.
  void wait() {
    if (ready_ == nullptr) {
      ready_ = std::make_shared<Event>();
      source().ready().then([event = ready_](const Status&) { event->set(); });
    }
    wait_for_event(*ready_, [this] { handle_.check_open(); });
    ready_ = nullptr;
  }
  /// Returns true if more came within `duration`.
  bool wait_within(std::chrono::steady_clock::time_point deadline) {
    if (ready_ == nullptr) {
      ready_ = std::make_shared<Event>();
      source().ready().then([event = ready_](const Status&) { event->set(); });
    }
    const WaitingThread counted;
    while (!ready_->is_set()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        const Unlocked unlocked;
        ready_->wait(std::clamp(left, std::chrono::milliseconds(1), kSignalInterval));
      }
      check_signals();
      handle_.check_open();
    }
    ready_ = nullptr;
    return true;
  }
  /// Returns a future that ends when there may be more. No value may be taken before.
  nb::object ready(Completions& completions) {
    return completions.future_of(source().ready(), [](const Status&) { return nb::none(); });
  }

  /// Returns the document of an entry. Fetches the schemas if its type is new. `only`: the fields to take; empty: all.
  nb::object to_document(const EntryView& entry, std::span<const std::string> only) {
    if (types_ == nullptr) types_ = source().types();
    auto view = value_of(DocumentView::open(*types_, entry.header, entry.body));
    if (view.type() == nullptr) {
      const std::shared_ptr<Client> client = handle_.use();
      check(handle_.run([client] { return client->core().refresh(); }));
      types_ = client->core().types();
      view = value_of(DocumentView::open(*types_, entry.header, entry.body));
      if (view.type() == nullptr) raise(Status(StatusCode::UnknownType, "a document of a type that no schema has"));
    }
    return python::to_python(view, entry.timestamp, only);
  }

  /// Raises the error that ended the stream, if there is one. The end that stop() causes is not an error.
  void check_end() {
    if (source().status() || source().status().code() == StatusCode::Cancelled) {
      handle_.check_open();
      return;
    }
    check(source().status());
  }

  /// Says that a thread takes values, as long as it lives.
  class Use {
   public:
    explicit Use(Stream& stream) : stream_(stream) {
      if (std::exchange(stream.is_used_, true)) {
        PyErr_SetString(PyExc_RuntimeError, "another thread takes values from this iterator");
        throw nb::python_error();
      }
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { stream_.is_used_ = false; }

   private:
    Stream& stream_;
  };

 private:
  struct Shared final : Stoppable {
    Shared(std::shared_ptr<Client> own_client, std::unique_ptr<Source> own_source)
        : client(std::move(own_client)), owner(getpid()), source(std::move(own_source)) {}
    ~Shared() override {
      // In a process that was forked later, the threads are missing that the destructor waits for.
      if (!DeleteInOwnProcess::is_own_process(owner)) static_cast<void>(source.release());
    }
    void stop() override {
      is_stopped = true;
      if (DeleteInOwnProcess::is_own_process(owner)) source->stop();
    }
    std::shared_ptr<Client> client;
    pid_t owner;
    std::atomic<bool> is_stopped = false;
    std::unique_ptr<Source> source;  // is destroyed before the client
  };

  ClientHandle& handle_;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Event>
      ready_;  ///< Belongs to a wait that has not ended; until then nothing else may be asked of the source.
  std::shared_ptr<const DocumentTypeRepo> types_;
  bool is_used_ = false;
};

}  // namespace fjord::python
