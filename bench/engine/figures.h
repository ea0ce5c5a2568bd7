#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine_under_test.h"

namespace fjord::bench {

/// The measured figures, in the order of the tables.
enum class Metric : std::uint8_t {
  PutProcess,
  PutSync,
  OverwriteProcess,
  OverwriteSync,
  GetHot,
  GetCold,
  IterateHot,
  IterateCold,
  SelectHot,
  SelectCold,
  GetHotReopened,
  IterateHotReopened,
  SelectHotReopened,
  RemoveProcess,
  RemoveSync,
  ReopenHot,
  ReopenCold,
  SpaceAfterPut,
  SpaceAfterOverwrite,
  SpaceAfterRemove,
  SettlePut,
  SettleOverwrite,
  SettleRemove,
  PutCpu,
  Memory,
  PageCache,
  PlainWrite,
};

enum class Unit : std::uint8_t {
  DocumentsPerSecond,
  MegabytesPerSecond,
  Milliseconds,
  Seconds,
  Ratio,
  Microseconds,
  Mebibytes
};

struct MetricInfo {
  Metric metric;
  std::string_view name;
  Unit unit;
  bool more_is_better;
};

const std::vector<MetricInfo>& metric_infos();
const MetricInfo& info_of(Metric metric);

/// The engine name of the figures of plain file reads and writes.
inline constexpr std::string_view kPlainFile = "plain-file";

/// All measured values, one for each repetition.
class Figures {
 public:
  void add(DocumentSize size, const std::string& engine, Metric metric, double value);
  void set_document_bytes(DocumentSize size, std::uint64_t bytes) { document_bytes_[size] = bytes; }
  std::uint64_t document_bytes(DocumentSize size) const { return document_bytes_.at(size); }

  /// Returns null if the metric was not measured.
  const std::vector<double>* values(DocumentSize size, const std::string& engine, Metric metric) const;
  bool has(DocumentSize size, const std::string& engine) const { return by_engine_.contains({size, engine}); }

 private:
  std::map<std::pair<DocumentSize, std::string>, std::map<Metric, std::vector<double>>> by_engine_;
  std::map<DocumentSize, std::uint64_t> document_bytes_;
};

/// Returns the middle value, or the mean of the two middle ones. Precondition: `values` is not empty.
double median(std::vector<double> values);

}  // namespace fjord::bench
