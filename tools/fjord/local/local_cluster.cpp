#include "local/local_cluster.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <signal.h>
#include <span>
#include <sstream>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "fjord/common/private_folder.h"
#include "local/free_ports.h"
#include "local/process_facts.h"

namespace fjord::cli {
namespace {

namespace fs = std::filesystem;
using config::ProcessName;

constexpr int kBasePort = 19100;
constexpr int kControllerOffset = 49;
constexpr int kStorageOffset = 50;
constexpr int kHttpOffset = 100;

Status io_error(const std::string& what, int error) {
  return Status(StatusCode::IoError, fmt::format("{}: {}", what, std::strerror(error)));
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Replaces the file, with one that only this user reads.
Status write_text(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  if (::unlink(temporary.c_str()) != 0 && errno != ENOENT) return io_error(temporary, errno);
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return io_error(temporary, errno);
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t bytes = ::write(file, text.data() + written, text.size() - written);
    if (bytes < 0 && errno != EINTR) break;
    if (bytes > 0) written += static_cast<std::size_t>(bytes);
  }
  const int error = errno;
  if (::close(file) != 0 || written < text.size()) return io_error(temporary, error);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return io_error(path, errno);
  return Status::ok();
}

/// Opens a file for lines at its end. Errors: IoError, also for a link; InvalidArgument if it is not this user's alone.
Result<int> open_log(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return io_error(path, errno);
  if (const Status status = check_own_file(file, path); !status) {
    ::close(file);
    return status;
  }
  return file;
}

/// Returns the words of the command line of a process.
std::vector<std::string> words_of(pid_t pid) {
  std::vector<std::string> words;
  const std::string text = read_text(fmt::format("/proc/{}/cmdline", pid));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// Returns true if the process runs fjordd for a node of the configuration `file`, as this user.
bool is_node(pid_t pid, const ProcessName& name, const std::string& file) {
  struct stat process {};
  if (::stat(fmt::format("/proc/{}", pid).c_str(), &process) != 0 || process.st_uid != ::geteuid()) return false;
  std::error_code error;
  const std::string program = fs::read_symlink(fmt::format("/proc/{}/exe", pid), error).filename().string();
  // A program that an upgrade has replaced is called so.
  if (program != "fjordd" && program != "fjordd (deleted)") return false;
  const std::vector<std::string> words = words_of(pid);
  if (words.empty()) return true;  // The kernel has begun the program and not given it its arguments yet.
  const auto has = [&](const char* option, auto is_wanted) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == option && is_wanted(words[i + 1])) return true;
    }
    return false;
  };
  return has("--node", [&](const std::string& word) { return word == name.to_string(); }) &&
         has("--config", [&](const std::string& word) { return word == file || fs::equivalent(word, file, error); });
}

/// Returns the path of fjordd in the folder of this program.
std::string fjordd_path() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "fjordd").string();
}

/// Runs in the child between fork and exec; makes only system calls.
[[noreturn]] void become(const char* const* argv, int log) {
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(log, STDOUT_FILENO) < 0 || ::dup2(log, STDERR_FILENO) < 0) {
    ::_exit(127);
  }
  ::execv(argv[0], const_cast<char* const*>(argv));
  ::_exit(127);
}

/// Returns the first free ports from 8080 on.
Result<std::vector<int>> gateway_ports(int count) {
  constexpr int kFirst = 8080;
  constexpr int kLast = 8999;
  std::vector<int> ports;
  for (int port = kFirst; count > static_cast<int>(ports.size()) && port <= kLast; ++port) {
    if (all_free({port})) ports.push_back(port);
  }
  if (count == static_cast<int>(ports.size())) return ports;
  return Status(StatusCode::IoError, fmt::format("no free ports for gateways from {} to {}", kFirst, kLast));
}

std::string gateways_yaml(std::span<const int> ports) {
  std::string yaml;
  for (const int port : ports) {
    yaml += fmt::format("{}  - address: 127.0.0.1:{}\n", yaml.empty() ? "gateways:\n" : "", port);
  }
  return yaml;
}

/// Returns where the list of storage nodes ends: at the next section, or at the end.
std::size_t end_of_storage(std::string_view yaml) {
  bool is_inside = false;
  for (std::size_t line = 0; line < yaml.size(); line = yaml.find('\n', line) + 1) {
    const std::string_view rest = yaml.substr(line);
    if (rest.starts_with(' ') || rest.starts_with('-')) continue;
    if (is_inside) return line;
    is_inside = rest.starts_with("storage:");
  }
  return yaml.size();
}

