#include "http/json_shape.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <utility>

namespace fjord::gateway {

/// Handles the events of the parser. It keeps one frame for each object or array that has begun and not ended.
class JsonShapeReader : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, JsonShapeReader> {
 public:
  explicit JsonShapeReader(JsonShape shape) { next_object_ = std::move(shape); }

  bool Null() { return fail("null is not a value here; leave the member out"); }
  bool Bool(bool value) {
    if (auto* to = target<bool*>()) return **to = value, value_read();
    return wrong_kind();
  }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) {
    const std::string_view number(text, length);
    if (auto* to = target<double*>()) return read_number(number, **to, "a number");
    if (auto* to = target<std::uint64_t*>()) return read_number(number, **to, "a whole number from 0 on");
    if (auto* to = target<std::optional<std::uint64_t>*>()) {
      return read_number(number, (*to)->emplace(), "a whole number from 0 on");
    }
    return wrong_kind();
  }
  bool String(const char* text, rapidjson::SizeType length, bool) {
    std::string value(text, length);
    if (auto* to = target<std::string*>()) return **to = std::move(value), value_read();
    if (!frames_.empty() && frames_.back().texts != nullptr) return frames_.back().texts->push_back(value), true;
    if (!frames_.empty() && frames_.back().map != nullptr) return (*frames_.back().map)[key_] = value, true;
    return wrong_kind();
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    key_.assign(text, length);
    Frame& frame = frames_.back();
    if (frame.map != nullptr) return !frame.map->contains(key_) || fail("it is there twice");
    const auto found = frame.shape.members_.find(key_);
    if (found == frame.shape.members_.end()) return fail("there is no such member; " + names_of(frame.shape));
    frame.member = &found->second;
    if (std::exchange(found->second.is_read, true)) return fail("it is there twice");
    return true;
  }
  bool StartObject() {
    Frame frame;
    frame.name = key_;
    if (next_object_) {
      frame.shape = std::move(*std::exchange(next_object_, {}));
    } else if (frames_.back().next != nullptr) {
      frame.name = std::to_string(frames_.back().objects++);
      frame.shape = (*frames_.back().next)();
    } else if (auto* map = target<std::map<std::string, std::string>*>()) {
      frame.map = *map;
    } else if (auto* next = target<JsonShape::Next>(); next != nullptr && !frames_.back().member->is_list) {
      frame.shape = (*next)();
    } else {
      return wrong_kind();
    }
    frames_.push_back(std::move(frame));
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    for (const auto& [name, member] : frames_.back().shape.members_) {
      if (!member.is_required || member.is_read) continue;
      key_ = name;
      return fail("it is missing");
    }
    return end_frame();
  }
  bool StartArray() {
    Frame frame;
    frame.name = key_;
    if (auto* texts = target<std::vector<std::string>*>()) {
      frame.texts = *texts;
    } else if (auto* next = target<JsonShape::Next>(); next != nullptr && frames_.back().member->is_list) {
      frame.next = next;
    } else {
      return wrong_kind();
    }
    frames_.push_back(std::move(frame));
    return true;
  }
  bool EndArray(rapidjson::SizeType) { return end_frame(); }

  std::string problem;

 private:
  struct Frame {
    std::string name;  ///< Name of the member whose value the frame is.
    JsonShape shape;
    JsonShape::Member* member = nullptr;  ///< The member whose name was read last.
    std::vector<std::string>* texts = nullptr;
    std::map<std::string, std::string>* map = nullptr;
    const JsonShape::Next* next = nullptr;
    std::size_t objects = 0;
  };

  /// Returns the place of the next value, if the value is to be a T; else null.
  template <typename T>
  T* target() {
    if (frames_.empty() || frames_.back().member == nullptr) return nullptr;
    return std::get_if<T>(&frames_.back().member->to);
  }
  template <typename T>
  bool read_number(std::string_view text, T& to, std::string_view expected) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    if (error != std::errc() || end != text.data() + text.size()) return fail(fmt::format("expected {}", expected));
    return value_read();
  }
  bool value_read() {
    frames_.back().member = nullptr;
    return true;
  }
  bool end_frame() {
    key_ = frames_.back().name;
    frames_.pop_back();
    return frames_.empty() || value_read();
  }
  bool wrong_kind() {
    if (frames_.empty()) return problem = "expected an object", false;
    const Frame& frame = frames_.back();
    if (frame.next != nullptr) return fail("expected objects in the list");
    if (frame.texts != nullptr || frame.map != nullptr) return fail("expected strings");
    if (target<bool*>() != nullptr) return fail("expected true or false");
    if (target<double*>() != nullptr) return fail("expected a number");
    if (target<std::string*>() != nullptr) return fail("expected a string");
    if (target<std::vector<std::string>*>() != nullptr) return fail("expected a list of strings");
    if (frame.member != nullptr && frame.member->is_list) return fail("expected a list of objects");
    if (target<std::uint64_t*>() != nullptr || target<std::optional<std::uint64_t>*>() != nullptr) {
      return fail("expected a whole number from 0 on");
    }
    return fail("expected an object");
  }
  bool fail(const std::string& what) {
    if (frames_.empty()) return problem = "expected an object", false;
    std::string place;
    const bool is_in_list = frames_.back().texts != nullptr || frames_.back().next != nullptr;
    for (std::size_t i = 1; i + (is_in_list ? 1 : 0) < frames_.size(); ++i) place += frames_[i].name + ".";
    problem = fmt::format("\"{}{}\": {}", place, key_, what);
    return false;
  }
  static std::string names_of(const JsonShape& shape) {
    std::string names = "there are";
    for (const auto& [name, member] : shape.members_) names += (names == "there are" ? " " : ", ") + name;
    return names;
  }

  std::optional<JsonShape> next_object_;
  std::vector<Frame> frames_;
  std::string key_;
};

Status read_json(std::string_view body, JsonShape shape) {
  rapidjson::MemoryStream stream(body.data(), body.size());
  JsonShapeReader handler(std::move(shape));
  rapidjson::Reader reader;
  constexpr unsigned kFlags =
      rapidjson::kParseValidateEncodingFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseIterativeFlag;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (!handler.problem.empty()) return {StatusCode::InvalidArgument, "the body: " + handler.problem};
  if (!result.IsError()) return Status::ok();
  return {StatusCode::InvalidArgument, fmt::format("the body is malformed JSON at byte {} of {}: {}", result.Offset(),
                                                   body.size(), rapidjson::GetParseError_En(result.Code()))};
}

}  // namespace fjord::gateway
