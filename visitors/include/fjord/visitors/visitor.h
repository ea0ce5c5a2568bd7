#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/common/unique_function.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_type.h"
#include "fjord/rpc/messages.h"
#include "fjord/visitors/bucket_reader.h"
#include "fjord/visitors/mailbox.h"

namespace fjord::visitors {

/// What a visitor has to say about a bucket that it dealt with. `result` reaches the client as it is.
struct BucketResult {
  Status status;
  std::string result;
};
/// Called once, on the visitor's executor (use VisitContext::mailbox() to get there).
using BucketDone = UniqueFunction<void(BucketResult)>;

/// What the storage node offers to a visitor.
/// Lifetime: outlives the visitor. Threading: the visitor's executor, where not said otherwise.
class VisitContext {
 public:
  virtual ~VisitContext() = default;

  /// Of the cluster when the visitor was created. Any thread.
  virtual const std::shared_ptr<const DocumentTypeRepo>& types() const = 0;
  /// Leads to the visitor's executor; for answers that come from elsewhere. The executor may outlive the visitor, so
  /// such a task checks whether its visitor is still there. Not before the first begin_bucket().
  virtual Mailbox mailbox() const = 0;
  /// Sends documents of `bucket` to the client. A visitor that sends as many blocks as it was given needs no other flow
  /// control: no more blocks are read while too many of them are unacknowledged.
  virtual void send(BucketId bucket, std::string docblock) = 0;
  /// True once nobody wants the visit any more; long computations look at it now and then and return. Any thread.
  virtual bool cancelled() const = 0;
  /// True once the visitor has computed for long and others wait: one that can go on later does so.
  virtual bool turn_is_over() const { return false; }
  /// Processors have worked so long for the visitor, since it said so last. The client hears it with its next poll.
  virtual void note_processor_time(Duration /*worked*/) {}
};

/// Code that runs on storage nodes, next to the documents: the server half of a visit. One object a createVisitor call;
/// all documents of a bucket go to the same object.
///
/// Per bucket: begin_bucket, visit any number of times, then either end_bucket or abandon_bucket. Several buckets may
/// be open at once if the client asked for it.
///
/// Threading: constructed on the service's executor, then used and destroyed on one executor that is its own while it
/// lives, never on that of a stripe. It may compute as long as it wants; visitors that wait meanwhile get their turns
/// sooner if it looks at VisitContext::turn_is_over().
class Visitor {
 public:
  virtual ~Visitor() = default;

  /// An error ends the bucket with that status.
  virtual Status begin_bucket(BucketId /*bucket*/) { return Status::ok(); }
  /// After begin_bucket(): what reads the bucket; null: all of its documents are read.
  virtual std::shared_ptr<BucketReader> make_reader(BucketId /*bucket*/) { return nullptr; }
  /// One block of documents that match the selection. An error ends the bucket with that status.
  virtual Status visit(BucketId /*bucket*/, std::string /*docblock*/) {
    return Status(StatusCode::NotImplemented, "this visitor has neither visit() nor visit_some()");
  }
  /// All documents were given. The bucket is finished when `done` is called, now or later (for example when everything
  /// the visitor put is acknowledged).
  virtual void end_bucket(BucketId /*bucket*/, BucketDone done) { done({}); }
  /// The bucket could not be read to its end, or an error was returned: forget what belongs to it.
  virtual void abandon_bucket(BucketId /*bucket*/) {}
  /// The visitor is destroyed when its client has been silent for so long, or for VisitorServiceOptions::idle_max if
  /// that is less; for one whose work must not go on for long after its client. Asked once, when the visitor was made.
  virtual std::optional<Duration> idle_max() const { return std::nullopt; }
  /// What is called in place of visit(): deals with the documents of the block from the byte `from` on, at least one,
  /// and returns the byte behind the last of them. A visitor that computes stops behind a document once
  /// VisitContext::turn_is_over(), and is given the block again with its next turn.
  virtual Result<std::size_t> visit_some(BucketId bucket, std::string& docblock, std::size_t /*from*/) {
    const std::size_t bytes = docblock.size();
    FJORD_TRY(visit(bucket, std::move(docblock)));
    return bytes;
  }
};

using Parameters = std::vector<rpc::Parameter>;
/// Errors (for example InvalidArgument for unknown parameters) become the answer to createVisitor.
using VisitorFactory = std::function<Result<std::unique_ptr<Visitor>>(VisitContext&, const Parameters&)>;

/// The visitors that a storage node knows, by name. Filled before it is shared; read from every thread after that.
class VisitorRegistry {
 public:
  /// A name is given once.
  void add(std::string name, VisitorFactory factory);
  /// Null if there is none.
  const VisitorFactory* find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::map<std::string, VisitorFactory, std::less<>> factories_;
};

/// "dump": passes docblocks on to the client unchanged. Takes no parameters.
void add_builtin_visitors(VisitorRegistry& registry);

}  // namespace fjord::visitors
