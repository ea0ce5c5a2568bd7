#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/visitors/bucket_space.h"

namespace fjord::visitors {

/// How far a visit is: which parts of the bucket tree were read to their end. It names no bucket and no node, so it
/// stays valid when buckets are split, joined or moved, when anything restarts, and in another client process.
struct VisitToken {
  /// Of what is visited (VisitorSessionOptions::fingerprint()): a token fits one question only.
  std::uint64_t question = 0;
  PositionSet done;

  /// "fjord-visit-1:<question>:<first>-<last>,...:<checksum>", numbers in hexadecimal.
  std::string to_text() const;
  /// White space around the text does not matter. Errors: InvalidArgument that says what is wrong: no token, of a later
  /// version, damaged.
  static Result<VisitToken> parse(std::string_view text);
  friend bool operator==(const VisitToken&, const VisitToken&) = default;
};

}  // namespace fjord::visitors
