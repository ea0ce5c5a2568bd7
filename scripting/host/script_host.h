#pragma once

#include <string>
#include <string_view>

#include "fjord/common/coding.h"
#include "lua_program.h"

namespace fjord::scripting {

/// Answers the messages of a task (script_protocol.h): takes what it is given document by document and key by key to
/// the program, until there is nothing more or the time of a message is over.
class ScriptHost {
 public:
  /// `program` outlives it.
  explicit ScriptHost(LuaProgram& program) : program_(program) {}

  std::string answer(std::string_view message);

 private:
  /// Each appends to `out` and returns nothing, or returns what went wrong.
  std::string map(ByteReader in, std::string& out, bool apart);
  std::string combine(ByteReader in, std::string& out);
  std::string reduce(ByteReader in, std::string& out);

  LuaProgram& program_;
};

}  // namespace fjord::scripting
