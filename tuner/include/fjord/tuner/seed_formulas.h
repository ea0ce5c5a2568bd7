#pragma once

#include <cstdint>

/// The formulas of seed 002, each as one function. What is not said to be otherwise is a mean over buckets and nodes
/// that are equally full, as in the paper. Sizes are bytes, rates bytes a second. All are pure; arguments that make no
/// sense (no bucket, a size of 0) are a bug of the caller.
namespace fjord::tuner::seed {

/// What a message costs besides its payload, on the wire: about 200 bytes of header (6.4.1).
inline constexpr double kMessageHeaderBytes = 200;
/// TCP payload of one Ethernet frame, and what surrounds it: 18 bytes of Ethernet and 40 of IP and TCP (6.4.1).
inline constexpr double kFramePayloadBytes = 1460;
inline constexpr double kFrameOverheadBytes = 58;
/// Header of a slotfile and an entry of its metadata list (E.1.2).
inline constexpr double kSlotfileHeaderBytes = 20;
inline constexpr double kMetadataEntryBytes = 40;
/// More slotfiles than these in one bucket cost puts and visits (5.3.3).
inline constexpr std::uint64_t kSlotfilesMax = 64;
/// More data than this in one bucket makes puts time out (6.1.1).
inline constexpr double kBucketBytesMax = 64.0 * 1024 * 1024;
/// Good for output documents of jobs: between 1 and 8 MB (6.1.2).
inline constexpr double kOutputDocumentBytes = 4.0 * 1024 * 1024;

/// Seed 4.3.3: documents that a job stores at least, n * m: one for each pair of input and output bucket.
double output_documents_min(double input_buckets, double output_buckets);

/// Seed 4.3.4: memory of the tuples of one bucket, M = |D| / |B| * s.
double tuple_memory_per_bucket(double documents, double buckets, double tuple_bytes_per_document);

/// Seed 5.4.2: max(ceil(|D| / (entries * slotfiles)), ceil(s_D / (slotfile size * slotfiles))).
std::uint64_t buckets_min(double documents, double total_bytes, double entries_max, double slotfile_bytes_max,
                          double slotfiles_max);

/// Seed 5.4.2: as each input bucket puts a document into each output bucket, there may be no more buckets than one
/// bucket has room for documents: entries * slotfiles.
std::uint64_t buckets_max_for_jobs(double entries_max, double slotfiles_max);

/// Seed 5.5: mean size of a bucket, b = d * |D| / |B|.
double bucket_bytes_mean(double documents, double document_bytes, double buckets);

/// Seed 5.5: 2^ceil(log2(b / slotfile size)), at least 1.
std::uint64_t slotfiles_per_bucket(double bucket_bytes, double slotfile_bytes_max);
/// The same with the margin of one split: twice as many.
std::uint64_t slotfiles_per_bucket_with_margin(double bucket_bytes, double slotfile_bytes_max);

/// Seed 6.2.1: ceil(output size / (maximum bucket size - data already in buckets)), at least 1; 0 if no bucket has
/// room.
std::uint64_t output_buckets_min(double output_bytes, double bucket_bytes_max, double bucket_bytes_now);

/// Seed 6.3.2: ceil(2.5 * c_max), c_max the CPUs of the node that has the most.
std::uint64_t visitor_threads_cpu(std::uint64_t cpus_max);
/// Seed 6.3.2: floor(m_node * |B| / (|D| * s)), m_node the memory for tuples of the node that has the least.
std::uint64_t visitor_threads_memory(double node_memory_bytes, double buckets, double documents,
                                     double tuple_bytes_per_document);

/// Seed 6.4.1: traffic of one put without frames, (n + 1) * (2m + d), for n copies.
double put_payload_traffic(double copies, double document_bytes, double header_bytes = kMessageHeaderBytes);
/// Seed 6.4.1: what frames add to a message, ceil(size / 1460) * 58.
double frame_overhead(double message_bytes);
/// Seed 6.4.1: the whole traffic of a put, (n + 1) * (2m + d) + (n + 1) * (ceil(m / 1460) + ceil((m + d) / 1460)) * 58.
double put_traffic(double copies, double document_bytes, double header_bytes = kMessageHeaderBytes);
/// What table 6.1 of the seed was computed with: its column "Expected" has the overhead of frames n + 2 times, not n +
/// 1 times as in its formula.
double put_traffic_of_table(double copies, double document_bytes, double header_bytes = kMessageHeaderBytes);
/// Table 6.1: the traffic that was measured was up to 1.165 times that of the table. The seed asks for "some margin".
inline constexpr double kTrafficMargin = 1.165;

/// Seed 6.4.3: pause between buckets so that a job takes no more than its rate, T_tot / (R * |B|), in seconds.
double bucket_delay_s(double total_traffic_bytes, double rate_bytes_per_s, double buckets);

/// Seed E.1.2: memory of a put on a storage node, d + h + n * e, for n metadata entries in the slotfile.
double put_memory(double document_bytes, double entries);
/// Seed E.2.1: (2c + 2) * m, for c copies.
double remove_traffic(double copies, double header_bytes = kMessageHeaderBytes);
/// Seed E.2.3: h + n * e. (The seed prints "h + m * e", but m is its message header; it describes the metadata list.)
double remove_memory(double entries);
/// Seed E.3.1: 4m + 2d.
double get_traffic(double document_bytes, double header_bytes = kMessageHeaderBytes);
/// Seed E.3.3: d + h + n * e.
double get_memory(double document_bytes, double entries);

/// Seed E.4.1: docblocks of a visit, ceil(|D| * d / b).
std::uint64_t docblocks(double documents, double document_bytes, double docblock_bytes);
struct VisitTraffic {
  double distributors = 0;
  double storage_nodes = 0;
  double documents = 0;
  double document_bytes = 0;
  double docblock_bytes = 0;
  double bucket_nodes_reply_bytes = 0;  ///< Beta in the seed.
  double create_visitor_bytes = 0;      ///< v in the seed.
  double header_bytes = kMessageHeaderBytes;
};
/// Seed E.4.1: (|Psi| + |S|) * 2m + |Psi| * beta + |S| * v + ceil(|D| * d / b) * b.
double visit_traffic(const VisitTraffic& visit);
/// Seed E.4.2: docblocks of one slotfile, ceil(maxfilesize / docblock size).
std::uint64_t docblocks_per_slotfile(double slotfile_bytes_max, double docblock_bytes);
/// Seed E.4.2: reads of a visit from disk: to list each slotfile one, or two with a selection, and three for each
/// docblock.
double visit_reads(double slotfiles, double docblocks, bool with_selection);
struct VisitMemory {
  double buckets = 0;
  double storage_nodes = 0;
  double remaining_entry_bytes = 0;  ///< r in the seed.
  double disks = 0;                  ///< h
  double threads_per_disk = 0;       ///< t
  double docblock_bytes = 0;         ///< d
  double documents = 0;
  double buckets_at_once = 0;      ///< a
  double pending_entry_bytes = 0;  ///< p
};
/// Seed E.4.3: ceil(|B| / |S|) * r + h * t * d + ceil(|D| / |B|) * a * p, on each storage node.
double visit_memory(const VisitMemory& visit);

}  // namespace fjord::tuner::seed
