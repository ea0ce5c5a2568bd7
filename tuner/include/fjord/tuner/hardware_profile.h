#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::tuner {

/// The constants by which the cost model describes a machine; it knows nothing else of the machine. `fjord tune
/// calibrate` measures each in a few seconds, except the network between machines, which the workload file gives.
enum class Constant : std::size_t {
  SyncS,                ///< One small append with its sync, in seconds.
  SequentialReadRate,   ///< Sequential reads from the medium, bytes/s.
  SequentialWriteRate,  ///< Sequential writes to the medium, syncs included, bytes/s.
  RandomReadS,          ///< One read of 4 KiB from the medium without other load, in seconds.
  RandomReadsPerS,      ///< Reads of 4 KiB per second, with as many in flight as the device can use.
  FileOpenS,            ///< Opening and closing a file, in seconds.
  HashRate,             ///< Checksums and hashes of documents, bytes/s.
  CopyRate,             ///< memcpy of data larger than the caches, bytes/s.
  DecodeRate,           ///< Decoding of documents, bytes/s.
  MemoryAccessS,        ///< One dependent access to memory, in seconds.
  RoundTripS,           ///< A call and its answer over the loopback interface, in seconds.
  NetworkRate,          ///< Network bandwidth of a node, bytes/s.
};
inline constexpr std::size_t kConstants = 12;

/// The source of a value.
enum class Origin {
  Default,    ///< No source: the value of an ordinary machine of 2026.
  Workload,   ///< The workload file.
  Measured,   ///< A plausible measurement.
  LastValid,  ///< The previous value, because the newest measurement was not plausible.
};
std::string_view to_string(Origin origin);

/// Name, unit, default and plausible range of a constant.
struct ConstantDeclaration {
  Constant id;
  std::string_view name;  ///< "random_read_s"
  std::string_view unit;  ///< Unit of the values: "s", "bytes/s", "1/s"
  double default_value;
  double plausible_min;  ///< Measurements outside [plausible_min, plausible_max] are taken for errors.
  double plausible_max;
  std::string_view meaning;
};
/// Returns the declarations of all constants, in the order of Constant.
std::span<const ConstantDeclaration, kConstants> constant_declarations();
const ConstantDeclaration& declaration_of(Constant constant);

struct ConstantValue {
  double value = 0;
  Origin origin = Origin::Default;
  double confidence = 0.3;  ///< 0 to 1; 1 if all repetitions were equal.
  double rejected = 0;      ///< With LastValid, the implausible measurement; else 0.
};

/// The constants of one kind of machine. A plain value without shared state.
class HardwareProfile {
 public:
  /// Sets all constants to their defaults.
  HardwareProfile();

  double operator[](Constant constant) const { return at(constant).value; }
  const ConstantValue& at(Constant constant) const { return values_[static_cast<std::size_t>(constant)]; }
  void set(Constant constant, ConstantValue value) { values_[static_cast<std::size_t>(constant)] = value; }
  void set_from_workload(Constant constant, double value) { set(constant, {value, Origin::Workload, 0.7, 0}); }

  /// Stores the median of repeated measurements of one constant; their spread gives the confidence. If the median is
  /// outside the plausible range, the previous value stays with half its confidence. Returns whether the median was
  /// stored.
  bool measured(Constant constant, std::span<const double> repetitions);

 private:
  std::array<ConstantValue, kConstants> values_;
};

/// Returns the profile as YAML text, with units and plausible ranges as comments.
std::string profile_text(const HardwareProfile& profile, std::string_view heading);
/// Reads the text of profile_text(). Refuses values outside their plausible range.
/// Errors: InvalidArgument "file:line: name: what is wrong".
Result<HardwareProfile> parse_profile(std::string_view text, const std::string& file);

}  // namespace fjord::tuner
