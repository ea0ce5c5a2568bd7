#include "state_generator.h"

namespace fjord::fleetcontroller {

ClusterState generate_state(const ClusterState& current, const std::vector<NodeReport>& reports,
                            const GeneratorOptions& options, MonotonicTime now) {
  ClusterState next = current;
  next.set_version(current.version() + 1);
  next.set_bits(options.distribution_bits);
  bool changed = current.version() == 0 || current.bits() != options.distribution_bits;
  for (const NodeReport& report : reports) {
    NodeStateInfo info = current.node(report.id);
    NodeState before = info.state;
    NodeState wanted = before;
    if (report.answered) {
      wanted = now - report.last_answer > options.down_after ? NodeState::Down : report.reported;
    } else if (now >= options.grace_until) {
      wanted = NodeState::Down;
    }
    bool restarted = report.answered && report.incarnation != report.published_incarnation;
    if (wanted == NodeState::Up && (before != NodeState::Up || restarted)) {
      info.up_since_version = next.version();
      changed = true;
    }
    if (wanted != before) changed = true;
    info.state = wanted;
    if (wanted == NodeState::Down) info.up_since_version = 0;
    next.set_node(report.id, info);
  }
  return changed ? next : current;
}

}  // namespace fjord::fleetcontroller
