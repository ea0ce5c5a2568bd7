#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fjord/mapreduce/document_sink.h"

namespace fjord::mapreduce {

struct SinkOperation {
  std::string id;
  std::optional<EncodedDocument> document;  ///< Absent: a remove.
};

/// Takes operations from a source and keeps several of them in flight, so that only those are in memory. It takes more
/// when half of them are acknowledged, so that the client can send many in one message.
///
/// Threading: confined to the executor behind the mailbox. Lifetime: destroying it stops it without a callback; `sink`
/// outlives it.
class SinkPump : public std::enable_shared_from_this<SinkPump> {
 public:
  /// Fills in the next operation and returns true; returns false if there are no more. True without an id: the next
  /// operation is not ready yet. Not called again after false or an error.
  using Next = UniqueFunction<Result<bool>(SinkOperation&)>;
  using Done = UniqueFunction<void(Status)>;
  using TurnIsOver = std::function<bool()>;

  /// When `turn_is_over()` returns true, a later task on the executor takes the remaining operations.
  SinkPump(DocumentSink& sink, visitors::Mailbox mailbox, SinkLimits limits, Next next, Done done,
           TurnIsOver turn_is_over = {})
      : sink_(sink),
        mailbox_(std::move(mailbox)),
        limits_(limits),
        next_(std::move(next)),
        done_(std::move(done)),
        turn_is_over_(std::move(turn_is_over)) {}

  /// Starts the operations. `done` is called when all are acknowledged, or with the first error as soon as none is in
  /// flight.
  void start() { fill(); }

 private:
  void fill();
  void fill_later();
  void on_done(const std::string& id, std::size_t bytes, const Status& status);

  DocumentSink& sink_;
  visitors::Mailbox mailbox_;
  SinkLimits limits_;
  Next next_;
  Done done_;
  TurnIsOver turn_is_over_;
  bool fills_later_ = false;
  std::size_t outstanding_ = 0;
  std::size_t outstanding_bytes_ = 0;
  bool exhausted_ = false;
  Status error_;
};

}  // namespace fjord::mapreduce
