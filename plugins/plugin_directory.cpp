#include "fjord/plugins/plugin_directory.h"

#include <algorithm>
#include <filesystem>

#include "fjord/common/log.h"
#include "plugin_application.h"
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

Result<HostAnswer> describe(const PluginOptions& options, const std::string& file) {
  FJORD_TRY_ASSIGN(const std::unique_ptr<PluginProcess> process, PluginProcess::start(options, file));
  return process->call(
      {}, kDescribeTimeout, [] { return false; }, [](const HostAnswer&) {});
}

/// Returns why the library cannot be used; empty if it can.
std::string taken_name(const HostAnswer& offered, const visitors::VisitorRegistry& visitors,
                       const mapreduce::ApplicationRegistry& applications) {
  for (const auto& [name, help] : offered.described) {
    if (visitors.find(name) != nullptr) return "there is another visitor " + name;
  }
  for (const DescribedApplication& application : offered.applications) {
    if (applications.find(application.name) != nullptr) return "there is another application " + application.name;
  }
  return "";
}

}  // namespace

Result<std::vector<rpc::PluginLibrary>> load_plugins(const PluginOptions& options, MetricRegistry& metrics,
                                                     visitors::VisitorRegistry& visitors,
                                                     mapreduce::ApplicationRegistry& applications) {
  std::vector<rpc::PluginLibrary> libraries;
  if (options.directory.empty()) return libraries;
  FJORD_TRY_ASSIGN(const std::vector<std::string> files, library_files(options.directory));
  const auto shared = std::make_shared<PluginContext>(options, metrics);
  for (const std::string& file : files) {
    rpc::PluginLibrary& library = libraries.emplace_back();
    library.file = file;
    const Result<HostAnswer> offered = describe(options, file);
    if (!offered && offered.error().code() == StatusCode::IoError) return offered.error();
    library.problem = offered ? taken_name(*offered, visitors, applications) : offered.error().message();
    if (!library.problem.empty()) {
      shared->refused.add(1);
      log::error("plugins", "{} is not used: {}", file, library.problem);
      continue;
    }
    for (const auto& [name, help] : offered->described) {
      visitors.add(name, plugin_visitor_factory(shared, file, name));
      library.functions.push_back({name, help, false, ""});
    }
    for (const DescribedApplication& application : offered->applications) {
      applications.add(plugin_application(shared, file, application));
      library.functions.push_back({application.name, application.help, true, application.version});
    }
    log::info("plugins", "{}: {} visitors, {} applications", file, offered->described.size(),
              offered->applications.size());
  }
  return libraries;
}

bool PluginService::handle(rpc::Request& request, rpc::Responder& respond) {
  if (!std::holds_alternative<rpc::ListPlugins>(request)) return false;
  respond(rpc::ListPluginsReply{Status::ok(), libraries_});
  return true;
}

}  // namespace fjord::plugins
