#pragma once

#include <string>

namespace fjord::cli {

/// A text of `fjord help TOPIC`, for what several commands have in common.
struct HelpTopic {
  const char* name;
  const char* text;  ///< Ends with a line feed.
};

/// Returns the topic of this name; null if there is none.
const HelpTopic* find_topic(const std::string& name);
/// Returns the names of all topics, "ids, selections, ...".
std::string topic_names();

}  // namespace fjord::cli
