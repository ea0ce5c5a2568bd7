#pragma once

#include <cstddef>
#include <string>

#include "fjord/client/client.h"
#include "fjord/common/unique_function.h"
#include "fjord/document/document.h"
#include "fjord/visitors/mailbox.h"

namespace fjord::mapreduce {

/// Where tasks put their documents: the cluster's ordinary write path, with its retries.
/// Threading: callable from any thread; `done` runs once on the executor behind `reply_to`, or never if that mailbox is
/// closed.
class DocumentSink {
 public:
  using Done = UniqueFunction<void(Status)>;
  virtual ~DocumentSink() = default;
  virtual void put(std::string id, EncodedDocument document, visitors::Mailbox reply_to, Done done) = 0;
  virtual void remove(std::string id, visitors::Mailbox reply_to, Done done) = 0;
};

/// What one task, or the runner of a job, has in flight at most.
struct SinkLimits {
  std::size_t operations = 512;               ///< Puts and removes.
  std::size_t bytes = std::size_t{16} << 20;  ///< Bytes of documents; one operation may exceed it.
};

/// A sink that writes through a client. Lifetime: `client` outlives it.
class ClientSink final : public DocumentSink {
 public:
  /// `timeout` is that of one operation, retries included.
  ClientSink(AsyncClient& client, Duration timeout) : client_(client), timeout_(timeout) {}
  void put(std::string id, EncodedDocument document, visitors::Mailbox reply_to, Done done) override;
  void remove(std::string id, visitors::Mailbox reply_to, Done done) override;

 private:
  AsyncClient& client_;
  Duration timeout_;
};

}  // namespace fjord::mapreduce
