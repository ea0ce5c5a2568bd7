#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "corpus.h"
#include "engine_directory.h"
#include "figures.h"

namespace fjord::bench {

struct RunOptions {
  std::string directory;  ///< Folder for all files of the run.
  std::uint64_t cold_gets_max = 5000;
  unsigned passes = 3;  ///< Number of hot iterations; the median counts.
};

/// Puts a corpus into one engine, reads it in all ways and removes it; then repeats the writes with sync. Compares
/// every answer with the expected one.
class EngineRun {
 public:
  EngineRun(const EngineConfiguration& configuration, const Corpus& corpus, const RunOptions& options, Figures& figures)
      : configuration_(configuration), corpus_(corpus), options_(options), figures_(figures) {}

  /// Errors: those of the engine; Corruption for a wrong answer.
  Status run();

 private:
  struct Spent {
    double seconds = 0;
    double cpu_seconds = 0;
  };

  Status run(EngineDurability durability);
  Status write_phase(EngineDurability durability);
  Status hot_reads();
  Status hot_pass(Metric get, Metric iterate, Metric select);
  Status cold_reads();
  Status remove_phase(EngineDurability durability);

  Result<Spent> put_all(const std::vector<std::uint32_t>& numbers, unsigned version);
  Result<Spent> remove_all(const std::vector<std::uint32_t>& numbers);
  Result<double> get_all(const std::vector<std::uint32_t>& numbers, unsigned version);
  Result<double> iterate_all(const Totals& expected, bool selected);
  Status settle(Metric metric);
  Result<double> reopen();
  Status reopen_cold();
  Status record_space(Metric metric, std::uint64_t document_bytes);
  void note_memory();
  void record(Metric metric, double value);
  void record_rate(Metric metric, double documents, const Spent& spent) { record(metric, documents / spent.seconds); }

  const EngineConfiguration& configuration_;
  const Corpus& corpus_;
  const RunOptions& options_;
  Figures& figures_;
  std::unique_ptr<EngineUnderTest> engine_;
  std::optional<EngineDirectory> directory_;
  EngineDurability durability_ = EngineDurability::Process;
  double memory_before_ = 0;
  double memory_peak_ = 0;
};

/// Measures the file system with as many bytes as the corpus has: one write and sync, then reads of 1 MiB each.
Status measure_plain_file(const Corpus& corpus, const RunOptions& options, Figures& figures);

}  // namespace fjord::bench
