#include "fjord/plugins/plugin_directory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

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

/// Checks that only this user and root can change the library: it runs with all that this process may do. Errors:
/// InvalidArgument; IoError.
Status check_owner(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {StatusCode::IoError, path + ": " + std::strerror(errno)};
  const bool is_trusted = found.st_uid == ::geteuid() || found.st_uid == 0;
  if (is_trusted && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0) return Status::ok();
  return {StatusCode::InvalidArgument,
          fmt::format(
              "{} has the owner {} and the mode {:04o}: expected root or user {}, and that others cannot change it, "
              "as after chmod go-w",
              std::filesystem::path(path).filename().string(), found.st_uid, found.st_mode & 07777, ::geteuid())};
}

Result<HostAnswer> describe(const PluginOptions& options, const std::string& file) {
  FJORD_TRY(check_owner(options.directory));
  if (const Status status = check_owner(file); !status) return Status(StatusCode::InvalidArgument, status.message());
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
    library.file = std::filesystem::path(file).filename().string();  // Where it is concerns no caller.
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
