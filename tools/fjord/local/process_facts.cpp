#include "local/process_facts.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fjord::cli {
namespace {

/// Returns the sockets that listen on the port, as the links in /proc/PROCESS/fd name them: "socket:[INODE]".
std::vector<std::string> listening_sockets(int port) {
  const std::string ending = fmt::format(":{:04X}", port);
  std::vector<std::string> found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // the heading
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
      constexpr const char* kListens = "0A";
      if (state == kListens && local.ends_with(ending)) found.push_back(fmt::format("socket:[{}]", inode));
    }
  }
  return found;
}

/// What /proc/PROCESS/stat says.
struct ProcessStat {
  std::string state;
  std::string threads;
  std::string start_time;

  bool has_ended() const {
    return state.empty() || state == "X" || (state == "Z" && (threads == "0" || threads == "1"));
  }
};

ProcessStat stat_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text, '\0');
  ProcessStat stat;
  const std::size_t name_end = text.rfind(')');  // The name before this bracket can contain any character.
  if (name_end == std::string::npos) return stat;
  std::istringstream fields(text.substr(name_end + 1));
  // The numbers of the fields, from 1, in proc(5).
  constexpr int kState = 3;
  constexpr int kThreads = 20;
  constexpr int kStartTime = 22;
  for (int number = kState; number <= kStartTime; ++number) {
    std::string field;
    fields >> field;
    if (number == kState) stat.state = field;
    if (number == kThreads) stat.threads = field;
    if (number == kStartTime) stat.start_time = field;
  }
  return stat;
}

}  // namespace

bool listens(pid_t process, int port) {
  const std::vector<std::string> sockets = listening_sockets(port);
  if (sockets.empty()) return false;
  std::error_code error;
  std::filesystem::directory_iterator files(fmt::format("/proc/{}/fd", process), error);
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    std::error_code closed;  // The process may have closed this one meanwhile.
    const std::string target = std::filesystem::read_symlink(files->path(), closed);
    if (std::find(sockets.begin(), sockets.end(), target) != sockets.end()) return true;
  }
  return false;
}

std::string start_time_of(pid_t process) {
  const ProcessStat stat = stat_of(process);
  return stat.has_ended() ? std::string() : stat.start_time;
}

bool is_ending(pid_t process) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process), error);
  return program.empty() && error == std::errc::no_such_file_or_directory && !stat_of(process).has_ended();
}

}  // namespace fjord::cli
