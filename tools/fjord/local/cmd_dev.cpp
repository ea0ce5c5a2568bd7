#include <filesystem>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include "commands/commands.h"
#include "fjord/common/log.h"
#include "fjord/node/node.h"
#include "local/local_cluster.h"

namespace fjord::cli {
namespace {

namespace fs = std::filesystem;

/// The data folder: one that the user named, or a temporary one, which the destructor removes.
class DevDirectory {
 public:
  static Result<DevDirectory> open(const std::string& wanted) {
    if (!wanted.empty()) return DevDirectory(wanted, false);
    std::string name = (fs::temp_directory_path() / "fjord-dev-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return Status(StatusCode::IoError, name + ": cannot be made");
    return DevDirectory(name, true);
  }
  DevDirectory(DevDirectory&& other) noexcept
      : path_(other.path_), temporary_(std::exchange(other.temporary_, false)) {}
  DevDirectory& operator=(DevDirectory&&) = delete;
  ~DevDirectory() {
    std::error_code ignored;
    if (temporary_) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  DevDirectory(std::string path, bool temporary) : path_(std::move(path)), temporary_(temporary) {}
  std::string path_;
  bool temporary_;
};

/// Returns the configuration of the folder's cluster, or of a new one with one node of each role. A cluster keeps its
/// ports, because the fleet controller stores the addresses of the nodes.
Result<config::ClusterConfig> dev_config(const std::string& directory, int gateways) {
  const std::string path = directory + "/dev.yaml";
  if (!fs::exists(path)) {
    LocalShape shape{.storage = 1, .distributors = 1, .redundancy = 1};
    if (gateways >= 0) shape.gateways = gateways;
    FJORD_TRY(create_local_config(directory, "dev.yaml", shape));
  }
  FJORD_TRY_ASSIGN(config::ClusterConfig config, config::load_config(path));
  if (gateways < 0 || static_cast<std::size_t>(gateways) == config.gateways.size()) return config;
  return Status(StatusCode::AlreadyExists,
                fmt::format("{} holds a cluster with --gateways {}, which cannot be changed to {} here", directory,
                            config.gateways.size(), gateways));
}

Status run_until_signal(const config::ClusterConfig& config) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  std::vector<std::unique_ptr<Node>> nodes;
  for (const config::ProcessName& name : config.names()) {
    FJORD_TRY_ASSIGN(std::unique_ptr<Node> node, Node::start(config, name));
    complain(
        fmt::format("{} on {}, metrics on http://{}/metrics", name.to_string(), node->address(), node->http_address()));
    if (name.role == config::Role::Gateway) complain(fmt::format("HTTP clients: http://{}/", node->address()));
    nodes.push_back(std::move(node));
  }
  complain("Ctrl-C ends it");
  print_line("export FJORD_CLUSTER=" + config.distributors.front().address);
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  while (!nodes.empty()) nodes.pop_back();
  return Status::ok();
}

}  // namespace

int run_dev(const DevArgs& args) {
  log::set_level(log::Level::Warning);
  ::umask(S_IRWXG | S_IRWXO);
  const auto directory = DevDirectory::open(args.directory);
  if (!directory) return report(directory.error());
  const auto config = dev_config(directory->path(), args.gateways);
  if (!config) return report(config.error());
  const Status status = run_until_signal(*config);
  return status ? static_cast<int>(kOk) : report(status);
}

}  // namespace fjord::cli