Result<std::string> make_local_yaml(const LocalShape& shape) {
  std::vector<int> ports;
  for (int http = 0; http <= kHttpOffset; http += kHttpOffset) {
    for (int i = 0; i < shape.distributors; ++i) ports.push_back(kBasePort + http + i);
    ports.push_back(kBasePort + http + kControllerOffset);
    for (int i = 0; i < shape.storage; ++i) ports.push_back(kBasePort + http + kStorageOffset + i);
  }
  const std::size_t processes = ports.size() / 2;
  if (!shape.usual_ports || !all_free(ports)) {
    FJORD_TRY_ASSIGN(ports, find_free_ports(ports.size() + static_cast<std::size_t>(shape.gateways)));
  }
  if (shape.usual_ports) {
    FJORD_TRY_ASSIGN(const std::vector<int> usual, gateway_ports(shape.gateways));
    ports.resize(2 * processes);
    ports.insert(ports.end(), usual.begin(), usual.end());
  }
  std::size_t next = 0;
  const auto addresses = [&](const char* indent) {
    const std::string text =
        fmt::format("address: 127.0.0.1:{}\n{}http: 127.0.0.1:{}\n", ports[next], indent, ports[next + processes]);
    ++next;
    return text;
  };
  std::string distributors;
  for (int i = 0; i < shape.distributors; ++i) distributors += "  - " + addresses("    ");
  const std::string controller = "  " + addresses("  ") + "  directory: fleetcontroller.0\n";
  const std::string gateways = gateways_yaml(std::span(ports).subspan(2 * processes));
  std::string storage;
  for (int i = 0; i < shape.storage; ++i)
    storage += "  - " + addresses("    ") + fmt::format("    directory: storage.{}\n", i);
  return fmt::format(
      "# A cluster on this machine, made by `fjord local start`. All keys: fjordd --help-config\n"
      "cluster:\n  redundancy: {}\n"
      "# All nodes share a disk with other programs, so nothing would be won by moving data at the usual 85 and 92 %.\n"
      "storage_options:\n  space_warn_percent: 95\n  space_throttle_percent: 95\n"
      "fleetcontroller:\n{}distributors:\n{}{}storage:\n{}",
      shape.redundancy, controller, distributors, gateways, storage);
}

}  // namespace

Status create_local_config(const std::string& directory, const std::string& name, const LocalShape& shape) {
  if (fs::exists(directory)) {
    FJORD_TRY(check_own_folder(directory));
  } else {
    FJORD_TRY(make_private_folder(directory));
  }
  FJORD_TRY_ASSIGN(const std::string yaml, make_local_yaml(shape));
  return write_text(directory + "/" + name, yaml);
}

bool LocalCluster::exists(const std::string& directory) { return fs::exists(directory + "/cluster.yaml"); }

Status LocalCluster::create(const std::string& directory, const LocalShape& shape) {
  return create_local_config(directory, "cluster.yaml", shape);
}

Status LocalCluster::add_storage(const std::string& directory, ProcessName name) {
  FJORD_TRY_ASSIGN(const LocalCluster cluster, open(directory));
  if (cluster.config().find(name) != nullptr) return Status::ok();
  const std::size_t before = cluster.config().storage.size();
  FJORD_TRY_ASSIGN(const std::vector<int> ports, find_free_ports(2));
  const std::string file = cluster.directory_ + "/cluster.yaml";
  std::string yaml = read_text(file);
  if (!yaml.ends_with('\n')) yaml += '\n';
  std::string node = fmt::format("  - address: 127.0.0.1:{}\n    http: 127.0.0.1:{}\n    directory: {}\n", ports[0],
                                 ports[1], name.to_string());
  if (name.index != before) node += fmt::format("    index: {}\n", name.index);
  yaml.insert(end_of_storage(yaml), node);
  const auto parsed = config::parse_config(yaml, file);
  if (!parsed || parsed->storage.size() != before + 1) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("cannot add a node to the list `storage:` of {}: add it there by hand:\n{}", file, node));
  }
  return write_text(file, yaml);
}

Result<LocalCluster> LocalCluster::open(const std::string& directory) {
  if (!exists(directory)) {
    return Status(StatusCode::NotFound,
                  fmt::format("{} holds no cluster; fjord local start --dir {} makes one", directory, directory));
  }
  const std::string absolute = fs::absolute(directory).lexically_normal().string();
  // What another user has prepared could write to files of this user, or send signals to its processes.
  FJORD_TRY(check_own_folder(absolute));
  FJORD_TRY_ASSIGN(config::ClusterConfig config, config::load_config(absolute + "/cluster.yaml"));
  for (const char* folder : {"/logs", "/run"}) FJORD_TRY(make_private_folder(absolute + folder));
  return LocalCluster(absolute, std::move(config));
}

std::string LocalCluster::addresses() const {
  return fmt::format("{}", fmt::join(config_.distributor_addresses(), ","));
}

std::string LocalCluster::log_file(ProcessName name) const {
  return fmt::format("{}/logs/{}.log", directory_, name.to_string());
}
std::string LocalCluster::pid_file(ProcessName name) const {
  return fmt::format("{}/run/{}.pid", directory_, name.to_string());
}

