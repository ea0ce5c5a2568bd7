#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fjord/document/document_update.h"
#include "fjord/document/selection.h"
#include "fjord/rpc/messages.h"

namespace fjord::distributor {

/// The part of an operation that reads before it writes which is pure computation: from what is stored to what is to be
/// stored. One an operation; kept over its repetitions.
class GuardedWrite {
 public:
  /// Understands condition and update. `operation` is of a document of `gid` and outlives it. Errors: InvalidSelection,
  /// UnknownType, InvalidField, InvalidId, InvalidArgument, Corruption of the update.
  static Result<std::unique_ptr<GuardedWrite>> parse(const rpc::Operation& operation, const DocumentId& id,
                                                     std::shared_ptr<const DocumentTypeRepo> types);

  bool needs_body() const { return update_.has_value() || (condition_ && condition_->needs_body()); }
  /// Zero without a token.
  const GlobalId& token_gid() const { return token_gid_; }

  /// What the newest version says of the operation.
  struct Decision {
    enum class Kind {
      Write,           ///< Go on with what write() has.
      AlreadyApplied,  ///< At `timestamp_us`; `existed` as it was then.
      Fail,            ///< Not applied, for `status`.
      Unknown,         ///< It may have been applied and overwritten since.
    };
    Kind kind = Kind::Fail;
    Status status;
    std::uint64_t timestamp_us = 0;
    std::uint64_t version_us = 0;  ///< With TestAndSetFailed.
    bool existed = false;
  };
  /// `stored` is the answer to the read of the document (NotFound: there is none) and of the token's entry.
  /// `sent_timestamp_us` is that of a write that may have been applied before; 0 if there is none.
  Decision decide(const rpc::OperationResult& stored, std::uint64_t sent_timestamp_us, std::int64_t now_seconds);

  /// What is to be written.
  struct Content {
    bool remove = false;
    std::string header;
    std::string body;
    bool existed = false;
    std::string token_entry;          ///< Empty without a token.
    std::uint64_t read_us = 0;        ///< The version that it follows; 0 if there was none.
    std::uint64_t newer_than_us = 0;  ///< The write's timestamp has to be above this one.
  };
  const Content& content() const { return content_; }

 private:
  GuardedWrite(const rpc::Operation& operation, GlobalId gid, std::shared_ptr<const DocumentTypeRepo> types);

  std::optional<Decision> look_at_token(const rpc::OperationResult& stored, std::uint64_t sent_timestamp_us) const;
  /// `version_us` is that of the document as it is stored; 0: there is none.
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
