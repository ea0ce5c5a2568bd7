#include "commands/balance_trace.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace fjord::cli {
namespace {

class RecordedTrace final : public balancer::Trace {
 public:
  explicit RecordedTrace(const RecordedLoads& loads) : loads_(loads) {}

  unsigned redundancy() const override { return loads_.redundancy; }
  double read_part() const override {
    double reads = 0;
    double all = 0;
    for (const RecordedLoads::Round& round : loads_.rounds) {
      reads += round.reads;
      all += round.all;
    }
    return all == 0 ? 1 : reads / all;
  }
  void fill(std::uint64_t round, std::span<double> operations) override {
    const std::vector<double>& recorded = loads_.rounds[round % loads_.rounds.size()].operations;
    std::copy(recorded.begin(), recorded.end(), operations.begin());
  }

 private:
  const RecordedLoads& loads_;
};

Status malformed(const std::string& path, std::size_t line, const std::string& text) {
  return {StatusCode::InvalidArgument,
          fmt::format("{}, line {}: \"{}\" is not a line of `fjord balance record`", path, line, text)};
}

/// Adds a line below the headings to `loads`. Returns false if the line is malformed.
bool take_line(const std::string& line, RecordedLoads& loads) {
  std::istringstream words(line);
  if (line.starts_with("round ")) {
    loads.rounds.emplace_back().operations.resize(loads.buckets);
    return true;
  }
  std::uint32_t bucket = 0;
  double reads = 0;
  double writes = 0;
  if (!(words >> bucket >> reads >> writes) || loads.rounds.empty() || bucket >= loads.buckets) return false;
  if (!(reads >= 0) || !(writes >= 0)) return false;
  RecordedLoads::Round& round = loads.rounds.back();
  round.operations[bucket] += reads + writes;
  round.reads += reads;
  round.all += reads + writes;
  return true;
}

}  // namespace

double RecordedLoads::operations() const {
  double sum = 0;
  for (const Round& round : rounds) sum += round.all;
  return rounds.empty() ? 0 : sum / static_cast<double>(rounds.size());
}

std::string record_heading(const BalanceStatus& status) {
  std::size_t redundancy = 1;
  for (const BucketLoadInfo& bucket : status.buckets) redundancy = std::max(redundancy, bucket.nodes.size());
  return fmt::format("#fjord-balance 1\n#buckets {} nodes {} redundancy {}\n",
                     std::uint64_t{1} << status.distribution_bits, status.nodes.size(), redundancy);
}

std::string record_round(const BalanceStatus& status) {
  std::string text = fmt::format("round {}\n", status.round);
  for (const BucketLoadInfo& bucket : status.buckets) {
    if (bucket.reads_per_s + bucket.writes_per_s == 0) continue;
    // Every replica executes a write; here a write counts once.
    const auto replicas = static_cast<double>(std::max<std::size_t>(bucket.nodes.size(), 1));
    text += fmt::format("{} {} {:.1f}\n", bucket.bucket, bucket.reads_per_s,
                        static_cast<double>(bucket.writes_per_s) / replicas);
  }
  return text;
}

Result<RecordedLoads> read_record(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::NotFound, path + " cannot be opened");
  RecordedLoads loads;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    bool is_good = true;
    if (number == 1) {
      is_good = line == "#fjord-balance 1";
    } else if (number == 2) {
      std::istringstream words(line);
      std::string word;
      std::uint64_t buckets = 0;
      is_good = static_cast<bool>(words >> word >> buckets >> word >> loads.nodes >> word >> loads.redundancy) &&
                buckets >= 1 && buckets <= 1U << 20U && loads.nodes >= 1 && loads.nodes <= 65'000 &&
                loads.redundancy >= 1 && loads.redundancy <= 16;
      loads.buckets = static_cast<std::uint32_t>(buckets);
    } else {
      is_good = take_line(line, loads);
    }
    if (!is_good) return malformed(path, number, line);
  }
  if (loads.rounds.empty()) return Status(StatusCode::InvalidArgument, path + " has no round");
  return loads;
}

std::unique_ptr<balancer::Trace> recorded_trace(const RecordedLoads& loads) {
  return std::make_unique<RecordedTrace>(loads);
}

}  // namespace fjord::cli
