#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fjord/document/document.h"

namespace fjord {

/// Keeps only the named fields of documents, which may be of different types.
class Projection {
 public:
  /// Without names, all fields stay.
  explicit Projection(std::vector<std::string> names = {}) : names_(std::move(names)) {}

  void apply(Document& document) const {
    if (names_.empty()) return;
    std::vector<std::string> others;
    for (const auto& [field, value] : document.fields()) {
      if (std::find(names_.begin(), names_.end(), field->name) == names_.end()) others.push_back(field->name);
    }
    for (const std::string& name : others) document.remove(name);
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace fjord
