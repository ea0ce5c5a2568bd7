#include "fjord/visitors/change_cursor.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "cursor_text.h"
#include "fjord/common/hash.h"

namespace fjord::visitors {
namespace {

constexpr std::string_view kChangePrefix = "fjord-changes-";
constexpr std::string_view kChangeVersion = "1";

/// The position of a part of the bucket: without epoch and checksum.
ChangePosition of_part(const ChangePosition& whole) {
  return {.after_us = whole.after_us,
          .epoch = 0,
          .checksum = 0,
          .until_us = whole.until_us,
          .horizon_us = whole.horizon_us};
}

Status wrong_change_cursor(const char* what) {
  return {StatusCode::InvalidArgument, std::string("the cursor of the subscription ") + what};
}

}  // namespace

ChangePosition ChangeCursor::at(BucketId bucket) const {
  const PositionRange range = PositionRange::of(bucket);
  auto it = parts_.upper_bound(range.first);
  if (it != parts_.begin()) {
    const auto before = std::prev(it);
    if (before->first == range.first && before->second.last == range.last) return before->second.position;
    if (before->second.last >= range.last) return of_part(before->second.position);  // The bucket was split.
    if (before->second.last >= range.first) it = before;
  }
  // The bucket was joined: the minimum over its parts.
  ChangePosition joined{.after_us = ~std::uint64_t{0},
                        .epoch = 0,
                        .checksum = 0,
                        .until_us = ~std::uint64_t{0},
                        .horizon_us = ~std::uint64_t{0}};
  std::uint64_t next = range.first;
  bool same = true;
  for (; it != parts_.end() && it->first <= range.last; ++it) {
    if (it->first > next) return {};
    const ChangePosition& part = it->second.position;
    same = same && part.epoch != 0 && (joined.after_us == ~std::uint64_t{0} || joined.after_us == part.after_us);
    joined.after_us = std::min(joined.after_us, part.after_us);
    joined.until_us = std::min(joined.until_us, part.until_us);
    joined.horizon_us = std::min(joined.horizon_us, part.horizon_us);
    joined.checksum += part.checksum;
    next = it->second.last + 1;
  }
  if (next <= range.last) return {};
  if (!same) joined.checksum = 0;
  return joined;
}

bool ChangeCursor::knows(BucketId bucket) const {
  const PositionRange range = PositionRange::of(bucket);
  const auto it = parts_.find(range.first);
  return it != parts_.end() && it->second.last == range.last;
}

bool ChangeCursor::knows_part_of(BucketId bucket) const {
  const PositionRange range = PositionRange::of(bucket);
  const auto behind = parts_.upper_bound(range.last);
  return behind != parts_.begin() && std::prev(behind)->second.last >= range.first;
}

void ChangeCursor::cut_before(std::uint64_t position) {
  auto it = parts_.lower_bound(position);
  if (it == parts_.begin()) return;
  --it;
  if (it->second.last < position) return;
  const Part behind{it->second.last, of_part(it->second.position)};
  it->second = {position - 1, of_part(it->second.position)};
  parts_[position] = behind;
}

void ChangeCursor::set(BucketId bucket, const ChangePosition& position) {
  const PositionRange range = PositionRange::of(bucket);
  if (const auto it = parts_.find(range.first); it != parts_.end() && it->second.last == range.last) {
    it->second.position = position;
    return;
  }
  cut_before(range.first);
  if (range.last != kLastPosition) cut_before(range.last + 1);
  parts_.erase(parts_.lower_bound(range.first), parts_.upper_bound(range.last));
  parts_[range.first] = {range.last, position};
}

std::string ChangeCursor::to_text() const {
  std::string text = fmt::format("{}{}:{:x}:", kChangePrefix, kChangeVersion, question_);
  const char* separator = "";
  for (const auto& [first, part] : parts_) {
    fmt::format_to(std::back_inserter(text), "{}{:x}-{:x}@{:x}/{:x}/{:x}/{:x}", separator, first, part.last,
                   part.position.after_us, part.position.epoch, part.position.checksum, part.position.until_us);
    if (part.position.horizon_us != 0) fmt::format_to(std::back_inserter(text), "/{:x}", part.position.horizon_us);
    separator = ",";
  }
  return fmt::format("{}:{:016x}", text, hash64(text));
}

Result<ChangeCursor> ChangeCursor::parse(std::string_view text) {
  text = without_space(text);
  if (!text.starts_with(kChangePrefix))
    return wrong_change_cursor("is not one: it does not begin with \"fjord-changes-\"");
  std::string_view rest = text.substr(kChangePrefix.size());
  if (cut(rest, ':') != kChangeVersion) return wrong_change_cursor("is of another version than this program knows");
  const std::size_t last_colon = text.rfind(':');
  const auto checksum = parse_hex(text.substr(last_colon + 1));
  if (!checksum || *checksum != hash64(text.substr(0, last_colon)))
    return wrong_change_cursor("is damaged: its checksum is wrong");
  const auto question = parse_hex(cut(rest, ':'));
  if (!question) return wrong_change_cursor("is malformed");
  ChangeCursor cursor(*question);
  std::string_view parts = cut(rest, ':');
  for (std::uint64_t next = 0; !parts.empty();) {
    std::string_view part = cut(parts, ',');
    std::string_view range = cut(part, '@');
    const auto first = parse_hex(cut(range, '-'));
    const auto last = parse_hex(range);
    const auto after = parse_hex(cut(part, '/'));
    const auto epoch = parse_hex(cut(part, '/'));
    const auto sum = parse_hex(cut(part, '/'));
    const auto until = parse_hex(cut(part, '/'));
    const auto horizon = part.empty() ? std::optional<std::uint64_t>(0) : parse_hex(part);
    if (!first || !last || !after || !epoch || !sum || !until || !horizon || *first < next || *last < *first ||
        *last > kLastPosition) {
      return wrong_change_cursor("is malformed");
    }
    cursor.parts_[*first] = {*last, {*after, *epoch, *sum, *until, *horizon}};
    next = *last + 1;
  }
  return cursor;
}

}  // namespace fjord::visitors
