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

/// One Lua program with its functions map, combine and reduce. It has the Lua libraries string, table, math, utf8 and
/// base, without functions that use files or make results differ from run to run.
class LuaProgram {
 public:
  LuaProgram(std::size_t memory_bytes, std::chrono::milliseconds call_time);
  ~LuaProgram();
  LuaProgram(const LuaProgram&) = delete;
  LuaProgram& operator=(const LuaProgram&) = delete;

  /// The functions below append their answer to `out` and return an empty string, or return the error.
  using Clock = std::chrono::steady_clock;

  /// Appends two bytes, see Load in script_protocol.h.
  std::string load(std::string_view script, std::string& out);
  /// Appends the emitted keys and values.
  std::string map(std::string_view id, std::string_view fields, std::string& out);
  /// Combines up to `count` of `values` one after the other, until the time `until` but at least two if there are two.
  /// Appends the number combined and the combined value.
  std::string combine(std::string_view key, std::uint64_t count, ByteReader& values, Clock::time_point until,
                      std::string& out);
  /// Reduces the next `count` of `values`. Appends 1 and the result, or 0.
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
  std::chrono::milliseconds limit_;  ///< For the call that runs: call_time_, or less for load().
  std::size_t used_bytes_ = 0;
  Clock::time_point deadline_;
  lua_State* lua_;
  // State of the current call: Lua's errors jump over C++ frames, so no object with a destructor may be on the stack.
  std::string_view key_;
  ByteReader* values_ = nullptr;
  std::uint64_t value_count_ = 0;
  std::uint64_t combined_ = 0;
  Clock::time_point until_;
  char json_buffer_[std::size_t{64} << 10];
  rapidjson::MemoryPoolAllocator<> json_allocator_{json_buffer_, sizeof(json_buffer_)};
  rapidjson::Document json_{&json_allocator_};  ///< The fields or value being pushed.
  JsonWriter writer_;
  std::string tuples_;
  std::string tuple_value_;
};

}  // namespace fjord::scripting
