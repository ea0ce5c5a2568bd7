#include "script_host.h"

#include "script_protocol.h"

namespace fjord::scripting {
namespace {

using Clock = LuaProgram::Clock;

constexpr const char* kMalformed = "a call that is malformed";
/// Approximate maximum size of the tuples in one answer.
constexpr std::size_t kAnswerBytes = std::size_t{1} << 20;

}  // namespace

std::string ScriptHost::answer(std::string_view message) {
  ByteReader in(message);
  const auto call = static_cast<Call>(in.fixed<std::uint8_t>());
  std::string out(1, '\0');
  std::string error = kMalformed;
  switch (call) {
    case Call::Load: {
      const std::string_view script = in.string();
      if (in.at_end()) error = program_.load(script, out);
      break;
    }
    case Call::Map:
      error = map(in, out, false);
      break;
    case Call::MapApart:
      error = map(in, out, true);
      break;
    case Call::Combine:
      error = combine(in, out);
      break;
    case Call::Reduce:
      error = reduce(in, out);
      break;
  }
  return error.empty() ? out : "\1" + error;
}

std::string ScriptHost::map(ByteReader in, std::string& out, bool apart) {
  const auto until = Clock::now() + kBatchTime;
  std::uint64_t documents = 0, failure_count = 0;
  std::string failures, tuples, lengths;
  do {
    const std::size_t begin = tuples.size();
    const std::string_view id = in.string();
    const std::string_view fields = in.string();
    if (!in.ok()) return kMalformed;
    if (const std::string error = program_.map(id, fields, tuples); !error.empty()) {
      ++failure_count;
      put_varint(failures, documents);
      put_string(failures, error);
    }
    put_varint(lengths, tuples.size() - begin);
    ++documents;
  } while (in.remaining() > 0 && tuples.size() < kAnswerBytes && Clock::now() < until);
  put_varint(out, documents);
  put_varint(out, failure_count);
  out += failures;
  if (apart) out += lengths;
  out += tuples;
  return {};
}

std::string ScriptHost::combine(ByteReader in, std::string& out) {
  const auto until = Clock::now() + kBatchTime;
  bool is_first = true;
  do {
    const std::string_view key = in.string();
    const std::uint64_t count = in.varint();
    if (!in.ok() || count == 0) return kMalformed;
    // The error of a later key is returned by the next message, in which that key is the first. So the error needs no
    // key.
    if (std::string error = program_.combine(key, count, in, until, out); !error.empty())
      return is_first ? error : std::string();
    is_first = false;
  } while (in.remaining() > 0 && Clock::now() < until);
  return {};
}

std::string ScriptHost::reduce(ByteReader in, std::string& out) {
  const auto until = Clock::now() + kBatchTime;
  bool is_first = true;
  do {
    const std::string_view key = in.string();
    const std::uint64_t count = in.varint();
    if (!in.ok()) return kMalformed;
    if (std::string error = program_.reduce(key, count, in, out); !error.empty())
      return is_first ? error : std::string();
    is_first = false;
  } while (in.remaining() > 0 && Clock::now() < until);
  return {};
}

}  // namespace fjord::scripting
