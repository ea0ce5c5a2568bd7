#include "lua_json.h"

#include <algorithm>
#include <cmath>

namespace fjord::scripting {
namespace {

constexpr const char* kNotUtf8 =
    "a text that is not UTF-8 is not a %s: string.sub counts bytes and may cut within a character, utf8.offset finds "
    "where "
    "characters begin";

}  // namespace

void push_json(lua_State* lua, const rapidjson::Value& value, int depth) {
  if (depth > kDepthMax) luaL_error(lua, "a value is nested too deep");
  luaL_checkstack(lua, 4, "a value is nested too deep");
  if (value.IsString()) {
    lua_pushlstring(lua, value.GetString(), value.GetStringLength());
  } else if (value.IsInt64()) {
    lua_pushinteger(lua, value.GetInt64());
  } else if (value.IsNumber()) {
    lua_pushnumber(lua, value.GetDouble());
  } else if (value.IsBool()) {
    lua_pushboolean(lua, value.GetBool() ? 1 : 0);
  } else if (value.IsArray()) {
    lua_createtable(lua, static_cast<int>(value.Size()), 0);
    lua_Integer at = 0;
    for (const rapidjson::Value& element : value.GetArray()) {
      push_json(lua, element, depth + 1);
      lua_rawseti(lua, -2, ++at);
    }
  } else if (value.IsObject()) {
    lua_createtable(lua, 0, static_cast<int>(value.MemberCount()));
    for (const auto& member : value.GetObject()) {
      lua_pushlstring(lua, member.name.GetString(), member.name.GetStringLength());
      push_json(lua, member.value, depth + 1);
      lua_rawset(lua, -3);
    }
  } else {
    lua_pushnil(lua);
  }
}

void JsonWriter::check_key(lua_State* lua, const char* text, std::size_t size) {
  buffer_.Clear();
  writer_.Reset(buffer_);
  if (!writer_.String(text, static_cast<rapidjson::SizeType>(size))) luaL_error(lua, kNotUtf8, "key");
}

void JsonWriter::write(lua_State* lua, int index) {
  buffer_.Clear();
  writer_.Reset(buffer_);
  keys_.clear();
  write_value(lua, lua_absindex(lua, index), 0);
}

void JsonWriter::write_value(lua_State* lua, int index, int depth) {
  switch (lua_type(lua, index)) {
    case LUA_TNIL:
      writer_.Null();
      break;
    case LUA_TBOOLEAN:
      writer_.Bool(lua_toboolean(lua, index) != 0);
      break;
    case LUA_TNUMBER:
      if (lua_isinteger(lua, index) != 0) {
        writer_.Int64(lua_tointeger(lua, index));
      } else if (const double number = lua_tonumber(lua, index); std::isfinite(number)) {
        writer_.Double(number);
      } else {
        luaL_error(lua, "an infinite or undefined number is not a value");
      }
      break;
    case LUA_TSTRING: {
      std::size_t size = 0;
      const char* const text = lua_tolstring(lua, index, &size);
      if (!writer_.String(text, static_cast<rapidjson::SizeType>(size))) luaL_error(lua, kNotUtf8, "value");
      break;
    }
    case LUA_TTABLE:
      write_table(lua, index, depth);
      break;
    default:
      luaL_error(lua, "a %s is not a value", luaL_typename(lua, index));
  }
}

void JsonWriter::write_table(lua_State* lua, int index, int depth) {
  if (depth >= kDepthMax) luaL_error(lua, "a value is nested too deep");
  luaL_checkstack(lua, 4, "a value is nested too deep");
  const lua_Unsigned length = lua_rawlen(lua, index);
  const std::size_t begin = keys_.size();
  lua_Unsigned entries = 0;
  for (lua_pushnil(lua); lua_next(lua, index) != 0; lua_pop(lua, 1)) {
    ++entries;
    if (length > 0) continue;
    if (lua_type(lua, -2) != LUA_TSTRING)
      luaL_error(lua, "a table with keys other than strings and 1, 2, ... is not a value");
    std::size_t size = 0;
    const char* const key = lua_tolstring(lua, -2, &size);
    keys_.emplace_back(key, size);
  }
  if (length > 0) {
    if (entries != length) luaL_error(lua, "a table with keys other than strings or 1, 2, ... is not a value");
    writer_.StartArray();
    for (lua_Unsigned i = 1; i <= length; ++i) {
      lua_rawgeti(lua, index, static_cast<lua_Integer>(i));
      write_value(lua, lua_gettop(lua), depth + 1);
      lua_pop(lua, 1);
    }
    writer_.EndArray();
    return;
  }
  std::sort(keys_.begin() + static_cast<std::ptrdiff_t>(begin), keys_.end());
  const std::size_t end = keys_.size();
  writer_.StartObject();
  for (std::size_t i = begin; i < end; ++i) {
    if (!writer_.Key(keys_[i].data(), static_cast<rapidjson::SizeType>(keys_[i].size())))
      luaL_error(lua, kNotUtf8, "key");
    lua_pushlstring(lua, keys_[i].data(), keys_[i].size());
    lua_rawget(lua, index);
    write_value(lua, lua_gettop(lua), depth + 1);
    lua_pop(lua, 1);
  }
  writer_.EndObject();
  keys_.resize(begin);
}

}  // namespace fjord::scripting
