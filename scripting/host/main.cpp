// fjord-script-host: the program of one task of a script job, in a process that can compute and nothing else. Started
// by storage nodes and distributors, which talk to it over a socket (script_protocol.h).

#include <cstdio>
#include <cstdlib>
#include <string>

#include "fjord/common/child_process.h"
#include "fjord/common/coding.h"
#include "lua_program.h"
#include "sandbox.h"
#include "script_protocol.h"

namespace fjord::scripting {
namespace {

std::string answer(LuaProgram& program, std::string_view message) {
  ByteReader reader(message);
  const auto call = static_cast<Call>(reader.fixed<std::uint8_t>());
  std::string out(1, '\0');
  std::string error = "a call that is malformed";
  switch (call) {
    case Call::Load: {
      const std::string_view script = reader.string();
      if (reader.at_end()) error = program.load(script, out);
      break;
    }
    case Call::Map: {
      const std::string_view id = reader.string();
      const std::string_view fields = reader.string();
      if (reader.at_end()) error = program.map(id, fields, out);
      break;
    }
    case Call::Combine: {
      const std::string_view key = reader.string();
      error = program.combine(key, reader, out);
      break;
    }
    case Call::Reduce: {
      const std::string_view key = reader.string();
      error = program.reduce(key, reader, out);
      break;
    }
  }
  return error.empty() ? out : "\1" + error;
}

void serve(LuaProgram& program) {
  while (const auto message = child_socket::receive()) {
    if (!child_socket::send(answer(program, *message))) return;
  }
}

}  // namespace
}  // namespace fjord::scripting

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr,
                 "fjord-script-host runs the script of a job for a storage node or distributor, which starts it.\n");
    return 2;
  }
  const std::uint64_t memory_bytes = std::strtoull(argv[1], nullptr, 10);
  const std::chrono::milliseconds call_time(std::strtoll(argv[2], nullptr, 10));
  fjord::scripting::limit_process(memory_bytes, std::strtoull(argv[3], nullptr, 10));
  if (!fjord::scripting::allow_computing_only()) {
    std::fprintf(stderr, "fjord-script-host: the kernel has no seccomp filters, so no script runs here\n");
    return 3;
  }
  fjord::scripting::LuaProgram program(memory_bytes, call_time);
  fjord::scripting::serve(program);
  std::_Exit(0);
}
