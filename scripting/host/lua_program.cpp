#include "lua_program.h"

#include <algorithm>
#include <cstdlib>

#include "script_protocol.h"

namespace fjord::scripting {
namespace {

constexpr int kInstructionsBetweenLooks = 10'000;
constexpr const char* kChunkName = "=script";
constexpr const char* kRegistryKey = "fjord";

/// Functions that read files, load code, print, or make results differ from run to run.
constexpr const char* kForbidden[] = {"dofile", "loadfile", "load", "print", "collectgarbage", "warn"};

}  // namespace

LuaProgram::LuaProgram(std::size_t memory_bytes, std::chrono::milliseconds call_time)
    : memory_bytes_(memory_bytes), call_time_(call_time), limit_(call_time), lua_(lua_newstate(allocate, this)) {
  if (lua_ == nullptr) return;
  lua_pushcfunction(lua_, open_libraries);
  lua_pushlightuserdata(lua_, this);
  if (lua_pcall(lua_, 1, 0, 0) != LUA_OK) {
    lua_close(lua_);
    lua_ = nullptr;
    return;
  }
  lua_sethook(lua_, on_count, LUA_MASKCOUNT, kInstructionsBetweenLooks);
}

LuaProgram::~LuaProgram() {
  if (lua_ != nullptr) lua_close(lua_);
}

void* LuaProgram::allocate(void* program, void* block, std::size_t old_size, std::size_t new_size) {
  auto& self = *static_cast<LuaProgram*>(program);
  // Without a block, Lua passes a type of object as old_size.
  const std::size_t before = block == nullptr ? 0 : old_size;
  if (new_size > before && self.used_bytes_ + (new_size - before) > self.memory_bytes_) return nullptr;
  if (new_size == 0) {
    std::free(block);
    self.used_bytes_ -= before;
    return nullptr;
  }
  void* const made = std::realloc(block, new_size);
  if (made != nullptr) self.used_bytes_ += new_size - before;
  return made;
}

LuaProgram& LuaProgram::of(lua_State* lua) {
  lua_getfield(lua, LUA_REGISTRYINDEX, kRegistryKey);
  auto* const self = static_cast<LuaProgram*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return *self;
}

int LuaProgram::open_libraries(lua_State* lua) {
  lua_setfield(lua, LUA_REGISTRYINDEX, kRegistryKey);
  luaL_requiref(lua, LUA_GNAME, luaopen_base, 1);
  luaL_requiref(lua, LUA_STRLIBNAME, luaopen_string, 1);
  lua_pushnil(lua);
  lua_setfield(lua, -2, "dump");
  luaL_requiref(lua, LUA_TABLIBNAME, luaopen_table, 1);
  luaL_requiref(lua, LUA_MATHLIBNAME, luaopen_math, 1);
  for (const char* const name : {"random", "randomseed"}) {
    lua_pushnil(lua);
    lua_setfield(lua, -2, name);
  }
  luaL_requiref(lua, LUA_UTF8LIBNAME, luaopen_utf8, 1);
  for (const char* const name : kForbidden) {
    lua_pushnil(lua);
    lua_setglobal(lua, name);
  }
  return 0;
}

void LuaProgram::on_count(lua_State* lua, lua_Debug* where) {
  const LuaProgram& self = of(lua);
  if (Clock::now() < self.deadline_) return;
  lua_getinfo(lua, "Sl", where);
  luaL_error(lua, "%s:%d: took longer than %d ms", where->short_src, where->currentline,
             static_cast<int>(self.limit_.count()));
}

std::string LuaProgram::error_text() {
  const char* const text = lua_tostring(lua_, -1);
  std::string error = text == nullptr ? "an error that is not a text" : text;
  if (error == "not enough memory") error += ": the limit is " + std::to_string(memory_bytes_ >> 20) + " MB";
  lua_settop(lua_, 0);
  return error;
}

bool LuaProgram::has_function(const char* name) {
  const bool is_there = lua_getglobal(lua_, name) == LUA_TFUNCTION;
  lua_pop(lua_, 1);
  return is_there;
}

std::string LuaProgram::run(lua_CFunction call) {
  deadline_ = Clock::now() + call_time_;
  lua_settop(lua_, 0);
  lua_pushcfunction(lua_, call);  // This call needs no memory, so it cannot fail.
  return lua_pcall(lua_, 0, 0, 0) == LUA_OK ? std::string() : error_text();
}

std::string LuaProgram::load(std::string_view script, std::string& out) {
  if (lua_ == nullptr) return "the limit of memory is too small for Lua";
  limit_ = std::min(call_time_, kLoadTime);
  deadline_ = Clock::now() + limit_;
  if (luaL_loadbufferx(lua_, script.data(), script.size(), kChunkName, "t") != LUA_OK ||
      lua_pcall(lua_, 0, 0, 0) != LUA_OK) {
    return error_text();
  }
  for (const char* const name : {"map", "reduce"}) {
    if (!has_function(name)) return std::string("there is no function ") + name;
  }
  limit_ = call_time_;
  out += has_function("combine") ? '\1' : '\0';
  lua_getglobal(lua_, "header_only");
  out += lua_toboolean(lua_, -1) != 0 ? '\1' : '\0';
  lua_settop(lua_, 0);
  return {};
}

int LuaProgram::emit(lua_State* lua) {
  LuaProgram& self = of(lua);
  if (lua_type(lua, 1) == LUA_TBOOLEAN) {
    lua_pushstring(lua, lua_toboolean(lua, 1) != 0 ? "true" : "false");
    lua_replace(lua, 1);
  }
  std::size_t key_size = 0;
  const char* const key = lua_isstring(lua, 1) != 0 ? lua_tolstring(lua, 1, &key_size) : nullptr;
  if (key == nullptr) return luaL_error(lua, "emit: a %s is not a key", luaL_typename(lua, 1));
  self.writer_.check_key(lua, key, key_size);
  self.writer_.write(lua, 2);
  if (self.tuples_.size() + key_size + self.writer_.size() > self.memory_bytes_) {
    return luaL_error(lua, "emit: more than %d MB for one document", static_cast<int>(self.memory_bytes_ >> 20));
  }
  self.tuple_value_.clear();
  put_string(self.tuple_value_, {self.writer_.text(), self.writer_.size()});
  put_string(self.tuples_, {key, key_size});
  put_string(self.tuples_, self.tuple_value_);
  return 0;
}

int LuaProgram::call_map(lua_State* lua) {
  LuaProgram& self = of(lua);
  lua_getglobal(lua, "map");
  lua_createtable(lua, 0, 2);
  lua_pushlstring(lua, self.key_.data(), self.key_.size());
  lua_setfield(lua, -2, "id");
  push_json(lua, self.json_);
  lua_setfield(lua, -2, "fields");
  lua_pushcfunction(lua, emit);
  lua_call(lua, 2, 0);
  return 0;
}

std::string LuaProgram::map(std::string_view id, std::string_view fields, std::string& out) {
  key_ = id;
  tuples_.clear();
  if (!parse(fields)) return "a document that is not JSON";
  if (std::string error = run(call_map); !error.empty()) return error;
  out += tuples_;
  return {};
}

/// Uses full precision, so that numbers keep their exact values.
bool LuaProgram::parse(std::string_view json) {
  json_.SetNull();
  json_allocator_.Clear();
  return !json_.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(json.data(), json.size())
              .HasParseError();
}

void LuaProgram::push_value(lua_State* lua) {
  const std::string_view json = values_->string();
  if (!values_->ok() || !parse(json)) luaL_error(lua, "a value that is not JSON");
  push_json(lua, json_);
}

int LuaProgram::call_combine(lua_State* lua) {
  LuaProgram& self = of(lua);
  self.push_value(lua);
  self.combined_ = 1;
  Clock::time_point now = Clock::now();
  while (self.combined_ < self.value_count_ && (self.combined_ == 1 || now < self.until_)) {
    lua_getglobal(lua, "combine");
    lua_pushlstring(lua, self.key_.data(), self.key_.size());
    lua_rotate(lua, 1, -1);  // Moves the combined value behind the key.
    self.push_value(lua);
    self.deadline_ = now + self.call_time_;
    lua_call(lua, 3, 1);
    ++self.combined_;
    now = Clock::now();
  }
  self.writer_.write(lua, 1);
  return 0;
}

std::string LuaProgram::combine(std::string_view key, std::uint64_t count, ByteReader& values, Clock::time_point until,
                                std::string& out) {
  key_ = key;
  values_ = &values;
  value_count_ = count;
  until_ = until;
  if (std::string error = run(call_combine); !error.empty()) return error;
  put_varint(out, combined_);
  put_string(out, {writer_.text(), writer_.size()});
  return {};
}

int LuaProgram::call_reduce(lua_State* lua) {
  LuaProgram& self = of(lua);
  lua_getglobal(lua, "reduce");
  lua_pushlstring(lua, self.key_.data(), self.key_.size());
  lua_createtable(lua, static_cast<int>(self.value_count_), 0);
  for (std::uint64_t i = 1; i <= self.value_count_; ++i) {
    self.push_value(lua);
    lua_rawseti(lua, -2, static_cast<lua_Integer>(i));
  }
  self.deadline_ = Clock::now() + self.call_time_;
  lua_call(lua, 2, 1);
  self.writer_.write(lua, 1);
  return 0;
}

std::string LuaProgram::reduce(std::string_view key, std::uint64_t count, ByteReader& values, std::string& out) {
  key_ = key;
  values_ = &values;
  value_count_ = count;
  if (std::string error = run(call_reduce); !error.empty()) return error;
  const std::string_view result(writer_.text(), writer_.size());
  out += result == "null" ? '\0' : '\1';
  if (result != "null") put_string(out, result);
  return {};
}

}  // namespace fjord::scripting
