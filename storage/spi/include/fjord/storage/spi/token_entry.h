#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/document/document_id.h"

namespace fjord::spi {

/// The record on a replica that an operation with an idempotency key (token) was applied: a remove entry that the
/// engine writes in the same call as the document. Its gid is computed from document and token. It falls into the
/// document's bucket for any number of bits, so the entry is merged, moved and split like any other. Its timestamp is
/// the operation's. Its id is text that no document can have:
///
///     token:<gid of the document, 24 hex digits>:<hash of the token, 32 hex digits>:<0, 1 or x>
///
/// The last part is a State. The entry is dropped after the retention of tokens (docs/design/0013).
struct TokenEntry {
  enum class State : char {
    New = '0',       ///< There was no document before the operation.
    Existed = '1',   ///< There was a document before the operation.
    Cancelled = 'x'  ///< The token does not count: its write lost against writes that were made without seeing it.
  };

  GlobalId document;
  std::string token_hash;
  State state = State::New;

  /// Returns the entry with this id; empty if `id` is not the id of a token entry.
  static std::optional<TokenEntry> parse(std::string_view id);
  static TokenEntry of(const GlobalId& document, std::string_view token, bool existed);

  std::string id() const;
  /// Returns true if the entry was made for `token`. Two tokens rarely share a gid; then the bucket keeps only the
  /// newer entry.
  bool is_of(std::string_view token) const;
};

/// Returns the gid of the token entry for `token` of `document`.
GlobalId token_gid(const GlobalId& document, std::string_view token);

}  // namespace fjord::spi
