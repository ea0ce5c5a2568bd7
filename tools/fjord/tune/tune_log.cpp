#include "tune/tune_log.h"

#include <fmt/format.h>

#include "cli.h"
#include "fjord/common/byte_units.h"
#include "output/json_text.h"
#include "output/time_text.h"

namespace fjord::cli {

TuningCallbacks TuneLog::callbacks() const {
  return {
      .on_event = [this](const TuningEvent& event) { say(event); },
      .on_period = [this](int number, const tuner::PeriodFigures& figures,
                          const std::optional<tuner::Objective>& objective) { period(number, figures, objective); }};
}

void TuneLog::say(const TuningEvent& event) const {
  const std::int64_t now_us = SystemClock().wall_now().us;
  if (!json_) {
    std::string line = fmt::format("{}  {}", time_text(now_us), event.event);
    if (!event.loop.empty()) line += fmt::format("  {}", event.loop);
    if (event.knob != nullptr) {
      line += fmt::format("  {}: {} -> {}", event.knob->name, tuner::value_text(*event.knob, event.old_value),
                          tuner::value_text(*event.knob, event.new_value));
    }
    if (!event.text.empty()) line += "  " + event.text;
    if (!event.id.empty()) line += fmt::format("  [{}]", event.id);
    return print_line(line);
  }
  JsonText json;
  json.begin_object().key("unix_us").integer(now_us).key("event").text(event.event);
  if (!event.loop.empty()) json.key("loop").text(event.loop);
  if (event.knob != nullptr) {
    json.key("knob").text(event.knob->name).key("old").integer(event.old_value).key("new").integer(event.new_value);
  }
  if (!event.id.empty()) json.key("id").text(event.id);
  if (event.config_version != 0) json.key("config_version").number(event.config_version);
  json.key("reason").text(event.text).end_object();
  print_line(json.str());
}

void TuneLog::period(int number, const tuner::PeriodFigures& figures,
                     const std::optional<tuner::Objective>& objective) const {
  if (!with_periods_) return;
  if (!json_) {
    return print_line(fmt::format(
        "{}  period {}  {:.0f} reads/s, {:.0f} writes/s, {:.0f} failed/s, mean {:.2f} ms, p99 {:.2f} ms, visits {}/s, "
        "searches {:.0f} % of puts, waits for indexes {:.1f} % and documents {:.1f} %, {} nodes{}",
        time_text(SystemClock().wall_now().us), number, figures.reads_per_s, figures.writes_per_s, figures.failed_per_s,
        1e3 * figures.mean_s.value_or(0), 1e3 * figures.p99_s.value_or(0), bytes_text(figures.scan_bytes_per_s),
        100 * figures.search_share(), 100 * figures.index_wait_share, 100 * figures.document_wait_share,
        figures.nodes_read, figures.nodes_silent == 0 ? "" : fmt::format(", {} silent", figures.nodes_silent)));
  }
  JsonText json;
  json.begin_object().key("unix_us").integer(SystemClock().wall_now().us).key("event").text("period");
  json.key("number").integer(number).key("reads_per_s").real(figures.reads_per_s, 1);
  json.key("writes_per_s").real(figures.writes_per_s, 1).key("failed_per_s").real(figures.failed_per_s, 1);
  json.key("mean_s").real(figures.mean_s.value_or(0), 6).key("p99_s").real(figures.p99_s.value_or(0), 6);
  json.key("scan_bytes_per_s").real(figures.scan_bytes_per_s, 0);
  json.key("visitors_running").real(figures.visitors_running, 0);
  json.key("visitors_queued").real(figures.visitors_queued, 0).key("nodes").number(figures.nodes_read);
  json.key("silent").number(figures.nodes_silent).key("search_share").real(figures.search_share(), 4);
  json.key("index_wait_share").real(figures.index_wait_share, 4);
  json.key("document_wait_share").real(figures.document_wait_share, 4);
  if (objective) json.key("foreground").real(objective->foreground, 4).key("speed").real(objective->speed, 2);
  json.end_object();
  print_line(json.str());
}

}  // namespace fjord::cli
