#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/common/unique_function.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_type.h"
#include "fjord/rpc/common_messages.h"
#include "fjord/visitors/bucket_reader.h"
#include "fjord/visitors/mailbox.h"

namespace fjord::visitors {

/// A visitor's outcome for one bucket. `result` is passed to the client unchanged.
struct BucketResult {
  Status status;
  std::string result;
};
/// Called once, on the visitor's executor (VisitContext::mailbox() leads there).
using BucketDone = UniqueFunction<void(BucketResult)>;

/// Services of the storage node for a visitor.
/// Lifetime: outlives the visitor. Threading: the visitor's executor, where not said otherwise.
class VisitContext {
 public:
  virtual ~VisitContext() = default;

  /// The document types of the cluster when the visitor was created. Any thread.
  virtual const std::shared_ptr<const DocumentTypeRepo>& types() const = 0;
  /// Leads to the visitor's executor, for answers from other threads. The executor may outlive the visitor, so such a
  /// task checks whether its visitor still exists. Not valid before the first begin_bucket().
  virtual Mailbox mailbox() const = 0;
  /// Sends documents of `bucket` to the client. A visitor that sends at most as many blocks as it receives needs no
  /// other flow control: the node reads no more blocks while too many are unacknowledged.
  virtual void send(BucketId bucket, std::string docblock) = 0;
  /// True once the visit was cancelled. Long computations check it from time to time and return. Any thread.
  virtual bool cancelled() const = 0;
  /// True once the visitor has used its turn and others wait. A visitor that can continue later then returns.
  virtual bool turn_is_over() const { return false; }
  /// Adds processor time that was spent since the previous call. The client receives the sum with its next poll.
  virtual void note_processor_time(Duration /*worked*/) {}
};

/// Code that runs on storage nodes, next to the documents: the server half of a visit. Each createVisitor call makes
/// one object, which gets all documents of its buckets.
///
/// Calls for each bucket: begin_bucket, then visit any number of times, then either end_bucket or abandon_bucket.
/// Several buckets may be open at once if the client asked for it.
///
/// Threading: constructed on the service's executor, then used and destroyed on an executor of its own, never on a
/// stripe's. It may compute for any time; waiting visitors get their turns sooner if it checks
/// VisitContext::turn_is_over().
class Visitor {
 public:
  virtual ~Visitor() = default;

  /// An error ends the bucket with that status.
  virtual Status begin_bucket(BucketId /*bucket*/) { return Status::ok(); }
  /// Called after begin_bucket(). Returns the reader of the bucket, or null to read all of its documents.
  virtual std::shared_ptr<BucketReader> make_reader(BucketId /*bucket*/) { return nullptr; }
  /// One block of documents that match the selection. An error ends the bucket with that status.
  virtual Status visit(BucketId /*bucket*/, std::string /*docblock*/) {
    return Status(StatusCode::NotImplemented, "this visitor has neither visit() nor visit_some()");
  }
  /// All documents were visited. The bucket is finished when the visitor calls `done`, at once or later (for example
  /// after all its puts are acknowledged).
  virtual void end_bucket(BucketId /*bucket*/, BucketDone done) { done({}); }
  /// The bucket could not be read to its end, or a call returned an error. The visitor discards its state of the
  /// bucket.
  virtual void abandon_bucket(BucketId /*bucket*/) {}
  /// The visitor is destroyed after its client was silent for this time or VisitorServiceOptions::idle_max, whichever
  /// is shorter; for a visitor whose work must end soon after its client. Called once, after construction.
  virtual std::optional<Duration> idle_max() const { return std::nullopt; }
  /// Called instead of visit(). Visits the documents of the block from offset `from` on, at least one, and returns the
  /// offset after the last of them. A visitor that computes stops after a document once VisitContext::turn_is_over();
  /// it gets the rest of the block in its next turn.
  virtual Result<std::size_t> visit_some(BucketId bucket, std::string& docblock, std::size_t /*from*/) {
    const std::size_t bytes = docblock.size();
    FJORD_TRY(visit(bucket, std::move(docblock)));
    return bytes;
  }
};

using Parameters = std::vector<rpc::Parameter>;
/// Errors (for example InvalidArgument for unknown parameters) are the answer to createVisitor.
using VisitorFactory = std::function<Result<std::unique_ptr<Visitor>>(VisitContext&, const Parameters&)>;

/// The visitors of a storage node, by name. Filled before it is shared; then read from any thread.
class VisitorRegistry {
 public:
  /// Each name is added once.
  void add(std::string name, VisitorFactory factory);
  /// Adds a visitor that Fjord's own services start; names() leaves it out.
  void add_internal(std::string name, VisitorFactory factory);
  /// Null if the registry has no such visitor.
  const VisitorFactory* find(std::string_view name) const;
  /// Returns the names that are there for users.
  std::vector<std::string> names() const;

 private:
  std::map<std::string, VisitorFactory, std::less<>> factories_;
  std::set<std::string> internal_;
};

/// Adds "dump", which passes docblocks to the client unchanged and takes no parameters.
void add_builtin_visitors(VisitorRegistry& registry);

}  // namespace fjord::visitors
