#include "fjord/library/node_action.h"

#include <fmt/format.h>
#include <string>
#include <utility>

namespace fjord {
namespace {

constexpr std::pair<std::string_view, NodeAction> kActions[] = {
    {"up", NodeAction::Up},
    {"maintenance", NodeAction::Maintenance},
    {"retire", NodeAction::Retire},
    {"down", NodeAction::Down},
    {"add", NodeAction::Add},
    {"remove", NodeAction::Remove},
    {"replace", NodeAction::Replace},
    {"capacity", NodeAction::SetCapacity},
    {"stop_check", NodeAction::StopCheck},
    {"balance", NodeAction::Balance},
    {"accept_loss", NodeAction::AcceptLoss},
};

}  // namespace

Result<NodeAction> node_action_of(std::string_view name) {
  std::string names;
  for (const auto& [text, action] : kActions) {
    if (text == name) return action;
    names += (names.empty() ? "" : ", ") + std::string(text);
  }
  return Status(StatusCode::InvalidArgument, fmt::format("\"{}\": expected one of {}", name, names));
}

}  // namespace fjord
