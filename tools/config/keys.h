#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fjord/config/cluster_config.h"

namespace fjord::config {

enum class KeyType { Text, Choice, Boolean, Integer, Number, Address, OptionalAddress, Path };

/// One key of the configuration file: everything that is known of it, said once.
struct Key {
  std::string path;  ///< "storage_options.stripes"; "[]" stands for any element of a list.
  KeyType type = KeyType::Text;
  std::string unit;  ///< "ms", "bytes"; empty: none.
  std::string default_value;
  bool required = false;
  double min = 0;  ///< Integer and Number.
  double max = 0;
  std::vector<std::string> choices;
  std::string help;
  /// Stores a value that has passed the checks. `index` is that of the list's element, 0 elsewhere.
  std::function<void(ClusterConfig&, std::size_t index, const std::string& text)> store;
};

/// In the order of the reference page.
const std::vector<Key>& keys();
/// The setting of the live configuration that takes the key's place while it has a value; empty: there is none.
std::string live_setting_of(const std::string& path);
/// Sections of the file with a sentence each, in the order of the reference page. A list's name ends in "[]"; the first
/// section is the top level and has no name.
struct Section {
  std::string name;
  std::string help;
};
const std::vector<Section>& sections();

/// The section of a key's path ("storage[]", "cluster", "" for the top level) and the rest of it.
std::string section_of(const std::string& path);
std::string name_in_section(const std::string& path);

/// "integer", with range and unit: "integer, 1 to 16 ms".
std::string type_text(const Key& key);

/// OK, or what is wrong with the value: "3.5 is not an integer from 1 to 16".
Status check_value(const Key& key, const std::string& text);

}  // namespace fjord::config
