#include "output/visit_text.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <fmt/format.h>

#include "output/json_text.h"

namespace fjord::cli {
namespace {

constexpr std::uint64_t kSlicesMax = 1'000'000;

}  // namespace

Result<Timestamp> parse_time(const std::string& text, std::int64_t now_us) {
  const Status wrong(
      StatusCode::InvalidArgument,
      fmt::format("not a time: \"{}\" (expected 2026-11-21T19:00:00Z, 15m, 2h, 3d, or seconds since 1970)", text));
  std::tm parts{};
  if (const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts); end != nullptr && *end == 0) {
    const std::int64_t seconds_since = ::timegm(&parts);
    if (seconds_since < 0) return wrong;
    return Timestamp{static_cast<std::uint64_t>(seconds_since) * 1'000'000};
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
