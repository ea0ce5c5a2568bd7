#include "output/visit_text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fmt/format.h>
#include <optional>

#include "output/json_text.h"

namespace fjord::cli {
namespace {

constexpr std::uint64_t kSlicesMax = 1'000'000;

/// Reads a date, and a time of a day in it, as ISO 8601 writes them.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : text_(text) {}

  /// Returns the microseconds since 1970; nothing if the text has another form, or names a day or a time that does not
  /// exist. Without a time it is the beginning of the day, without a zone UTC.
  std::optional<std::int64_t> read() {
    const auto date = read_date();
    if (!date) return std::nullopt;
    std::int64_t us = std::chrono::sys_days(*date).time_since_epoch().count() * std::int64_t{86'400'000'000};
    if (!text_.empty()) {
      const auto time = read_time_of_day();
      const auto zone = time ? read_zone() : std::nullopt;
      if (!zone) return std::nullopt;
      us += *time - *zone;
    }
    return text_.empty() ? std::optional(us) : std::nullopt;
  }

 private:
  bool skip(std::string_view any_of) {
    if (text_.empty() || any_of.find(text_.front()) == std::string_view::npos) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// A number of exactly `digits` digits, from 0 to `most`.
  std::optional<int> number(std::size_t digits, int most) {
    int value = 0;
    if (text_.size() < digits) return std::nullopt;
    for (std::size_t i = 0; i < digits; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return std::nullopt;
      value = value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(digits);
    return value <= most ? std::optional(value) : std::nullopt;
  }
  std::optional<std::chrono::year_month_day> read_date() {
    const auto year = number(4, 9999);
    const auto month = year && skip("-") ? number(2, 12) : std::nullopt;
    const auto day = month && skip("-") ? number(2, 31) : std::nullopt;
    if (!day) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                           std::chrono::day(static_cast<unsigned>(*day))};
    return date.ok() ? std::optional(date) : std::nullopt;
  }
  std::optional<std::int64_t> read_time_of_day() {
    const auto hour = skip("T ") ? number(2, 23) : std::nullopt;
    const auto minute = hour && skip(":") ? number(2, 59) : std::nullopt;
    if (!minute) return std::nullopt;
    std::int64_t us = (*hour * 60 + *minute) * std::int64_t{60'000'000};
    if (!skip(":")) return us;
    const auto second = number(2, 59);
    if (!second) return std::nullopt;
    us += *second * std::int64_t{1'000'000};
    if (!skip(".")) return us;
    std::int64_t unit = 100'000;
    if (text_.empty() || text_.front() < '0' || text_.front() > '9') return std::nullopt;
    while (const auto digit = number(1, 9)) {
      us += *digit * unit;
      unit /= 10;  // Digits behind the microseconds are cut off.
    }
    return us;
  }
  /// Returns the microseconds by which local time is ahead of UTC.
  std::optional<std::int64_t> read_zone() {
    if (text_.empty() || skip("Z")) return 0;
    const bool is_west = text_.front() == '-';
    const auto hours = skip("+-") ? number(2, 14) : std::nullopt;
    if (!hours) return std::nullopt;
    skip(":");
    const auto minutes = text_.empty() ? std::optional(0) : number(2, 59);
    if (!minutes) return std::nullopt;
    return (*hours * 60 + *minutes) * std::int64_t{60'000'000} * (is_west ? -1 : 1);
  }

  std::string_view text_;
};

}  // namespace

Result<Timestamp> parse_time(const std::string& text, std::int64_t now_us) {
  const Status wrong(StatusCode::InvalidArgument,
                     fmt::format("not a time: \"{}\" (expected 2026-11-21, 2026-11-21T19:00:00Z, "
                                 "2026-11-21T20:00+01:00, 15m, 2h, 3d, or seconds since 1970)",
                                 text));
  if (const auto us = DateReader(text).read()) {
    if (*us < 0) return wrong;
    return Timestamp{static_cast<std::uint64_t>(*us)};
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > std::uint64_t{1} << 62) return wrong;
  const std::string unit(end, text.data() + text.size());
  if (unit == "us") return Timestamp{number};
  if (number > 100'000'000'000) return wrong;
  if (unit.empty()) return Timestamp{number * 1'000'000};
  const std::uint64_t each = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86'400 : 0;
  const auto now = static_cast<std::uint64_t>(now_us);
  if (each == 0 || number * each > now / 1'000'000) return wrong;
  return Timestamp{now - number * each * 1'000'000};
}

Result<VisitSlice> parse_slice(const std::string& text) {
  std::uint64_t index = 0;
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, index);
  const bool has_slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = has_slash ? std::from_chars(first.ptr + 1, end, count) : first;
  if (!has_slash || second.ec != std::errc() || second.ptr != end || index == 0 || index > count ||
      count > kSlicesMax) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("not a slice: \"{}\" (expected K/N, 1/4 to 4/4 for example)", text));
  }
  return VisitSlice{index - 1, count};
}

std::string explain_text(const VisitStatistics& p, double seconds) {
  std::string nodes;
  for (const auto& [node, buckets] : p.buckets_by_node) {
    nodes += fmt::format("{}storage.{} {}", nodes.empty() ? "" : ", ", node, buckets);
  }
  const double megabytes = static_cast<double>(p.bytes) / 1e6;
  return fmt::format(
      "buckets:   {} read{}, {} begun again\n"
      "skipped:   {} in which the selection cannot hold, {} of other slices, {} done before\n"
      "nodes:     {}\n"
      "documents: {} read, {} matched\n"
      "bytes:     {:.1f} MB in {:.2f} s, {:.0f} MB/s\n",
      p.buckets_done, p.is_located ? " (named by the selection, not listed)" : "", p.buckets_repeated,
      p.buckets_skipped_by_selection, p.buckets_skipped_by_slice, p.buckets_skipped_as_done,
      nodes.empty() ? "none" : nodes, p.documents_read, p.documents_matched, megabytes, seconds,
      megabytes / std::max(seconds, 1e-6));
}

std::string explain_json(const VisitStatistics& p, double seconds) {
  JsonText json;
  json.begin_object().key("buckets_read").number(p.buckets_done);
  json.key("buckets_repeated").number(p.buckets_repeated).key("buckets_located").boolean(p.is_located);
  json.key("buckets_skipped").begin_object().key("selection").number(p.buckets_skipped_by_selection);
  json.key("slice")
      .number(p.buckets_skipped_by_slice)
      .key("done_before")
      .number(p.buckets_skipped_as_done)
      .end_object();
  json.key("buckets_by_node").begin_object();
  for (const auto& [node, buckets] : p.buckets_by_node) json.key(fmt::format("storage.{}", node)).number(buckets);
  json.end_object().key("documents_read").number(p.documents_read);
  json.key("documents_matched").number(p.documents_matched).key("bytes").number(p.bytes);
  return json.key("seconds").real(seconds, 3).end_object().str();
}

}  // namespace fjord::cli
