#pragma once

#include <lua.hpp>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string>
#include <vector>

/// Values of Lua as JSON and back. Lua reports errors by a jump over C++ frames, so nothing here has a destructor on
/// its stack while it calls Lua: what has one lives in JsonWriter.
namespace fjord::scripting {

/// Objects and arrays within one another, at most.
inline constexpr int kDepthMax = 64;

/// Pushes a value: objects and arrays become tables, null becomes nil. Raises errors of Lua's memory.
void push_json(lua_State* lua, const rapidjson::Value& value);

/// One text for a value, whatever the order of its keys in memory: the keys of a table sorted, 1 and 1.0 apart, floats
/// in the shortest form that reads back the same.
class JsonWriter {
 public:
  /// The value at `index`. Raises an error of Lua for functions and the like, undefined and infinite numbers, keys that
  /// are no strings, tables in themselves. Valid until the next call.
  void write(lua_State* lua, int index);
  const char* text() const { return buffer_.GetString(); }
  std::size_t size() const { return buffer_.GetSize(); }

 private:
  void write_value(lua_State* lua, int index, int depth);
  void write_table(lua_State* lua, int index, int depth);

  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_{buffer_};
  std::vector<std::string> keys_;  ///< Of all tables that are being written, the innermost one last.
};

}  // namespace fjord::scripting
