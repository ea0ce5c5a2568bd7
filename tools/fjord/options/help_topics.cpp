#include "options/help_topics.h"

#include <array>
#include <fmt/format.h>

namespace fjord::cli {
namespace {

constexpr const char* kIds = R"text(Document ids

  id:NAMESPACE:TYPE::NAME           id:shop:music::1
  id:NAMESPACE:TYPE:n=NUMBER:NAME   id:shop:music:n=7:1      documents of one number are stored together
  id:NAMESPACE:TYPE:g=GROUP:NAME    id:shop:music:g=ann:1    documents of one group are stored together

NAMESPACE may be empty, TYPE is a document type of `fjord schema list`, NAME is any text. With --type TYPE an id may leave
the type out: id:shop::1.
)text";

constexpr const char* kSelections = R"text(Selections: conditions on documents

--selection CONDITION chooses documents (visit, export, subscribe, aggregate, job run, update, remove); --condition CONDITION
allows the write of one document (put, update, remove).

  music                              documents of the type music
  music.year >= 1990 and music.year < 2000
  music.title == "Blue Train"        by a value; also != < <= > >=
  music.title = "Blue*"              by a pattern: * any text, ? one character
  music.title =~ "^(Blue|Red) "      by a regular expression
  music.title                        the field is set; not music.title: it is not
  music.tags == "live"               an array or set has the value
  music.scores{"jazz"} >= 5          by the entry of a map
  music.expires < now() - 3600       by a time in seconds since 1970
  id.user == 7                       by the number in the id; reads only the buckets that can hold such documents
  id.hash() % 100 == 0               one document in a hundred

Put the condition in single quotes, so that the shell leaves it as it is. All of the language: document/SELECTION.md.
)text";

constexpr const char* kCursors = R"text(Cursors: going on after an interruption

--cursor FILE (visit, import, update and remove with --selection, subscribe) keeps in the file how far the command is. If
the file exists, the command goes on from there; remove the file to begin again. A cursor fits only the same selection,
fields and times; with others it is refused.

  fjord visit --type music --limit 1000 --cursor music.cursor     the next thousand documents each time
  fjord subscribe --type music --cursor changes.cursor --once     what changed since the last time

`fjord export FILE` keeps its position beside the file; fjord export FILE --resume goes on with it.
)text";

constexpr const char* kTimes = R"text(Times and durations

TIME (--from and --to of visit and export) is a date, 2026-11-21, or a time, 2026-11-21T20:00:00+01:00 (UTC without a
zone), seconds since 1970, or how long ago: 90s, 15m, 2h, 3d.
DURATION (--timeout, --interval, --wait and others) is a number of seconds, 1.5, or has a unit: 500ms, 1.5s, 2m, 1h, 3d.
)text";

constexpr const char* kExits = R"text(Exit codes

  0  all was done
  1  failed: the cluster cannot be reached, refuses the call or fails at it; a record of a file is wrong; a job failed
  2  usage: an unknown command or option, or text on the command line or in a file it names that cannot be understood
  3  not found: a document, document type, job, node, setting or file that the command names
  4  a condition is false: --condition or --if-version; nothing was written
  5  partly done: the messages say what was not
  6  it took longer than --timeout or --wait
  7  in doubt: the answer was lost, the write may have been applied; repeat it with the same --idempotency-key
  8  refused: it could lose documents or make them unavailable, or needs --yes

`fjord status` exits with 0 if all is well, with 5 if all is served but something is down or out of sync, with 1 otherwise.
)text";

constexpr const char* kEnvironment = R"text(Environment

  FJORD_CLUSTER   distributors of the cluster, host:port,...; --cluster is stronger. Without both: 127.0.0.1:19100

--cluster, --timeout and -o may stand before the command too: fjord --cluster 10.0.0.7:19100 status
`fjord local start` prints a line that sets FJORD_CLUSTER: eval "$(fjord local start --dir ./cluster)"
)text";

constexpr std::array<HelpTopic, 6> kTopics = {{{"ids", kIds},
                                               {"selections", kSelections},
                                               {"cursors", kCursors},
                                               {"times", kTimes},
                                               {"exit-codes", kExits},
                                               {"environment", kEnvironment}}};

}  // namespace

const HelpTopic* find_topic(const std::string& name) {
  for (const HelpTopic& topic : kTopics) {
    if (name == topic.name) return &topic;
  }
  return nullptr;
}

std::string topic_names() {
  std::string names;
  for (const HelpTopic& topic : kTopics) names += fmt::format("{}{}", names.empty() ? "" : ", ", topic.name);
  return names;
}

}  // namespace fjord::cli
