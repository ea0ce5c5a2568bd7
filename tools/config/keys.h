#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fjord/config/cluster_config.h"

namespace fjord::config {

enum class KeyType { Text, Choice, Boolean, Integer, Number, Address, OptionalAddress, Path };

/// The declaration of one key of the configuration file.
struct Key {
  std::string path;  ///< "storage_options.stripes"; "[]" matches any element of a list.
  KeyType type = KeyType::Text;
  std::string unit;  ///< "ms", "bytes"; empty: no unit.
  std::string default_value;
  bool required = false;
  double min = 0;  ///< Smallest value of an Integer or Number.
  double max = 0;  ///< Largest value of an Integer or Number.
  std::vector<std::string> choices;
  std::string help;
  std::int64_t ClusterConfig::*number = nullptr;  ///< The member for the value, if that is an integer setting.
  /// Stores a value that has passed the checks. `index` is the position of the list element; 0 outside of lists.
  std::function<void(ClusterConfig&, std::size_t index, const std::string& text)> store;
};

/// Returns all keys in the order of the reference page.
const std::vector<Key>& keys();
/// Returns the name of the live setting that overrides the key while it has a value; empty without such a setting.
std::string live_setting_of(const std::string& path);
/// A section of the file with its description. The name of a list ends in "[]"; the top level has an empty name.
struct Section {
  std::string name;
  std::string help;
  std::int64_t ClusterConfig::*number = nullptr;  ///< The member for the value, if that is an integer setting.
};
/// Returns all sections in the order of the reference page, the top level first.
const std::vector<Section>& sections();

/// Returns the section of a key's path: "storage[]", "cluster", "" for the top level.
std::string section_of(const std::string& path);
/// Returns the part of a key's path after the section.
std::string name_in_section(const std::string& path);

/// Returns the type with range and unit: "integer, 1 to 16 ms".
std::string type_text(const Key& key);

/// Checks a value. Errors: "3.5 is not an integer from 1 to 16".
Status check_value(const Key& key, const std::string& text);

}  // namespace fjord::config
