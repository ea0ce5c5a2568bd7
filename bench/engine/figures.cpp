#include "figures.h"

#include <algorithm>

#include "fjord/common/check.h"

namespace fjord::bench {

const std::vector<MetricInfo>& metric_infos() {
  static const std::vector<MetricInfo> infos = {
      {Metric::PutProcess, "put, process", Unit::DocumentsPerSecond, true},
      {Metric::PutSync, "put, sync", Unit::DocumentsPerSecond, true},
      {Metric::OverwriteProcess, "overwrite, process", Unit::DocumentsPerSecond, true},
      {Metric::OverwriteSync, "overwrite, sync", Unit::DocumentsPerSecond, true},
      {Metric::GetHot, "get, hot", Unit::DocumentsPerSecond, true},
      {Metric::GetCold, "get, cold", Unit::DocumentsPerSecond, true},
      {Metric::IterateHot, "iterate, hot", Unit::MegabytesPerSecond, true},
      {Metric::IterateCold, "iterate, cold", Unit::MegabytesPerSecond, true},
      {Metric::SelectHot, "select 1%, hot", Unit::MegabytesPerSecond, true},
      {Metric::SelectCold, "select 1%, cold", Unit::MegabytesPerSecond, true},
      {Metric::GetHotReopened, "get, hot, reopened", Unit::DocumentsPerSecond, true},
      {Metric::IterateHotReopened, "iterate, hot, reopened", Unit::MegabytesPerSecond, true},
      {Metric::SelectHotReopened, "select 1%, hot, reopened", Unit::MegabytesPerSecond, true},
      {Metric::RemoveProcess, "remove, process", Unit::DocumentsPerSecond, true},
      {Metric::RemoveSync, "remove, sync", Unit::DocumentsPerSecond, true},
      {Metric::ReopenHot, "reopen, hot", Unit::Milliseconds, false},
      {Metric::ReopenCold, "reopen, cold", Unit::Milliseconds, false},
      {Metric::SpaceAfterPut, "space after put", Unit::Ratio, false},
      {Metric::SpaceAfterOverwrite, "space after overwrite", Unit::Ratio, false},
      {Metric::SpaceAfterRemove, "space after remove", Unit::Ratio, false},
      {Metric::SettlePut, "settle after put", Unit::Seconds, false},
      {Metric::SettleOverwrite, "settle after overwrite", Unit::Seconds, false},
      {Metric::SettleRemove, "settle after remove", Unit::Seconds, false},
      {Metric::PutCpu, "CPU time of a put, process", Unit::Microseconds, false},
      {Metric::Memory, "memory of its own, peak", Unit::Mebibytes, false},
      {Metric::PageCache, "page cache when hot", Unit::Mebibytes, false},
      {Metric::PlainWrite, "write and one sync", Unit::MegabytesPerSecond, true},
  };
  return infos;
}

const MetricInfo& info_of(Metric metric) {
  const std::vector<MetricInfo>& infos = metric_infos();
  const auto found = std::find_if(infos.begin(), infos.end(), [&](const MetricInfo& i) { return i.metric == metric; });
  FJORD_CHECK(found != infos.end());
  return *found;
}

void Figures::add(DocumentSize size, const std::string& engine, Metric metric, double value) {
  by_engine_[{size, engine}][metric].push_back(value);
}

const std::vector<double>* Figures::values(DocumentSize size, const std::string& engine, Metric metric) const {
  const auto of_engine = by_engine_.find({size, engine});
  if (of_engine == by_engine_.end()) return nullptr;
  const auto found = of_engine->second.find(metric);
  return found == of_engine->second.end() ? nullptr : &found->second;
}

double median(std::vector<double> values) {
  FJORD_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace fjord::bench
