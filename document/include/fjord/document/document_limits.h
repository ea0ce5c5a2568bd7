#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/status.h"
#include "fjord/document/document_format.h"
#include "fjord/document/document_id.h"

namespace fjord {

/// From where on something is reported, and from where on it is refused. Zero: never.
struct LimitThreshold {
  std::uint64_t warn_above = 0;
  std::uint64_t fail_above = 0;
};

/// What documents may be like. The formats have limits of their own (64 MiB a part, 65536 bytes an id, 32 values within
/// one another); these are for keeping a deployment well below, and may be changed while it runs.
struct DocumentLimits {
  /// Bytes of both parts together. Memory and time for one document grow with it on every node that holds a copy.
  LimitThreshold document_bytes{std::uint64_t{8} << 20, std::uint64_t{64} << 20};
  /// Bytes of the id, which is kept in indexes and sent with every operation.
  LimitThreshold id_bytes{1024, DocumentId::kBytesMax};
  /// Collections and structs within one another.
  LimitThreshold depth{16, kValueDepthMax};
  /// Fields that are set, and the members of all structs within them.
  LimitThreshold fields{10000, 1000000};
};

/// A limit that a document is beyond.
struct LimitWarning {
  std::string_view what;  ///< "document bytes", "id bytes", "depth", "fields": lives forever.
  std::uint64_t value = 0;
  std::uint64_t warn_above = 0;

  /// "depth: 20; more than 16 are reported"
  std::string to_string() const;
};

struct LimitCheck {
  Status status;                       ///< TooLarge with what is too large, how large it is and what is allowed.
  std::vector<LimitWarning> warnings;  ///< Of what is not refused. Allocates only if there are any.
};

/// One pass over the fields; looks into values only where there are structs or collections within collections.
/// Malformed bytes, which validate() refuses, end the pass without an error.
LimitCheck check_limits(const DocumentLimits& limits, std::string_view id, std::string_view header,
                        std::string_view body);

}  // namespace fjord
