#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "fjord/common/check.h"

namespace fjord {

/// One CSV file of an experiment. Without a folder nothing is written.
class CsvFile {
 public:
  CsvFile(const std::string& folder, const std::string& name, const std::string& header) {
    if (folder.empty()) return;
    std::filesystem::create_directories(folder);
    file_.open(folder + "/" + name + ".csv");
    FJORD_CHECK(file_.good());
    add(header);
  }
  void add(const std::string& line) {
    if (file_.is_open()) file_ << line << std::endl;
  }

 private:
  std::ofstream file_;
};

}  // namespace fjord
