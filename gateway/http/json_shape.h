#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fjord/common/result.h"

namespace fjord::gateway {

/// The members that a JSON object of a request may have, and the variables that get their values:
///
///     FJORD_TRY(read_json(body, JsonShape().texts("nodes", nodes).flag("dry_run", dry_run).required("nodes")));
///
/// Variables of members that are not sent do not change. Lifetime: the variables outlive the reading.
class JsonShape {
 public:
  /// Makes the shape of the next object of an array.
  using Next = std::function<JsonShape()>;

  JsonShape& text(std::string name, std::string& to) { return add(std::move(name), &to); }
  JsonShape& flag(std::string name, bool& to) { return add(std::move(name), &to); }
  /// A member that is a whole number from 0 on.
  JsonShape& count(std::string name, std::uint64_t& to) { return add(std::move(name), &to); }
  JsonShape& count(std::string name, std::optional<std::uint64_t>& to) { return add(std::move(name), &to); }
  JsonShape& number(std::string name, double& to) { return add(std::move(name), &to); }
  JsonShape& texts(std::string name, std::vector<std::string>& to) { return add(std::move(name), &to); }
  /// A member that is an object whose values are texts.
  JsonShape& text_map(std::string name, std::map<std::string, std::string>& to) { return add(std::move(name), &to); }
  JsonShape& object(std::string name, JsonShape shape) {
    return add(std::move(name), Next([shape = std::move(shape)] { return shape; }), false);
  }
  /// A member that is an object; `begin` makes its shape when it begins.
  JsonShape& object(std::string name, Next begin) { return add(std::move(name), std::move(begin), false); }
  JsonShape& objects(std::string name, Next next) { return add(std::move(name), std::move(next), true); }
  JsonShape& required(const std::string& name) { return members_.at(name).is_required = true, *this; }

 private:
  friend class JsonShapeReader;

  using Target = std::variant<std::string*, bool*, std::uint64_t*, std::optional<std::uint64_t>*, double*,
                              std::vector<std::string>*, std::map<std::string, std::string>*, Next>;
  struct Member {
    Target to;
    bool is_list = false;  ///< True for a list of objects.
    bool is_required = false;
    bool is_read = false;
  };

  JsonShape& add(std::string name, Target to, bool is_list = false) {
    members_.emplace(std::move(name), Member{.to = std::move(to), .is_list = is_list});
    return *this;
  }

  std::map<std::string, Member> members_;
};

/// Reads a JSON object, the body of a request, into the variables of `shape`. Errors: InvalidArgument, which names the
/// member: for malformed JSON, a member that the shape does not have or that is there twice, a value of another kind, a
/// required member that is missing.
Status read_json(std::string_view body, JsonShape shape);

}  // namespace fjord::gateway
