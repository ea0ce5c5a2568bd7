#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <lua.hpp>
#include <rapidjson/document.h>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/coding.h"
#include "lua_json.h"

namespace fjord::scripting {

/// One Lua program and its functions map, combine and reduce. Of Lua's libraries it has string, table, math and utf8
/// without what would make results differ from run to run, and of the base what needs no file.
class LuaProgram {
 public:
  LuaProgram(std::size_t memory_bytes, std::chrono::milliseconds call_time);
  ~LuaProgram();
  LuaProgram(const LuaProgram&) = delete;
  LuaProgram& operator=(const LuaProgram&) = delete;

  /// Each appends its answer behind the first byte (script_protocol.h) to `out` and returns what went wrong, or
  /// nothing.
  std::string load(std::string_view script, std::string& out);
  std::string map(std::string_view id, std::string_view fields, std::string& out);
  std::string combine(std::string_view key, ByteReader& values, std::string& out);
  std::string reduce(std::string_view key, ByteReader& values, std::string& out);

 private:
  static void* allocate(void* program, void* block, std::size_t old_size, std::size_t new_size);
  static void on_count(lua_State* lua, lua_Debug*);
  static int emit(lua_State* lua);
  static int call_map(lua_State* lua);
  static int call_combine(lua_State* lua);
  static int call_reduce(lua_State* lua);
  static int open_libraries(lua_State* lua);
  static LuaProgram& of(lua_State* lua);

  std::string run(lua_CFunction call);
  std::string parse(ByteReader& values);
  std::string error_text();
  bool has_function(const char* name);

  const std::size_t memory_bytes_;
  const std::chrono::milliseconds call_time_;
  std::size_t used_bytes_ = 0;
  std::chrono::steady_clock::time_point deadline_;
  lua_State* lua_;
  // Of the call that runs: Lua's errors jump over C++ frames, so nothing with a destructor is on the stack meanwhile.
  std::string_view key_;
  rapidjson::Document fields_;
  std::vector<rapidjson::Document> values_;
  JsonWriter writer_;
  std::string tuples_;
  std::uint64_t tuple_count_ = 0;
};

}  // namespace fjord::scripting
