#pragma once

/// The traffic of puts on the wire, and the pause that keeps a job to its rate: formulas of [VDS 2007, 6.4]. Sizes are
/// in bytes, rates in bytes per second. All functions are pure.
namespace fjord::traffic {

/// Bytes that a message adds to its payload on the wire: a header of about 200 bytes [VDS 2007, 6.4.1].
inline constexpr double kMessageHeaderBytes = 200;
/// TCP payload of one Ethernet frame, and its overhead: 18 bytes of Ethernet and 40 of IP and TCP [VDS 2007, 6.4.1].
inline constexpr double kFramePayloadBytes = 1460;
inline constexpr double kFrameOverheadBytes = 58;

/// Returns the traffic of one put without frames, (n + 1) * (2m + d), for n replicas [VDS 2007, 6.4.1].
double put_payload_traffic(double replicas, double document_bytes, double header_bytes = kMessageHeaderBytes);
/// Returns the bytes that frames add to a message, ceil(size / 1460) * 58 [VDS 2007, 6.4.1].
double frame_overhead(double message_bytes);
/// Returns the whole traffic of a put, (n + 1) * (2m + d) + (n + 1) * (ceil(m / 1460) + ceil((m + d) / 1460)) * 58
/// [VDS 2007, 6.4.1].
double put_traffic(double replicas, double document_bytes, double header_bytes = kMessageHeaderBytes);

/// Returns the pause between buckets, in seconds, that keeps a job at its rate, T_tot / (R * |B|) [VDS 2007, 6.4.3].
double bucket_delay_s(double total_traffic_bytes, double rate_bytes_per_s, double buckets);

}  // namespace fjord::traffic
