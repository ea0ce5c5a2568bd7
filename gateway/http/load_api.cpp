// /cluster/v1/load: how busy and how full the cluster is.

#include <algorithm>
#include <optional>

#include "http/load_sampler.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

/// A later end of the space is not foreseen.
constexpr double kForecastSecondsMax = 10.0 * 365 * 86'400;

void write(std::string_view name, const std::optional<double>& value, JsonText& json) {
  json.key(name);
  if (value) {
    json.value(*value);
  } else {
    json.null();
  }
}

std::optional<double> seconds_until_full(const NodeLoadFigures& node, const std::optional<double>& growth) {
  if (!node.used_bytes || !node.limit_bytes || !growth || *growth <= 0) return std::nullopt;
  const double left = std::max(0.0, *node.limit_bytes - *node.used_bytes) / *growth;
  return left <= kForecastSecondsMax ? std::optional(left) : std::nullopt;
}

void write_node(const NodeLoadFigures& node, const std::optional<double>& growth, JsonText& json) {
  json.begin_object().member("node", node.node);
  write("cpus", node.cpus, json);
  write("resident_bytes", node.resident_bytes, json);
  write("operations_per_second", node.operations_per_second, json);
  write("p99_seconds", node.p99_seconds, json);
  write("visitors", node.visitors, json);
  write("used_bytes", node.used_bytes, json);
  write("free_bytes", node.free_bytes, json);
  write("limit_bytes", node.limit_bytes, json);
  write("growth_bytes_per_second", growth, json);
  write("seconds_until_full", seconds_until_full(node, growth), json);
  json.end_object();
}

void write_point(const LoadPoint& point, JsonText& json) {
  json.begin_object().member("unix_us", point.unix_us).member("reads_per_second", point.reads_per_second);
  json.member("writes_per_second", point.writes_per_second);
  write("p50_seconds", point.p50_seconds, json);
  write("p99_seconds", point.p99_seconds, json);
  json.end_object();
}

void write_load(const Load& load, JsonText& json) {
  const LoadFigures latest = load.latest.value_or(LoadFigures{});
  json.begin_object().key("period_seconds");
  if (load.latest) {
    json.value(std::chrono::duration<double>(latest.period).count());
  } else {
    json.null();
  }
  json.member("silent", latest.silent).key("operations").begin_array();
  for (const OperationLoad& operation : latest.operations) {
    json.begin_object().member("operation", operation.operation).member("per_second", operation.per_second);
    write("p50_seconds", operation.p50_seconds, json);
    write("p99_seconds", operation.p99_seconds, json);
    json.end_object();
  }
  json.end_array().key("points").begin_array();
  for (const LoadPoint& point : load.points) write_point(point, json);
  json.end_array().key("nodes").begin_array();
  bool is_growth_known = false;
  for (const NodeLoadFigures& node : latest.nodes) {
    const auto growth = load.growth.find(node.node);
    const std::optional<double> rate = growth == load.growth.end() ? std::nullopt : growth->second;
    is_growth_known = is_growth_known || rate.has_value();
    write_node(node, rate, json);
  }
  json.end_array().key("growth_seconds");
  if (is_growth_known) {
    json.value(std::chrono::duration<double>(load.growth_span).count());
  } else {
    json.null();
  }
  json.end_object();
}

}  // namespace

void add_load_routes(RouteTable& routes, LoadSampler& sampler) {
  routes.add("GET", "/cluster/v1/load", {}, [&sampler](const ApiCall&, const HttpReply& reply) {
    JsonText json;
    write_load(sampler.latest(), json);
    reply({.status = 200, .body = json.str()});
  });
}

}  // namespace fjord::gateway
