#pragma once

#include <string>
#include <string_view>

#include "fjord/common/coding.h"
#include "lua_program.h"

namespace fjord::scripting {

/// Answers the messages of a task (script_protocol.h): passes documents and keys to the program one by one, until all
/// are done or the time of the message is over.
class ScriptHost {
 public:
  /// `program` outlives it.
  explicit ScriptHost(LuaProgram& program) : program_(program) {}

  std::string answer(std::string_view message);

 private:
  /// These functions append to `out` and return an empty string, or return the error.
  std::string map(ByteReader in, std::string& out, bool apart);
  std::string combine(ByteReader in, std::string& out);
  std::string reduce(ByteReader in, std::string& out);

  LuaProgram& program_;
};

}  // namespace fjord::scripting
