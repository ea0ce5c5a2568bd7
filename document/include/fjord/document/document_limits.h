#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/setting.h"
#include "fjord/common/status.h"
#include "fjord/document/document_format.h"
#include "fjord/document/document_id.h"

namespace fjord {

/// Values above `warn_above` are reported, values above `fail_above` are refused. Zero: no threshold.
struct LimitThreshold {
  std::uint64_t warn_above = 0;
  std::uint64_t fail_above = 0;
};

/// Limits on documents. The formats have limits of their own (64 MiB a part, 65536 bytes an id, nesting depth 32).
/// These limits keep a deployment well below them and can be changed while it runs.
struct DocumentLimits {
  /// Bytes of both parts together. Each node that holds a replica needs memory and time in proportion.
  LimitThreshold document_bytes{setting_default("distributor.document_bytes_warn"),
                                setting_default("distributor.document_bytes_max")};
  /// Bytes of the id. Ids are kept in indexes and sent with every operation.
  LimitThreshold id_bytes{setting_default("distributor.id_bytes_warn"), setting_default("distributor.id_bytes_max")};
  /// Nesting depth of collections and structs.
  LimitThreshold depth{setting_default("distributor.depth_warn"), setting_default("distributor.depth_max")};
  /// Number of set fields plus the members of all structs within them.
  LimitThreshold fields{setting_default("distributor.fields_warn"), setting_default("distributor.fields_max")};
};

/// A value above its reporting threshold.
struct LimitWarning {
  std::string_view what;  ///< "document bytes", "id bytes", "depth" or "fields"; a string literal.
  std::uint64_t value = 0;
  std::uint64_t warn_above = 0;

  /// "depth: 20; more than 16 are reported"
  std::string to_string() const;
};

struct LimitCheck {
  Status status;  ///< TooLarge with the quantity, its value and the limit, or OK.
  std::vector<LimitWarning>
      warnings;  ///< Values above `warn_above` that are not refused. Allocates only if there are any.
};

/// Makes one pass over the fields. Reads values only of structs and of collections within collections. Malformed bytes
/// end the pass without an error, because validate() refuses them.
LimitCheck check_limits(const DocumentLimits& limits, std::string_view id, std::string_view header,
                        std::string_view body);

}  // namespace fjord
