#pragma once

#include <string>

#include "fjord/common/metrics.h"

namespace fjord::rpc {

/// Metrics of one side of the transport, "client" or "server".
struct RpcMetrics {
  RpcMetrics(MetricRegistry& registry, const std::string& side)
      : frames_sent(
            registry.counter("fjord_rpc_frames_sent_total", "Messages handed to the kernel.", {{"side", side}})),
        frames_received(registry.counter("fjord_rpc_frames_received_total", "Messages received.", {{"side", side}})),
        bytes_sent(registry.counter("fjord_rpc_bytes_sent_total", "Bytes handed to the kernel.", {{"side", side}})),
        bytes_received(registry.counter("fjord_rpc_bytes_received_total", "Bytes received.", {{"side", side}})),
        bad_frames(registry.counter("fjord_rpc_bad_frames_total",
                                    "Frames that were too long or no message; each closed its connection.",
                                    {{"side", side}})),
        broken_connections(registry.counter("fjord_rpc_broken_connections_total",
                                            "Connections that ended for whatever reason.", {{"side", side}})),
        connections(registry.gauge("fjord_rpc_connections", "Open connections.", {{"side", side}})),
        unanswered(registry.gauge("fjord_rpc_unanswered_calls", "Calls that wait for an answer.", {{"side", side}})) {}

  Counter& frames_sent;
  Counter& frames_received;
  Counter& bytes_sent;
  Counter& bytes_received;
  Counter& bad_frames;
  Counter& broken_connections;
  Gauge& connections;
  Gauge& unanswered;
};

struct RpcClientMetrics : RpcMetrics {
  explicit RpcClientMetrics(MetricRegistry& registry)
      : RpcMetrics(registry, "client"),
        connect_failures(registry.counter("fjord_rpc_connect_failures_total", "Connects that failed.")),
        timeouts(registry.counter("fjord_rpc_timeouts_total", "Calls without an answer before their deadline.")) {}

  Counter& connect_failures;
  Counter& timeouts;
};

struct RpcServerMetrics : RpcMetrics {
  explicit RpcServerMetrics(MetricRegistry& registry)
      : RpcMetrics(registry, "server"),
        reading_paused(
            registry.counter("fjord_rpc_reading_paused_total",
                             "How often a connection was not read from because it had too much unanswered.")),
        ended_idle(ended(registry, "idle")),
        ended_slow(ended(registry, "slow")),
        ended_full(ended(registry, "full")),
        ended_memory(ended(registry, "memory")) {}

  Counter& reading_paused;
  Counter& ended_idle;
  Counter& ended_slow;
  Counter& ended_full;
  Counter& ended_memory;

 private:
  static Counter& ended(MetricRegistry& registry, const std::string& reason) {
    return registry.counter("fjord_rpc_ended_connections_total",
                            "Connections that the server ended: idle ones, those that sent a part of a message and no "
                            "more (slow), and those that were too many (full) or took too much memory.",
                            {{"reason", reason}});
  }
};

}  // namespace fjord::rpc
