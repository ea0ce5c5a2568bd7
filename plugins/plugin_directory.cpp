#include "fjord/plugins/plugin_directory.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "fjord/common/log.h"
#include "plugin_process.h"
#include "plugin_visitor.h"

namespace fjord::plugins {
namespace {

constexpr Duration kDescribeTimeout = seconds(10);

Result<std::vector<std::string>> library_files(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".so") files.push_back(entry.path().string());
  }
  if (error) return Status(StatusCode::NotFound, "the plugin directory " + directory + ": " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::vector<std::string>> visitors_of(const PluginOptions& options, const std::string& file) {
  FJORD_TRY_ASSIGN(const std::unique_ptr<PluginProcess> process, PluginProcess::start(options, file));
  FJORD_TRY_ASSIGN(const HostAnswer answer, process->call(
                                                {}, kDescribeTimeout, [] { return false; }, [](HostAnswer) {}));
  std::vector<std::string> names;
  for (const auto& [name, help] : answer.described) names.push_back(name);
  return names;
}

}  // namespace

Result<std::vector<PluginLibrary>> load_plugins(const PluginOptions& options, const rpc::SnapshotHolder& snapshots,
                                                MetricRegistry& metrics, visitors::VisitorRegistry& registry) {
  std::vector<PluginLibrary> libraries;
  if (options.directory.empty()) return libraries;
  FJORD_TRY_ASSIGN(const std::vector<std::string> files, library_files(options.directory));
  auto shared = std::make_shared<PluginVisitorContext>(options, snapshots, metrics);
  for (const std::string& file : files) {
    PluginLibrary library{file, {}, {}};
    Result<std::vector<std::string>> names = visitors_of(options, file);
    if (!names && names.error().code() == StatusCode::IoError) return names.error();
    if (names) {
      library.visitors = std::move(*names);
      for (const std::string& name : library.visitors) {
        if (registry.find(name) != nullptr) library.problem = "there is another visitor " + name;
      }
    } else {
      library.problem = names.error().message();
    }
    if (library.problem.empty()) {
      for (const std::string& name : library.visitors) registry.add(name, plugin_visitor_factory(shared, file, name));
      log::info("plugins", "{}: {} visitors", file, library.visitors.size());
    } else {
      shared->refused.add(1);
      log::error("plugins", "{} is not used: {}", file, library.problem);
    }
    libraries.push_back(std::move(library));
  }
  return libraries;
}

}  // namespace fjord::plugins
