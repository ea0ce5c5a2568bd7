#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::tuner {

/// What the cost model knows of a machine; all of it. Each can be measured in some seconds (`fjord tune calibrate`),
/// except the network between machines, which the description of the workload says.
enum class Constant : std::size_t {
  SyncS,                ///< A small append and its sync.
  SequentialReadRate,   ///< From the medium, bytes/s.
  SequentialWriteRate,  ///< To the medium, syncs included, bytes/s.
  RandomReadS,          ///< One read of 4 KiB from the medium, alone.
  RandomReadsPerS,      ///< As many of them at once as the device likes.
  FileOpenS,            ///< Opening and closing a file.
  HashRate,             ///< Checksums and hashes of documents, bytes/s.
  CopyRate,             ///< memcpy beyond the caches, bytes/s.
  DecodeRate,           ///< Taking a document apart, bytes/s.
  MemoryAccessS,        ///< One dependent access to memory.
  RoundTripS,           ///< A call and its answer over the loopback interface.
  NetworkRate,          ///< Of a node, bytes/s.
};
inline constexpr std::size_t kConstants = 12;

/// Where a value came from.
enum class Origin {
  Default,    ///< Nobody said: an ordinary machine of 2026.
  Workload,   ///< The description of the workload says so.
  Measured,   ///< Measured, and plausible.
  LastValid,  ///< The newest measurement was not plausible; this is the one before.
};
std::string_view to_string(Origin origin);

/// What is known of a constant before anything is measured.
struct ConstantDeclaration {
  Constant id;
  std::string_view name;  ///< "random_read_s"
  std::string_view unit;  ///< "s", "bytes/s", "1/s"
  double default_value;
  double plausible_min;  ///< Outside this band a measurement is a mistake and not a machine.
  double plausible_max;
  std::string_view meaning;
};
/// All of them, in the order of Constant.
std::span<const ConstantDeclaration, kConstants> constant_declarations();
const ConstantDeclaration& declaration_of(Constant constant);

struct ConstantValue {
  double value = 0;
  Origin origin = Origin::Default;
  double confidence = 0.3;  ///< 0 to 1: 1 when repetitions agreed exactly.
  double rejected = 0;      ///< With LastValid: what was measured. Else 0.
};

/// The constants of one kind of machine. A value; nothing in it is shared.
class HardwareProfile {
 public:
  /// All at their defaults.
  HardwareProfile();

  double operator[](Constant constant) const { return at(constant).value; }
  const ConstantValue& at(Constant constant) const { return values_[static_cast<std::size_t>(constant)]; }
  void set(Constant constant, ConstantValue value) { values_[static_cast<std::size_t>(constant)] = value; }
  void set_from_workload(Constant constant, double value) { set(constant, {value, Origin::Workload, 0.7, 0}); }

  /// Takes in repetitions of one measurement: their median counts, their spread is the confidence. If the median is
  /// outside the plausible band the value from before stays, with half its confidence. Returns whether it was taken.
  bool measured(Constant constant, std::span<const double> repetitions);

 private:
  std::array<ConstantValue, kConstants> values_;
};

/// The profile as a file (YAML), with units and bands as comments.
std::string profile_text(const HardwareProfile& profile, std::string_view heading);
/// Reads what profile_text() wrote. Values out of their bands are refused.
/// Errors: InvalidArgument "file:line: name: what is wrong".
Result<HardwareProfile> parse_profile(std::string_view text, const std::string& file);

}  // namespace fjord::tuner
