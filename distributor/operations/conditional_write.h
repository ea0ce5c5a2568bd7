#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fjord/document/document_update.h"
#include "fjord/document/selection.h"
#include "fjord/rpc/messages.h"

namespace fjord::distributor {

/// The pure computation in an operation that reads before it writes: computes from the stored document what has to be
/// stored. One for each operation, kept over its attempts.
class ConditionalWrite {
 public:
  /// Parses condition and update. `operation` concerns the document `id` and outlives the result. Errors:
  /// InvalidSelection, UnknownType, InvalidField, InvalidId, InvalidArgument; Corruption if the update is malformed.
  static Result<std::unique_ptr<ConditionalWrite>> parse(const rpc::Operation& operation, const DocumentId& id,
                                                         std::shared_ptr<const DocumentTypeRepo> types);

  bool needs_body() const { return update_.has_value() || (condition_ && condition_->needs_body()); }
  /// Returns the id of the token's entry; zero without a token.
  const GlobalId& token_gid() const { return token_gid_; }

  /// What to do, given the newest stored version.
  struct Decision {
    enum class Kind {
      Write,           ///< The result of content() has to be written.
      AlreadyApplied,  ///< The operation was applied before, at `timestamp_us`; `existed` is as it was then.
      Fail,            ///< The operation is not applied; `status` says why.
      Unknown,         ///< The operation was perhaps applied, and overwritten since.
    };
    Kind kind = Kind::Fail;
    Status status;
    std::uint64_t timestamp_us = 0;
    std::uint64_t version_us = 0;  ///< The stored version, if `status` is TestAndSetFailed.
    bool existed = false;
  };
  /// `stored` is the answer to the read of the document (NotFound: there is none) and of the token's entry.
  /// `sent_timestamp_us` is the timestamp of an earlier write of the operation that may have been applied; 0: none.
  Decision decide(const rpc::OperationResult& stored, std::uint64_t sent_timestamp_us, std::int64_t now_seconds);

  /// The plain write that the operation becomes.
  struct Content {
    bool remove = false;
    std::string header;
    std::string body;
    bool existed = false;
    std::string token_entry;          ///< The token's entry; empty without a token.
    std::uint64_t read_us = 0;        ///< Timestamp of the version that the write replaces; 0: there was none.
    std::uint64_t newer_than_us = 0;  ///< The write has to get a timestamp above this one.
  };
  const Content& content() const { return content_; }

 private:
  ConditionalWrite(const rpc::Operation& operation, GlobalId gid, std::shared_ptr<const DocumentTypeRepo> types);

  std::optional<Decision> look_at_token(const rpc::OperationResult& stored, std::uint64_t sent_timestamp_us) const;
  /// Compares the required version with `version_us`, the stored version of the document (0: there is none).
  Status check_version(std::uint64_t version_us) const;
  Status check_condition(const DocumentView* view, std::int64_t now_seconds) const;
  Status make_content(const DocumentView* view);

  const rpc::Operation& operation_;
  GlobalId gid_;
  GlobalId token_gid_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  std::optional<Selection> condition_;
  std::optional<DocumentUpdate> update_;
  Content content_;
};

}  // namespace fjord::distributor