pid_t LocalCluster::running(ProcessName name) const {
  std::istringstream in(read_text(pid_file(name)));
  pid_t pid = 0;
  std::string start_time;
  in >> pid >> start_time;
  if (!in || pid <= 1 || start_time.empty()) return 0;
  if (start_time_of(pid) != start_time) return 0;
  return is_ending(pid) || is_node(pid, name, directory_ + "/cluster.yaml") ? pid : 0;
}

Status LocalCluster::start(const std::vector<ProcessName>& names) const {
  int problem[2];
  if (::pipe2(problem, O_CLOEXEC) != 0) return io_error("pipe", errno);
  const pid_t pid = ::fork();
  if (pid == 0) {
    // An own process group, which the terminal's signals do not reach, but no own session: Linux shares the processors
    // among sessions (autogroup), so nodes started by several commands would compete as groups.
    ::setpgid(0, 0);
    std::signal(SIGHUP, SIG_IGN);
    for (const ProcessName& name : names) {
      const Status status = start_here(name);
      if (status) continue;
      const std::string& text = status.message();
      ::_exit(::write(problem[1], text.data(), text.size()) < 0 ? 2 : 1);
    }
    ::_exit(0);
  }
  const int error = errno;
  ::close(problem[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got = 0; (got = ::read(problem[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(problem[0]);
  if (pid < 0) return io_error("fork", error);
  int ended = 0;
  while (::waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return Status::ok();
  return {StatusCode::IoError, text.empty() ? "the nodes could not be started" : text};
}

Status LocalCluster::start_here(ProcessName name) const {
  const std::string program = fjordd_path();
  if (::access(program.c_str(), X_OK) != 0) return io_error(program, errno);
  const std::string config_file = directory_ + "/cluster.yaml";
  const std::string node = name.to_string();
  const std::string log_path = log_file(name);
  const char* argv[] = {program.c_str(), "--config", config_file.c_str(), "--node",
                        node.c_str(),    "--log",    log_path.c_str(),    nullptr};
  FJORD_TRY_ASSIGN(const int log, open_log(log_path));
  // Its end of the pipe closes when it has become fjordd, which running() looks for, or has ended.
  int started[2];
  if (::pipe2(started, O_CLOEXEC) != 0) {
    ::close(log);
    return io_error("pipe", errno);
  }
  const pid_t pid = ::fork();
  if (pid == 0) become(argv, log);
  const int error = errno;
  ::close(log);
  ::close(started[1]);
  char none = 0;
  while (pid > 0 && ::read(started[0], &none, 1) < 0 && errno == EINTR) {
  }
  ::close(started[0]);
  if (pid < 0) return io_error("fork", error);
  return write_text(pid_file(name), fmt::format("{} {}\n", pid, start_time_of(pid)));
}

bool LocalCluster::send_signal(ProcessName name, int signal) const {
  const pid_t pid = running(name);
  if (pid == 0) return false;
  // The descriptor names the process also if it ends now and its id is given to another one.
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (process < 0) return errno == ENOSYS && ::kill(pid, signal) == 0;
  const bool is_sent = running(name) == pid && ::syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0) == 0;
  ::close(process);
  return is_sent;
}

std::vector<ProcessName> LocalCluster::stop(const std::vector<ProcessName>& names) const {
  constexpr auto kPatience = std::chrono::seconds(10);
  constexpr auto kPause = std::chrono::milliseconds(20);
  std::vector<ProcessName> left;
  // A process that ends with SIGTERM lets the fleet controller take it out of the cluster first. If all of them end, no
  // state may say that some were there longer than others.
  const std::vector<ProcessName> all = config_.names();
  const bool is_whole = std::all_of(all.begin(), all.end(), [&](const ProcessName& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  });
  for (const ProcessName& name : names) {
    if (send_signal(name, is_whole ? SIGINT : SIGTERM)) left.push_back(name);
  }
  const auto forget_ended = [&] {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    left.erase(std::remove_if(left.begin(), left.end(), [&](const ProcessName& name) { return running(name) == 0; }),
               left.end());
  };
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (forget_ended(); !left.empty() && std::chrono::steady_clock::now() < deadline; forget_ended()) {
    std::this_thread::sleep_for(kPause);
  }
  const std::vector<ProcessName> killed = left;
  for (const ProcessName& name : killed) send_signal(name, SIGKILL);
  for (forget_ended(); !left.empty(); forget_ended()) std::this_thread::sleep_for(kPause);
  for (const ProcessName& name : names) ::unlink(pid_file(name).c_str());
  return killed;
}

Status LocalCluster::remove_data() const {
  for (const ProcessName& name : config_.names()) {
    const std::string& folder = config_.find(name)->directory;
    std::error_code error;
    if (!folder.empty()) fs::remove_all(folder, error);
    if (error) return io_error(folder, error.value());
  }
  return Status::ok();
}

std::string LocalCluster::log_tail(ProcessName name) const {
  constexpr std::size_t kTailBytes = 2000;
  const std::string text = read_text(log_file(name));
  if (text.size() <= kTailBytes) return text;
  return text.substr(text.find('\n', text.size() - kTailBytes) + 1);
}

}  // namespace fjord::cli
