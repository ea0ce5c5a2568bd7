#include "guard_rails.h"

#include "fjord/common/log.h"

namespace fjord::distributor {
namespace {

constexpr Duration kReportEvery = seconds(60);

}  // namespace

LimitThreshold GuardRails::Pair::threshold() const {
  return {static_cast<std::uint64_t>(warn.value()), static_cast<std::uint64_t>(fail.value())};
}

GuardRails::Pair GuardRails::declare(TunableRegistry& tunables, const std::string& quantity) {
  const std::string name = "distributor." + quantity;
  return {tunables.declare(name + "_warn"), tunables.declare(name + "_max")};
}

GuardRails::GuardRails(TunableRegistry& tunables, MetricRegistry& metrics, Clock& clock)
    : document_bytes_(declare(tunables, "document_bytes")),
      id_bytes_(declare(tunables, "id_bytes")),
      depth_(declare(tunables, "depth")),
      fields_(declare(tunables, "fields")),
      metrics_(metrics),
      clock_(clock) {}

Status GuardRails::check(std::string_view id, std::string_view header, std::string_view body) {
  const DocumentLimits limits{document_bytes_.threshold(), id_bytes_.threshold(), depth_.threshold(),
                              fields_.threshold()};
  LimitCheck checked = check_limits(limits, id, header, body);
  for (const LimitWarning& warning : checked.warnings) report(id, warning);
  if (checked.status) return Status::ok();
  return Status(checked.status.code(),
                checked.status.message() + " (distributor.document_bytes_max, id_bytes_max, depth_max, fields_max)");
}

void GuardRails::report(std::string_view id, const LimitWarning& warning) {
  metrics_
      .counter("fjord_distributor_limit_warnings_total", "Documents above the threshold of a warning",
               {{"limit", std::string(warning.what)}})
      .add();
  const MonotonicTime now = clock_.now();
  const auto [last, is_first] = reported_.try_emplace(warning.what, now);
  if (!is_first && now - last->second < kReportEvery) return;
  last->second = now;
  log::warning("distributor", "{}: {}", id.substr(0, 200), warning.to_string());
}

}  // namespace fjord::distributor
