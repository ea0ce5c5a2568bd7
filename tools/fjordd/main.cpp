// fjordd: one node of a cluster, or several of them in one process.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/fatal_signals.h"
#include "fjord/common/free_memory.h"
#include "fjord/common/log.h"
#include "fjord/common/log_lines.h"
#include "fjord/common/open_files.h"
#include "fjord/common/private_folder.h"
#include "fjord/common/random.h"
#include "fjord/config/cluster_config.h"
#include "fjord/fleetcontroller/zookeeper_state_store.h"
#include "fjord/node/node.h"
#include "fjord/version/version.h"

/// Options that jemalloc reads. Freed memory goes back to the system a second later: the memory of a finished job or
/// large merge must not look like a leak. Blocks of 32 MiB and more go back at once. Those of rows, answers and frames
/// are smaller and are used again within the second; giving them back at once made the system clear their pages for
/// each job.
extern "C" {
const char* malloc_conf = "oversize_threshold:33554432,dirty_decay_ms:1000";
}

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int fail(const fjord::Status& status, int code) {
  std::fprintf(stderr, "fjordd: %s\n", status.message().c_str());
  return code;
}

/// Returns true if the program was started with SIGHUP ignored, as nohup does: it must outlive the terminal.
bool stays_without_terminal() {
  struct sigaction action {};
  return ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Blocks the end signals. Every thread inherits the mask, so that only wait_for_end() receives them.
/// `has_log_file`: SIGHUP opens the log again instead.
sigset_t block_signals(bool has_log_file) {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (has_log_file || !stays_without_terminal()) sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

/// Longest time for which a process goes on after SIGTERM until the cluster counts on its nodes no more.
constexpr fjord::Duration kControlledStopMax = fjord::seconds(1);

/// Waits for an end signal and returns it. Meanwhile returns memory: the allocator does so only while the process
/// allocates.
/// With a log file SIGHUP opens it again, as programs expect that rename it.
int wait_for_end(const sigset_t& signals, const std::string& name, bool has_log_file) {
  constexpr timespec kBetweenReturns{.tv_sec = 1, .tv_nsec = 0};
  int signal = -1;
  while ((signal = sigtimedwait(&signals, nullptr, &kBetweenReturns)) < 0 || (signal == SIGHUP && has_log_file)) {
    if (signal == SIGHUP) {
      const fjord::Status status = fjord::log::reopen_file();
      if (!status) fjord::log::error("fjordd", "the log cannot be opened again: {}", status.message());
    }
    fjord::return_old_free_memory();
    fjord::log::write_repeats();
  }
  fjord::log::info("fjordd", "{} ends on signal {}", name, signal);
  return signal;
}

/// Lets the nodes tell the fleet controller that they stop, so that it does not count a crash, and lets the others take
/// over what they do.
void leave_cluster(const std::vector<std::unique_ptr<fjord::Node>>& nodes, const std::string& name) {
  for (const auto& node : nodes) node->announce_stop();
  const fjord::SystemClock clock;
  const fjord::MonotonicTime end = clock.now() + kControlledStopMax;
  bool is_told = true;
  for (const auto& node : nodes) {
    const fjord::Duration left = std::max(end - clock.now(), fjord::Duration(0));
    is_told = node->wait_until_not_counted_on(left) && is_told;
  }
  if (!is_told) fjord::log::warning("fjordd", "{} ends before the fleet controller has taken it out", name);
}

std::unique_ptr<fjord::fleetcontroller::ClusterStateStore> make_zookeeper_store(
    const fjord::config::ClusterConfig& config) {
  fjord::fleetcontroller::ZooKeeperOptions options;
  options.servers = config.zookeeper;
  options.root = config.zookeeper_root;
  options.session_timeout = fjord::milliseconds(config.session_timeout_ms);
  // The seed only has to make the name of this process in ZooKeeper unique.
  fjord::SystemClock clock;
  const auto seed =
      static_cast<std::uint64_t>(clock.wall_now().us) * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(::getpid());
  return std::make_unique<fjord::fleetcontroller::ZooKeeperStateStore>(options, fjord::Random(seed));
}

/// Sends the log to its file. `given` is that of the command line. Returns false if there is none.
fjord::Result<bool> open_log(const fjord::config::ClusterConfig& config, std::string given, const std::string& names) {
  if (given.empty() && config.log_directory.empty()) return false;
  if (given.empty()) {
    const std::string& folder = config.log_directory;
    std::error_code ignored;
    FJORD_TRY(std::filesystem::exists(folder, ignored) ? fjord::check_own_folder(folder)
                                                       : fjord::make_private_folder(folder));
    given = folder + "/" + names + ".log";
  }
  FJORD_TRY(fjord::log::write_to_file({.path = given,
                                       .bytes_max = static_cast<std::uint64_t>(config.log_file_bytes_max),
                                       .files_max = static_cast<int>(config.log_files_max)}));
  return true;
}

int run(const std::string& file, const std::vector<std::string>& node_texts, const std::string& log_file) {
  std::vector<fjord::config::ProcessName> names;
  for (const std::string& text : node_texts) {
    const auto name = fjord::config::ProcessName::parse(text);
    if (!name) return fail(name.error().with_context("--node"), kUsage);
    names.push_back(*name);
  }
  const auto config = fjord::config::load_config(file);
  if (!config) return fail(config.error(), kUsage);
  fjord::log::set_level(fjord::log::level_from_string(config->log_level));
  const std::string all = fmt::format("{}", fmt::join(node_texts, ", "));
  fjord::report_fatal_signals(all);
  fjord::raise_open_files_max();
  // Other users of the machine have no part in what the nodes write.
  ::umask(S_IRWXG | S_IRWXO);
  const auto has_log_file = open_log(*config, log_file, fmt::format("{}", fmt::join(node_texts, "+")));
  if (!has_log_file) return fail(has_log_file.error(), kFailed);
  const sigset_t signals = block_signals(*has_log_file);
  std::vector<std::unique_ptr<fjord::Node>> nodes;
  for (const fjord::config::ProcessName& name : names) {
    auto node = fjord::Node::start(*config, name, &make_zookeeper_store);
    if (!node) {
      return fail(node.error(), node.error().code() == fjord::StatusCode::InvalidArgument ? kUsage : kFailed);
    }
    nodes.push_back(std::move(*node));
  }
  // SIGINT and SIGHUP end the process at once, for example because the whole cluster ends.
  if (wait_for_end(signals, all, *has_log_file) == SIGTERM) leave_cluster(nodes, all);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "One process of a Fjord cluster.\n\nExample:\n  fjordd --config cluster.yaml --node storage.2\n"
      "  fjordd --config cluster.yaml --node distributor.0 --node distributor.1",
      "fjordd");
  std::string file;
  std::vector<std::string> nodes;
  std::string log_file;
  std::string help_format;
  CLI::Option* config_option =
      app.add_option("--config", file, "The YAML file that describes the cluster")->type_name("FILE");
  CLI::Option* node_option =
      app.add_option(
             "--node", nodes,
             "Which node this is: storage.N, distributor.N, fleetcontroller.N or gateway.N; several: all in one "
             "process, as distributors on a machine of many cores")
          ->type_name("NODE")
          ->allow_extra_args(false);
  app.add_option("--log", log_file,
                 "File for the log in place of log.directory or standard error; SIGHUP opens it again")
      ->type_name("FILE");
  app.add_flag("--help-config{text}", help_format,
               "Lists all keys of the configuration file; =markdown prints the reference page")
      ->check(CLI::IsMember({"text", "markdown"}));
  app.set_version_flag("--version", fjord::version_text("fjordd"), "Prints the version and exits");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (!help_format.empty()) {
    const std::string text =
        help_format == "markdown" ? fjord::config::reference_page() : fjord::config::reference_text();
    const bool is_printed = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!is_printed) std::fprintf(stderr, "fjordd: standard output cannot be written\n");
    return is_printed ? 0 : 1;
  }
  if (config_option->empty() || node_option->empty()) {
    std::fprintf(stderr, "fjordd: --config and --node are needed, see fjordd --help\n");
    return kUsage;
  }
  return run(file, nodes, log_file);
}
