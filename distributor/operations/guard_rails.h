#pragma once

#include <map>
#include <string_view>

#include "fjord/common/metrics.h"
#include "fjord/common/tunable.h"
#include "fjord/document/document_limits.h"

namespace fjord::distributor {

/// Limits of documents, which an operator may change while the distributor runs. Confined to its executor.
class GuardRails {
 public:
  GuardRails(TunableRegistry& tunables, MetricRegistry& metrics, Clock& clock);

  /// Checks the sizes of a document. If a warning threshold is exceeded, returns OK, counts it, and logs it once a
  /// minute for each limit.
  /// Errors: TooLarge, which names the limit and the setting.
  Status check(std::string_view id, std::string_view header, std::string_view body);

 private:
  struct Pair {
    const Tunable& warn;
    const Tunable& fail;
    LimitThreshold threshold() const;
  };
  static Pair declare(TunableRegistry& tunables, const std::string& quantity);
  void report(std::string_view id, const LimitWarning& warning);

  Pair document_bytes_;
  Pair id_bytes_;
  Pair depth_;
  Pair fields_;
  MetricRegistry& metrics_;
  Clock& clock_;
  std::map<std::string_view, MonotonicTime> reported_;  // By LimitWarning::what: time of the last log line.
};

}  // namespace fjord::distributor
