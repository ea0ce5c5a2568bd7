#include "fjord/tuner/hardware_profile.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include "fjord/common/check.h"

namespace fjord::tuner {
namespace {

constexpr std::array<ConstantDeclaration, kConstants> kDeclarations = {{
    {Constant::SyncS, "sync_s", "s", 1e-3, 5e-6, 0.5, "a small append and its sync"},
    {Constant::SequentialReadRate, "sequential_read_rate", "bytes/s", 500e6, 10e6, 30e9, "reading from the medium"},
    {Constant::SequentialWriteRate, "sequential_write_rate", "bytes/s", 400e6, 5e6, 20e9,
     "writing to the medium, the sync included"},
    {Constant::RandomReadS, "random_read_s", "s", 150e-6, 2e-6, 0.1, "one read of 4 KiB from the medium, alone"},
    {Constant::RandomReadsPerS, "random_reads_per_s", "1/s", 40'000, 30, 5e6, "reads of 4 KiB, many at once"},
    {Constant::FileOpenS, "file_open_s", "s", 10e-6, 0.5e-6, 0.05, "opening and closing a file"},
    {Constant::HashRate, "hash_rate", "bytes/s", 5e9, 50e6, 200e9, "hashes of documents"},
    {Constant::CopyRate, "copy_rate", "bytes/s", 6e9, 200e6, 500e9, "memcpy beyond the caches"},
    {Constant::DecodeRate, "decode_rate", "bytes/s", 500e6, 1e6, 100e9, "taking documents apart"},
    {Constant::MemoryAccessS, "memory_access_s", "s", 100e-9, 5e-9, 5e-6, "one dependent access to memory"},
    {Constant::RoundTripS, "round_trip_s", "s", 100e-6, 2e-6, 0.2, "a call and its answer, loopback interface"},
    {Constant::NetworkRate, "network_rate", "bytes/s", 125e6, 1e6, 100e9, "what a node can send or receive"},
}};

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::string_view to_string(Origin origin) {
  switch (origin) {
    case Origin::Default:
      return "default";
    case Origin::Workload:
      return "workload";
    case Origin::Measured:
      return "measured";
    case Origin::LastValid:
      return "last_valid";
  }
  return "";
}

std::span<const ConstantDeclaration, kConstants> constant_declarations() { return kDeclarations; }

const ConstantDeclaration& declaration_of(Constant constant) {
  return kDeclarations[static_cast<std::size_t>(constant)];
}

HardwareProfile::HardwareProfile() {
  for (const ConstantDeclaration& one : kDeclarations) set(one.id, {one.default_value, Origin::Default, 0.3, 0});
}

bool HardwareProfile::measured(Constant constant, std::span<const double> repetitions) {
  FJORD_CHECK(!repetitions.empty());
  std::vector<double> values(repetitions.begin(), repetitions.end());
  const double median = median_of(values);
  const ConstantDeclaration& declared = declaration_of(constant);
  ConstantValue& kept = values_[static_cast<std::size_t>(constant)];
  if (!(median >= declared.plausible_min && median <= declared.plausible_max)) {
    if (kept.origin == Origin::Measured) kept.origin = Origin::LastValid;
    kept.confidence /= 2;
    kept.rejected = median;
    return false;
  }
  for (double& value : values) value = std::abs(value - median);
  const double spread = median_of(values) / median;
  // A single repetition has no spread, so its confidence is limited.
  const double most = repetitions.size() == 1 ? 0.5 : 1.0;
  kept = {median, Origin::Measured, most / (1 + 3 * spread), 0};
  return true;
}

std::string profile_text(const HardwareProfile& profile, std::string_view heading) {
  std::string text = fmt::format("# {}\nversion: 1\nconstants:\n", heading);
  for (const ConstantDeclaration& one : kDeclarations) {
    const ConstantValue& value = profile.at(one.id);
    text += fmt::format("  # {} ({}); plausible: {:g} to {:g}\n", one.meaning, one.unit, one.plausible_min,
                        one.plausible_max);
    if (value.rejected != 0) text += fmt::format("  # not plausible, and not used: {:g}\n", value.rejected);
    text += fmt::format("  {}: {{value: {:.6g}, origin: {}, confidence: {:.3g}}}\n", one.name, value.value,
                        to_string(value.origin), value.confidence);
  }
  return text;
}

}  // namespace fjord::tuner
