// fjord-script-host: runs the program of one task of a script job, in a process that can only compute. Started by
// storage nodes and distributors, which talk to it over a socket (script_protocol.h).

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fjord/plugins/child_process.h"
#include "fjord/version/version.h"
#include "lua_program.h"
#include "sandbox.h"
#include "script_host.h"

namespace fjord::scripting {
namespace {

void serve(LuaProgram& program) {
  ScriptHost host(program);
  while (const auto message = child_socket::receive()) {
    if (!child_socket::send(host.answer(*message))) return;
  }
}

}  // namespace
}  // namespace fjord::scripting

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    return std::fputs(fjord::version_text("fjord-script-host").append("\n").c_str(), stdout) < 0 ? 1 : 0;
  }
  if (argc != 4) {
    std::fprintf(stderr,
                 "fjord-script-host runs the script of a job for a storage node or distributor, which starts it.\n");
    return 2;
  }
  const std::uint64_t memory_bytes = std::strtoull(argv[1], nullptr, 10);
  const std::chrono::milliseconds call_time(std::strtoll(argv[2], nullptr, 10));
  if (!fjord::scripting::limit_process(memory_bytes, std::strtoull(argv[3], nullptr, 10))) {
    std::fprintf(stderr, "fjord-script-host: the kernel refuses the limits of the process, so no script runs here\n");
    return 3;
  }
  if (!fjord::scripting::allow_computing_only()) {
    std::fprintf(stderr, "fjord-script-host: the kernel has no seccomp filters, so no script runs here\n");
    return 3;
  }
  fjord::scripting::LuaProgram program(memory_bytes, call_time);
  fjord::scripting::serve(program);
  std::_Exit(0);
}
