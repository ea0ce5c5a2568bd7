#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/document/document_id.h"

namespace fjord::rpc {

/// How a replica remembers that an operation with an idempotency token was applied: a removed entry beside the
/// document, written with it in one call of the engine. Its gid follows from document and token and falls into the
/// document's bucket whatever number of bits that has, so it is merged, moved and split like any other entry; its
/// timestamp is the operation's; its id is text that no document can have:
///
///     token:<gid of the document, 24 hex digits>:<hash of the token, 32 hex digits>:<0 or 1>
///
/// The last part says whether there was a document before; it is "x" for a token that does not count, because the write
/// it came with lost against writes that did not see it. It is forgotten like other removed entries.
struct TokenEntry {
  enum class State : char { New = '0', Existed = '1', Cancelled = 'x' };

  GlobalId document;
  std::string token_hash;
  State state = State::New;

  /// Errors: empty if `id` is no token entry's.
  static std::optional<TokenEntry> parse(std::string_view id);
  static TokenEntry of(const GlobalId& document, std::string_view token, bool existed);

  std::string id() const;
  /// True for the token that the entry was made of. Others may share its gid, if rarely: then the newest is known.
  bool is_of(std::string_view token) const;
};

/// Where the entry of `token` is.
GlobalId token_gid(const GlobalId& document, std::string_view token);
/// True for the id of a token entry, which visitors pass over.
bool is_token_entry(std::string_view id);

}  // namespace fjord::rpc
