#pragma once

#include <lua.hpp>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <string>
#include <vector>

/// Values of Lua as JSON and back. Lua reports errors with longjmp over C++ frames. So no function here holds an object
/// with a destructor on its stack while it calls Lua; such objects are members of JsonWriter.
namespace fjord::scripting {

/// Maximum nesting depth of objects and arrays.
inline constexpr int kDepthMax = 64;

/// Pushes a value: objects and arrays become tables, null becomes nil. `depth`: the levels above it. Raises a Lua error
/// if memory runs out or the value is nested deeper than kDepthMax.
void push_json(lua_State* lua, const rapidjson::Value& value, int depth = 0);

/// Writes a value as JSON, with the same text for equal values: the keys of a table are sorted, 1 and 1.0 differ,
/// floats have the shortest form that reads back to the same number.
class JsonWriter {
 public:
  /// Raises a Lua error if the text is not UTF-8, which a key has to be. Overwrites text().
  void check_key(lua_State* lua, const char* text, std::size_t size);
  /// Writes the value at `index`; text() and size() are valid until the next call. Raises a Lua error for functions and
  /// similar values, texts that are not UTF-8, undefined and infinite numbers, keys that are not strings, and tables
  /// that contain themselves.
  void write(lua_State* lua, int index);
  const char* text() const { return buffer_.GetString(); }
  std::size_t size() const { return buffer_.GetSize(); }

 private:
  void write_value(lua_State* lua, int index, int depth);
  void write_table(lua_State* lua, int index, int depth);

  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>, rapidjson::CrtAllocator,
                    rapidjson::kWriteValidateEncodingFlag>
      writer_{buffer_};
  std::vector<std::string> keys_;  ///< Keys of all tables being written, the innermost table last.
};

}  // namespace fjord::scripting
