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

  /// Each appends its answer to `out` and returns nothing, or returns what went wrong and appends nothing.
  using Clock = std::chrono::steady_clock;

  /// Two bytes, as script_protocol.h says.
  std::string load(std::string_view script, std::string& out);
  /// The keys and values that were emitted.
  std::string map(std::string_view id, std::string_view fields, std::string& out);
  /// Combines values from `values` one after the other, `count` if they are done by `until` and two in any case if
  /// there are two. How many it combined, and to what.
  std::string combine(std::string_view key, std::uint64_t count, ByteReader& values, Clock::time_point until,
                      std::string& out);
  /// Takes `count` from `values`. 1 and the result, or 0.
  std::string reduce(std::string_view key, std::uint64_t count, ByteReader& values, std::string& out);

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
  bool parse(std::string_view json);
  void push_value(lua_State* lua);
  std::string error_text();
  bool has_function(const char* name);

  const std::size_t memory_bytes_;
  const std::chrono::milliseconds call_time_;
  std::size_t used_bytes_ = 0;
  Clock::time_point deadline_;
  lua_State* lua_;
  // Of the call that runs: Lua's errors jump over C++ frames, so nothing with a destructor is on the stack meanwhile.
  std::string_view key_;
  ByteReader* values_ = nullptr;
  std::uint64_t value_count_ = 0;
  std::uint64_t combined_ = 0;
  Clock::time_point until_;
  char json_buffer_[std::size_t{64} << 10];
  rapidjson::MemoryPoolAllocator<> json_allocator_{json_buffer_, sizeof(json_buffer_)};
  rapidjson::Document json_{&json_allocator_};  ///< The fields or the value that is being pushed.
  JsonWriter writer_;
  std::string tuples_;
  std::string tuple_value_;
};

}  // namespace fjord::scripting
