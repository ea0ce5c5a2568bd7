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
  std::optional<EncodedDocument> document;  ///< Absent: remove.
};

/// Draws operations from a source and keeps several of them on their way, so that only those are in memory.
///
/// Threading: confined to the executor behind the mailbox. Lifetime: destroying it stops it without a word; `sink`
/// outlives it.
class SinkPump : public std::enable_shared_from_this<SinkPump> {
 public:
  /// Fills in the next operation; false: there are no more. True without an id: there is none yet. Not called again
  /// after false or an error.
  using Next = UniqueFunction<Result<bool>(SinkOperation&)>;
  using Done = UniqueFunction<void(Status)>;
  using TurnIsOver = std::function<bool()>;

  /// Once `turn_is_over`, what is left to be drawn is drawn by a later task.
  SinkPump(DocumentSink& sink, visitors::Mailbox mailbox, std::size_t outstanding_max, Next next, Done done,
           TurnIsOver turn_is_over = {})
      : sink_(sink),
        mailbox_(std::move(mailbox)),
        outstanding_max_(outstanding_max),
        next_(std::move(next)),
        done_(std::move(done)),
        turn_is_over_(std::move(turn_is_over)) {}

  /// `done` is called when everything is acknowledged, or with the first error when nothing is outstanding any more.
  void start() { fill(); }

 private:
  void fill();
  void fill_later();
  void on_done(const std::string& id, const Status& status);

  DocumentSink& sink_;
  visitors::Mailbox mailbox_;
  std::size_t outstanding_max_;
  Next next_;
  Done done_;
  TurnIsOver turn_is_over_;
  bool fills_later_ = false;
  std::size_t outstanding_ = 0;
  bool exhausted_ = false;
  Status error_;
};

}  // namespace fjord::mapreduce
