#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/visitors/bucket_space.h"

namespace fjord::visitors {

/// Progress of a visit: the parts of the bucket tree that were read to their end. It names no bucket and no node. So it
/// stays valid when buckets are split, joined or moved, after any restart, and in another client process.
struct SessionCursor {
  /// Fingerprint of the visit (VisitorSessionOptions::fingerprint()). A cursor is valid only for visits with the same
  /// one.
  std::uint64_t question = 0;
  PositionSet done;
  /// Hash of the text that is kept together with this cursor (seal()), so that the whole has a checksum. None: the
  /// cursor is kept alone, or was written before there was this field.
  std::optional<std::uint64_t> beside = {};

  /// Notes the hash of the text that is kept together with this cursor. White space around it does not count.
  void seal(std::string_view text);
  /// Forgets the hash after comparing it. Errors: InvalidArgument if it is not the hash of `text`.
  Status open_seal(std::string_view text);

  /// "fjord-visit-1:<question>:<first>-<last>,...:<checksum>", numbers in hexadecimal. With `beside` that is a field
  /// before the checksum; earlier versions of this program ignore it.
  std::string to_text() const;
  /// Ignores white space around the text. Errors: InvalidArgument that says why the text is not a valid cursor: no
  /// cursor, of another version, or damaged.
  static Result<SessionCursor> parse(std::string_view text);
  friend bool operator==(const SessionCursor&, const SessionCursor&) = default;
};

}  // namespace fjord::visitors
