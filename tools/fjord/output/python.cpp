#include "output/python.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace fjord::cli {
namespace {

constexpr const char* kInterpreter = "python3";

/// Returns the words of the command line, which point into `arguments`, and a null pointer behind them.
std::vector<char*> words_of(std::vector<std::string>& arguments) {
  // Without it, `python3 -m` imports what lies in the current folder before what is installed. Python 3.11 and later.
  ::setenv("PYTHONSAFEPATH", "1", 1);
  // No compiled files: scripts may lie in folders of the system.
  arguments.insert(arguments.begin(), {kInterpreter, "-B"});
  std::vector<char*> words;
  for (std::string& text : arguments) words.push_back(text.data());
  words.push_back(nullptr);
  return words;
}

}  // namespace

int run_python(std::vector<std::string> arguments, bool quiet) {
  const std::vector<char*> words = words_of(arguments);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  // The child must not inherit the signal mask: this process blocks the signals that it waits for.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int failed = ::posix_spawnp(&child, kInterpreter, &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int state = 0;
  if (::waitpid(child, &state, 0) != child || !WIFEXITED(state)) return -1;
  return WEXITSTATUS(state);
}

void become_python(std::vector<std::string> arguments) {
  const std::vector<char*> words = words_of(arguments);
  ::execvp(kInterpreter, words.data());
}

}  // namespace fjord::cli
